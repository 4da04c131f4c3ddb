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
from codespec.http.apis.constraints import Constrained, Grammars, constraint_of
from codespec.http.apis.fields import Fields
from codespec.http.apis.mistral import FimShape, fim_order
from codespec.http.apis.openai_shapes import ChatShape, CompletionShape
from codespec.http.apis.questions import Question, Questions, about, apply_template, detokenize, tokenize
from codespec.http.aside import Aside
from codespec.http.backend import Backend
from codespec.http.body import Bodies, Body, body_of
from codespec.http.errors import HttpError, crowded
from codespec.http.limits import HttpLimits
from codespec.http.metrics import CONTENT_TYPE, Metrics
from codespec.http.order import Order
from codespec.http.queue import FairQueue
from codespec.http.security import CLIENT, Access, Guard
from codespec.http.sse import Answer, Shape, compact, send_json

Parse = Callable[[Fields, Defaults, Any], Order]
Read = tuple[Order, Shape, bool]
"""What is to be generated, how it is written, and whether it is streamed."""


class Service:
    """Answers requests with the model of a backend.

    Args:
        began: when the server was started, in seconds since 1970.
    """

    def __init__(self, backend: Backend, defaults: Defaults, began: float) -> None:
        self._defaults, self._began = defaults, int(began)
        self.metrics = Metrics()
        self._aside = Aside()
        self._grammars = Grammars()
        self._questions = Questions(backend)
        self._queue = FairQueue(backend, defaults.limits, self.metrics, self._questions.answer)

    def routes(self) -> list[Route]:
        """All paths and methods of the server."""
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
        """Run the queue for as long as the server runs."""
        self._queue.begin()
        yield
        self._aside.close()

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
        body = await self._body(request)
        constrained = await self._constrained(body)

        def read() -> Read:
            fields = body.fields
            order = parse(fields, self._defaults, constrained)
            wanted = llama_server.response_fields(fields)
            several = len(order.prompts) * order.count > 1
            tokens = fields.flag("return_tokens")
            shape = llama_server.LlamaServerShape(self._defaults.names[0], order, several, wanted, tokens)
            return order, shape, fields.flag("stream")

        return self._answer(request, body, *await self._aside.run(body.size, read))

    async def _body(self, request: Request, status: int = 400) -> Body:
        body = await body_of(request, self._defaults.limits, self._aside, status)
        self._queue.check_ready()
        return body

    async def _constrained(self, body: Body) -> Constrained:
        constraint = await self._aside.run(body.size, lambda: constraint_of(body.fields))
        return await self._grammars.of(constraint)

    async def props(self, request: Request) -> Response:
        """``GET /props``."""
        return await self._ask(about)

    async def tokenize(self, request: Request) -> Response:
        """``POST /tokenize``."""
        return await self._ask(tokenize((await self._body(request)).fields))

    async def detokenize(self, request: Request) -> Response:
        """``POST /detokenize``."""
        return await self._ask(detokenize((await self._body(request)).fields))

    async def apply_template(self, request: Request) -> Response:
        """``POST /apply-template``."""
        body = await self._body(request)
        return await self._ask(await self._aside.run(body.size, lambda: apply_template(body.fields)))

    async def _ask(self, question: Question) -> Response:
        self._queue.check_ready()
        answer = await self._questions.ask(question)
        size = sum(16 * len(each) for each in answer.values() if isinstance(each, (str, list)))
        data = await self._aside.run(size, lambda: compact(answer))
        return Response(data, media_type="application/json")

    async def _openai(self, request: Request, parse: Parse, shape: type[CompletionShape], status: int = 400) -> ASGIApp:
        body = await self._body(request, status)
        model = check_model(body.fields, self._defaults.names)
        constrained = await self._constrained(body)

        def read() -> Read:
            fields = body.fields
            stream, options = fields.flag("stream"), fields.object("stream_options")
            usage = options.flag("include_usage") if options is not None else False
            return parse(fields, self._defaults, constrained), shape(model, usage), stream

        return self._answer(request, body, *await self._aside.run(body.size, read))

    def _answer(self, request: Request, body: Body, order: Order, shape: Shape, stream: bool) -> ASGIApp:
        ticket = self._queue.add(request.scope.get(CLIENT, ""), replace(order, stream=stream))
        return Answer(self._queue, ticket, shape, stream, self._aside, body.size)

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


def create_app(service: Service, access: Access, limits: HttpLimits, connections: Callable[[], int]) -> ASGIApp:
    """The ASGI application; ``connections`` says how many are open."""
    app = Starlette(
        routes=service.routes(),
        lifespan=service.lifespan,
        middleware=[
            Middleware(_Counted, metrics=service.metrics),
            Middleware(_Crowd, most=limits.connections, connections=connections),
            Middleware(Guard, access=access, limits=limits),
            Middleware(Bodies, limits=limits),
        ],
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


class _Crowd:
    """ASGI middleware that refuses requests while there are too many connections."""

    def __init__(self, app: ASGIApp, most: int, connections: Callable[[], int]) -> None:
        self._app, self._most, self._connections = app, most, connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._connections() > self._most:
            refused = crowded(self._most)
            await send_json(send, refused.status, refused.as_json(), refused.headers)
        else:
            await self._app(scope, receive, send)


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
