"""Stand-ins for vLLM and SGLang, which a test cannot start: their routes, made from the schemas in their sources, over
the logits of a model on this machine. They refuse fields that the engine does not have, and requests that it would.

vLLM 0.32: ``entrypoints/openai/completion/protocol.py``, ``sampling_params.py``, ``serve/tokenize``,
``entrypoints/scale_out/token_in_token_out``, ``v1/worker/gpu_model_runner.py`` (``_get_prompt_logprobs_dict``).
SGLang 0.5: ``managers/io_struct.py``, ``sampling/sampling_params.py``, ``scheduler_output_processor``.
"""

import itertools
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from codespec.draft.sequence import HeldSequence
from codespec.llama.context import Context
from codespec.llama.model import Model

VLLM_FIELDS = {
    "model", "prompt", "echo", "logprobs", "max_tokens", "temperature", "top_p", "top_k", "min_p", "repetition_penalty",
    "ignore_eos", "allowed_token_ids", "prompt_logprobs", "add_special_tokens", "return_tokens_as_token_ids",
    "return_token_ids", "logit_bias", "stream", "n", "seed", "stop",
}  # fmt: skip
VLLM_SAMPLING = {
    "max_tokens", "temperature", "ignore_eos", "detokenize", "logprobs", "prompt_logprobs", "skip_reading_prefix_cache",
}  # fmt: skip
BLOCK = 16
"""Tokens that vLLM's prefix cache keeps together."""
SGLANG_FIELDS = {
    "text", "input_ids", "sampling_params", "return_logprob", "logprob_start_len", "top_logprobs_num",
    "token_ids_logprob", "return_text_in_logprobs", "stream",
}  # fmt: skip
SGLANG_SAMPLING = {"max_new_tokens", "temperature", "top_p", "top_k", "min_p", "ignore_eos", "repetition_penalty"}


class Refusal(Exception):
    """What the engine answers with 400."""


