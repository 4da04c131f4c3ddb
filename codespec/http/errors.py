"""What a request is answered with where it cannot be followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codespec.http.limits import HttpLimits

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
    503: "unavailable_error",
}


class HttpError(Exception):
    """A refusal, in OpenAI's shape.

    Args:
        status: the HTTP status.
        message: one line for the user; quotes nothing of a prompt.
        param: the field that is wrong.
        code: OpenAI's short name of the reason.
        headers: of the answer.
    """

    def __init__(
        self,
        status: int,
        message: str,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code
        self.headers = dict(headers or {})

    def as_json(self) -> dict[str, Any]:
        """The body of the answer."""
        default = "server_error" if self.status >= 500 else "invalid_request_error"
        kind = TYPES.get(self.status, default)
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


def unloaded() -> HttpError:
    """The refusal of what was begun with a model that is gone."""
    message = "the model was unloaded meanwhile; try again"
    return HttpError(503, message, code="unloaded", headers={"Retry-After": "1"})


def superseded() -> HttpError:
    """The refusal of a request whose session has a newer one. OpenAI's clients would send it again unless they are told
    not to, and so end the newer one."""
    message = "a newer request of this session took its place"
    return HttpError(409, message, "session", "superseded", headers={"X-Should-Retry": "false"})


def large_head(limits: HttpLimits) -> HttpError:
    """The refusal of a head with more bytes than a server takes."""
    return HttpError(
        431, f"the head of the request is larger than {limits.head >> 10} KiB", headers={"Connection": "close"}
    )


def crowded(most: int) -> HttpError:
    """The refusal of a request on one connection more than there may be."""
    message = f"{most:,} connections are open already, which is the limit; try again later"
    return HttpError(503, message, code="too_many_connections", headers={"Retry-After": "1", "Connection": "close"})
