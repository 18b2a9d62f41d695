"""Errors of the connection and of the API."""

from __future__ import annotations

from typing import Optional


class ToolyardError(Exception):
    """Any error of this package."""


class ConnectionFailed(ToolyardError):
    """The server cannot be reached, or the connection broke and could not be restored."""


class ApiError(ToolyardError):
    """The server refused a request.

    `status` is the HTTP status (502 if the response is not one of this API). `code` is a stable word such as `run_not_found`; empty if the
    server sent none.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        param: Optional[str] = None,
        retry_after: Optional[float] = None,
        hint: Optional[str] = None,
    ) -> None:
        super().__init__((f"{status} {code}: {message}" if code else f"{status}: {message}") + (f" (hint: {hint})" if hint else ""))
        self.status = status
        self.code = code
        self.message = message
        #: The field or parameter that is wrong, if the server names one.
        self.param = param
        #: Seconds after which the request may be repeated, if the server says so.
        self.retry_after = retry_after
        #: What to do about it, if the server says so.
        self.hint = hint