class StandIn:
    """A server on a free port of this machine; close it after use.

    Attributes:
        asked: paths and bodies of the requests so far.
        delay_s: seconds before every answer; ``may_answer``: they wait for it; ``waiting``: how many do.
        away: whether connections break, those of streams, too.
        read: of each text at ``/inference/v1/generate``, how many tokens were not in the prefix cache.
        streamed: tokens of streams that were made; ``left``: streams that the client closed.
    """

    def __init__(self, kind, path, length=1024, exact=True, name="stand-in", most=20, scale_out=False, streams=True):
        self.kind, self.name, self.most, self.streams = kind, name, most, streams
        self.model = Model(path)
        self.context = Context(self.model, context_length=length, exact=exact)
        self.vocabulary = self.model.vocabulary
        self.length = self.context.room
        self._held = HeldSequence(self.context.sequence())
        self._lock = threading.Lock()
        self.asked, self.delay_s, self.streamed, self.left, self.away = [], 0.0, 0, 0, False
        self.may_answer, self.waiting = threading.Event(), 0
        self.may_answer.set()
        self.scale_out, self.tells_cached, self.cached, self.read = scale_out, True, set(), []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        with self._lock:
            self.context.close()
            self.model.close()

    def requests(self, path):
        return [body for asked, body in self.asked if asked == path]

    def logprobs(self, tokens, last):
        """float32 [last, V]: after each of the last tokens."""
        with self._lock:
            require(self.model.pointer, "it was closed while this request waited")
            start = len(tokens) - last
            self._held.rollback(min(start, self._held.kept(tokens)))
            if len(self._held.tokens) < start:
                self._held.extend(tokens[len(self._held.tokens) : start], 0)
            pieces = [tokens[place : place + 16] for place in range(start, len(tokens), 16)]
            logits = np.concatenate([self._held.extend(piece).astype(np.float64) for piece in pieces])
        top = logits.max(axis=1, keepdims=True)
        return (logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))).astype(np.float32)

    def answer(self, path, body):
        routes = {"/v1/models": self._models, "/health": lambda _: {}, "/tokenize": self._tokenize}
        routes |= {"vllm": {"/v1/completions": self._complete}, "sglang": {"/generate": self._generate}}[self.kind]
        if self.scale_out:
            routes["/inference/v1/generate"] = self._generate_tokens
        if path not in routes:
            return 404, {"error": {"message": "Not Found"}}
        try:
            return 200, routes[path](body)
        except Refusal as refusal:
            return 400, {"error": {"message": str(refusal), "type": "BadRequestError"}}

    def _models(self, _):
        return {"object": "list", "data": [{"id": self.name, "object": "model", "max_model_len": self.length}]}

    def _tokenize(self, body):
        require(set(body) <= {"model", "prompt", "add_special_tokens"}, f"extra fields: {sorted(body)}")
        tokens = self.vocabulary.tokenize(body["prompt"], special=True)
        return {"count": len(tokens), "max_model_len": self.length, "tokens": tokens}

    def _complete(self, body):
        require(set(body) <= VLLM_FIELDS, f"extra fields: {sorted(set(body) - VLLM_FIELDS)}")
        require(body.get("model") == self.name, f"The model `{body.get('model')}` does not exist.")
        require(body["temperature"] == 0, "the stand-in generates greedy tokens")
        require(body["max_tokens"] == 1 or body.get("stream"), "the stand-in generates one token")
        best, of_prompt = body.get("logprobs"), body.get("prompt_logprobs")
        for asked, what in ((best, "sample"), (of_prompt, "prompt")):
            require((asked or 0) <= self.most, f"Requested {what} logprobs of {asked}, max allowed: {self.most}")
        prompts = body["prompt"]
        if isinstance(prompts, str):
            prompts = self.vocabulary.tokenize(prompts, special=True)
        prompts = prompts if prompts and isinstance(prompts[0], list) else [prompts]
        if body.get("stream"):
            return self._stream(prompts[0], body["max_tokens"], lambda text, _: self._piece(text, body))
        choices = [self._choice(tokens, index, body) for index, tokens in enumerate(prompts)]
        return {"object": "text_completion", "model": self.name, "choices": choices}

    def _piece(self, tokens, body):
        choice = self._choice(tokens, 0, body)
        [name] = choice["logprobs"]["tokens"]
        return int(name.removeprefix("token_id:")), {"object": "text_completion", "choices": [choice]}

    def _stream(self, prompt, most, piece):
        """Events, each of one token; the first is made at once, so that a refusal is one."""
        require(self.streams, "a proxy that lets no streams through")
        self._check(prompt, self.length - most)
        token, first = piece(list(prompt), [])
        return self._events(list(prompt), token, first, most, piece)

    def _events(self, text, token, first, most, piece):
        own = []
        for event in itertools.chain([first], itertools.repeat(None, most - 1)):
            if event is None:
                token, event = piece(text, own)
            text, own = [*text, token], [*own, token]
            self.streamed += 1
            yield event

    def _choice(self, tokens, index, body):
        best, of_prompt = body.get("logprobs"), body.get("prompt_logprobs")
        self._check(tokens, self.length - 1)
        self._cached(tokens)
        rows = self.logprobs(tokens, len(tokens) if of_prompt else 1)
        allowed = body.get("allowed_token_ids")
        require(allowed is None or len(allowed) > 0, "allowed_token_ids is not None and empty!")
        own = int(rows[-1].argmax()) if allowed is None else max(allowed, key=lambda token: (rows[-1][token], -token))
        choice = {"index": index, "text": "", "finish_reason": "length", "logprobs": None, "prompt_logprobs": None}
        if best is not None:
            # The sampled token first, then the best ones (``_create_completion_logprobs``).
            named = {own: 0} | dict.fromkeys(best_of(rows[-1], best), 0)
            require(body.get("return_tokens_as_token_ids") is True, "the stand-in names tokens by their ids alone")
            choice["logprobs"] = {
                "tokens": [f"token_id:{own}"],
                "top_logprobs": [{f"token_id:{token}": float(rows[-1][token]) for token in named}],
            }
        if of_prompt:
            choice["prompt_logprobs"] = [None, *map(_of_prompt, rows, tokens[1:], [of_prompt] * len(tokens[1:]))]
        if body.get("return_token_ids"):
            choice["prompt_token_ids"] = tokens
        return choice

    def _generate_tokens(self, body):
        require(set(body) == {"model", "token_ids", "sampling_params"}, f"fields: {sorted(body)}")
        tokens, sampling = body["token_ids"], body["sampling_params"]
        require(set(sampling) == VLLM_SAMPLING, f"fields: {sorted(sampling)}")
        require(sampling["max_tokens"] == 1 and sampling["temperature"] == 0, "one greedy token")
        require(sampling["skip_reading_prefix_cache"] is False and sampling["detokenize"] is False, "as asked for here")
        self._check(tokens, self.length - 1)
        cached = self._cached(tokens)
        self.read.append(len(tokens) - cached)
        rows = self.logprobs(tokens, len(tokens))
        rows[:cached] = -1.0 - np.arange(rows.shape[1]) / rows.shape[1]  # it looks like log-probabilities, and is none
        best = sampling["prompt_logprobs"]
        own = [{"token_id": each, "logprob": float(rows[-1][each])} for each in best_of(rows[-1], best)]
        content = [{**own[0], "rank": 1, "top_logprobs": own}]
        details = {"cached_tokens": cached} if self.tells_cached else None
        return {
            "choices": [{"index": 0, "token_ids": [own[0]["token_id"]], "logprobs": {"content": content}}],
            "prompt_logprobs": [None, *map(_of_prompt, rows, tokens[1:], [best] * len(tokens[1:]))],
            "usage": {"prompt_tokens": len(tokens), "prompt_tokens_details": details},
        }

    def _cached(self, tokens):
        """How many tokens the prefix cache has, in whole blocks and never all; it has them all afterwards."""
        ends = range(BLOCK, len(tokens) + 1, BLOCK)
        blocks = [tuple(tokens[:end]) for end in ends]
        found = next(
            (i for i, block in enumerate(blocks) if block not in self.cached or ends[i] == len(tokens)), len(ends)
        )
        self.cached.update(blocks)
        return found * BLOCK

    def _generate(self, body):
        require(set(body) <= SGLANG_FIELDS, f"extra fields: {sorted(set(body) - SGLANG_FIELDS)}")
        sampling = body["sampling_params"]
        require(set(sampling) <= SGLANG_SAMPLING, f"extra fields: {sorted(set(sampling) - SGLANG_SAMPLING)}")
        require(sampling["max_new_tokens"] == 1 or body.get("stream"), "one token")
        require(sampling["temperature"] == 0, "a greedy one")
        tokens = body.get("input_ids")
        if tokens is None:
            tokens = self.vocabulary.tokenize(body["text"], special=True)
        if body.get("stream"):
            so_far = {"output_token_logprobs": [], "output_top_logprobs": []}
            return self._stream(
                tokens, sampling["max_new_tokens"], lambda text, own: self._more(text, own, body, so_far)
            )
        return {"text": "", "meta_info": self._about(tokens, body)}

    def _more(self, tokens, own, body, so_far):
        """All tokens so far are named with each (``tokenizer_manager.py``)."""
        about = self._about(tokens, body)
        row = self.logprobs(tokens, 1)[0]
        token = int(row.argmax())
        so_far["output_token_logprobs"].append([float(row[token]), token, None])
        so_far["output_top_logprobs"] += about["output_top_logprobs"]
        lists = {name: list(each) for name, each in so_far.items()}
        return token, {"text": "", "meta_info": {**about, **lists, "completion_tokens": len(own) + 1}}

    def _about(self, tokens, body):
        self._check(tokens, self.length - 1)
        about = {"prompt_tokens": len(tokens), "completion_tokens": 1, "finish_reason": {"type": "length"}}
        if body.get("return_logprob"):
            start = body.get("logprob_start_len", -1)
            start = len(tokens) if start == -1 else start
            require(0 <= start <= len(tokens), f"{start=} is beyond the prompt")
            rows = self.logprobs(tokens, max(1, len(tokens) - start))
            best, ids = body.get("top_logprobs_num", 0), body.get("token_ids_logprob")

            def named(row, tokens):
                return [[float(row[token]), int(token), None] for token in tokens]

            # Of the first token nothing is said; what follows the last one is of the output.
            if start < len(tokens):
                pairs = zip(rows, tokens[start + 1 :], strict=False)
                first = [[None, tokens[start], None]]
                about["input_token_logprobs"] = [*first, *(named(row, [token])[0] for row, token in pairs)]
                about["input_top_logprobs"] = [None, *(named(row, best_of(row, best)) for row in rows[:-1])]
            else:
                about["input_token_logprobs"], about["input_top_logprobs"] = [], []
            if best:
                about["output_top_logprobs"] = [named(rows[-1], best_of(rows[-1], best))]
            if ids is not None:
                about["output_token_ids_logprobs"] = [named(rows[-1], ids)]
        return about

    def _check(self, tokens, most):
        size = self.vocabulary.size
        require(tokens, "an empty prompt")
        require(all(isinstance(token, int) and 0 <= token < size for token in tokens), "no token ids")
        require(len(tokens) <= most, f"This model's maximum context length is {self.length} tokens")


