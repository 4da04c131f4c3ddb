"""The routes of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from codespec.http.apis import llama_server, mistral
from codespec.http.apis.chat import chat_order
from codespec.http.apis.common_fields import Defaults
from codespec.http.apis.completions import check_model, completion_order
from codespec.http.apis.constraints import Grammars
from codespec.http.apis.fields import Fields
from codespec.http.apis.mistral import FimShape, fim_order
from codespec.http.apis.openai_shapes import ChatShape, CompletionShape
from codespec.http.apis.questions import Question, Questions, about, apply_template, detokenize, tokenize
from codespec.http.backend import Backend
from codespec.http.body import fields_in
from codespec.http.errors import HttpError
from codespec.http.limits import HttpLimits
from codespec.http.metrics import CONTENT_TYPE, Metrics
from codespec.http.order import Order
from codespec.http.queue import FairQueue
from codespec.http.security import CLIENT, Access, Guard
from codespec.http.sse import Answer, Shape

Parse = Callable[[Fields, Defaults, Any], Order]


class Service:
    """Answers requests with the model of a backend.

    Args:
        began: when the server was started, in seconds since 1970.
    """

    def __init__(self, backend: Backend, defaults: Defaults, began: float) -> None:
        self._defaults, self._began = defaults, int(began)
        self.metrics = Metrics()
        self._grammars = Grammars()
        self._questions = Questions(backend)
        self._queue = FairQueue(backend, defaults.limits, self.metrics, self._questions.answer)

    def routes(self) -> list[Route]:
        """What is answered."""
        return [
            Route("/v1/completions", self.completions, methods=["POST"]),
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
            Route("/chat/completions", self.chat, methods=["POST"]),
            Route("/v1/fim/completions", self.fim, methods=["POST"]),
            Route("/infill", self.infill, methods=["POST"]),
            Route("/completion", self.completion, methods=["POST"]),
            Route("/completions", self.completion, methods=["POST"]),
            Route("/props", self.props, methods=["GET"]),
            Route("/tokenize", self.tokenize, methods=["POST"]),
            Route("/detokenize", self.detokenize, methods=["POST"]),
            Route("/apply-template", self.apply_template, methods=["POST"]),
            Route("/v1/models", self.models, methods=["GET"]),
            Route("/models", self.models, methods=["GET"]),
            Route("/v1/models/{name:path}", self.model, methods=["GET"]),
            Route("/health", self.health, methods=["GET"]),
            Route("/v1/health", self.health, methods=["GET"]),
            Route("/metrics", self.counts, methods=["GET"]),
        ]

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """While the server runs."""
        self._queue.begin()
        yield

    async def completions(self, request: Request) -> ASGIApp:
        """``POST /v1/completions``."""
        return await self._openai(request, completion_order, CompletionShape)

    async def chat(self, request: Request) -> ASGIApp:
        """``POST /v1/chat/completions``."""
        return await self._openai(request, chat_order, ChatShape)

    async def fim(self, request: Request) -> ASGIApp:
        """``POST /v1/fim/completions``."""
        return await self._openai(request, fim_order, FimShape, mistral.STATUS)

    async def infill(self, request: Request) -> ASGIApp:
        """``POST /infill``."""
        return await self._llama_server(request, llama_server.infill_order)

    async def completion(self, request: Request) -> ASGIApp:
        """``POST /completion``."""
        return await self._llama_server(request, llama_server.completion_order)

    async def _llama_server(self, request: Request, parse: Parse) -> ASGIApp:
        fields = await fields_in(request, self._defaults.limits)
        self._queue.check_ready()
        order = parse(fields, self._defaults, await self._grammars.of(fields))
        wanted = llama_server.response_fields(fields)
        several = len(order.prompts) * order.count > 1
        tokens = fields.flag("return_tokens")
        shape = llama_server.LlamaServerShape(self._defaults.names[0], order, several, wanted, tokens)
        return self._answer(request, order, shape, fields.flag("stream"))

    async def props(self, request: Request) -> Response:
        """``GET /props``."""
        return await self._ask(about)

    async def tokenize(self, request: Request) -> Response:
        """``POST /tokenize``."""
        return await self._ask(tokenize(await fields_in(request, self._defaults.limits)))

    async def detokenize(self, request: Request) -> Response:
        """``POST /detokenize``."""
        return await self._ask(detokenize(await fields_in(request, self._defaults.limits)))

    async def apply_template(self, request: Request) -> Response:
        """``POST /apply-template``."""
        return await self._ask(apply_template(await fields_in(request, self._defaults.limits)))

    async def _ask(self, question: Question) -> Response:
        self._queue.check_ready()
        return JSONResponse(await self._questions.ask(question))

    async def _openai(self, request: Request, parse: Parse, shape: type[CompletionShape], status: int = 400) -> ASGIApp:
        fields = await fields_in(request, self._defaults.limits, status)
        self._queue.check_ready()
        model = check_model(fields, self._defaults.names)
        stream, options = fields.flag("stream"), fields.object("stream_options")
        usage = options.flag("include_usage") if options is not None else False
        order = parse(fields, self._defaults, await self._grammars.of(fields))
        return self._answer(request, order, shape(model, usage), stream)

    def _answer(self, request: Request, order: Order, shape: Shape, stream: bool) -> ASGIApp:
        ticket = self._queue.add(request.scope.get(CLIENT, ""), replace(order, stream=stream))
        return Answer(self._queue, ticket, shape, stream)

    async def models(self, request: Request) -> Response:
        """``GET /v1/models``."""
        return JSONResponse({"object": "list", "data": [self._model(each) for each in self._defaults.names]})

    async def model(self, request: Request) -> Response:
        """``GET /v1/models/NAME``."""
        name = request.path_params["name"]
        if name not in self._defaults.names:
            raise HttpError(404, "there is no such model here; see /v1/models", "model", "model_not_found")
        return JSONResponse(self._model(name))

    def _model(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._began, "owned_by": "codespec"}

    async def health(self, request: Request) -> Response:
        """``GET /health``."""
        self._queue.check_ready()
        return JSONResponse({"status": "ok"})

    async def counts(self, request: Request) -> Response:
        """``GET /metrics``."""
        return Response(self.metrics.text(), media_type=CONTENT_TYPE)


def create_app(service: Service, access: Access, limits: HttpLimits) -> ASGIApp:
    """The ASGI application."""
    app = Starlette(
        routes=service.routes(),
        lifespan=service.lifespan,
        middleware=[Middleware(_Counted, metrics=service.metrics), Middleware(Guard, access=access, limits=limits)],
        exception_handlers={HttpError: _refused, HTTPException: _not_found, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return app


class _Counted:
    """ASGI middleware that counts answers."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 499  # the client went away before anything was said, as nginx counts it

        async def told(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, told)
        finally:
            route = scope.get("route")
            self._metrics.answered(route.path if isinstance(route, Route) else "other", status)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HttpError)
    return JSONResponse(error.as_json(), error.status, error.headers)


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {404: "there is no such path here", 405: "this path is not asked that way"}
    refused = HttpError(error.status_code, messages.get(error.status_code, str(error.detail)))
    return JSONResponse(refused.as_json(), error.status_code, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    refused = HttpError(500, f"internal failure ({type(error).__name__}); see the server's log")
    return JSONResponse(refused.as_json(), 500)