def _of_prompt(row, token, best):
    """What vLLM says of one token of a prompt: that token first, then the best ones."""
    named = {token: 0} | dict.fromkeys(best_of(row, best), 0)
    rank = {each: 1 + int((row > row[each]).sum()) for each in named}
    return {str(each): {"logprob": float(row[each]), "rank": rank[each], "decoded_token": ""} for each in named}


def best_of(row, count):
    return [int(token) for token in np.argsort(-row, kind="stable")[:count]]


def require(condition, message):
    if not condition:
        raise Refusal(message)


def _handler(stand_in):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self):
            self._send(*stand_in.answer(self.path, None))

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if stand_in.away:
                self.close_connection = True
                return
            stand_in.asked.append((self.path, body))
            if stand_in.delay_s:
                time.sleep(stand_in.delay_s)
            stand_in.waiting += 1
            stand_in.may_answer.wait(60)
            stand_in.waiting -= 1
            self._send(*stand_in.answer(self.path, body))

        def _send(self, status, answer):
            if isinstance(answer, Iterator):
                self._send_events(answer)
                return
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            try:
                self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def _send_events(self, events):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            try:
                for event in events:
                    if stand_in.away:
                        return
                    self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
                self.wfile.write(b"data: [DONE]\n\n")
            except (BrokenPipeError, ConnectionResetError):
                stand_in.left += 1

        def log_message(self, *_):
            pass

    return Handler


if __name__ == "__main__":
    import sys

    from codespec.models.registry import EMBEDDED_TARGET

    print(StandIn(sys.argv[1], EMBEDDED_TARGET, length=2048).url, flush=True)
    threading.Event().wait()
