"""The body of an error response (RFC 9457), and the exception that carries it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from harness.errors import said

MEDIA_TYPE = "application/problem+json"
VERSION_HEADER = "Kernelmark-Version"
"""The header of every answer that names the server's version."""
WORKER_STARTING = "worker-starting"
"""The code of a refusal that soon ends: the worker on the server's own machine, which is the first, is starting."""
UNKNOWN_FIELD = "unknown-field"
"""The code of a refusal of a request that has a field of another version."""


class RefusalDocument(BaseModel):
    """The body of every answer that is an error. `type`, `title`, `status` and `detail` are those of RFC 9457."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str
    """`urn:kernelmark:` and the code, such as `urn:kernelmark:limit-reached`. Codes do not change."""
    title: str
    """What is wrong, in one line."""
    status: int
    detail: str
    """The whole line as a command would print it: where, what, and the remedy."""
    where: str
    """What is wrong: a field, a header, a run."""
    remedy: str
    retry_after_s: int | None = None


RefusalStatus = Literal[400, 401, 403, 404, 405, 408, 409, 410, 411, 413, 415, 421, 422, 429, 500, 503]


class Refusal(Exception):
    """A request that is refused; the server answers with its document, and the client raises it as a `UsageError`."""

    def __init__(
        self,
        status: RefusalStatus,
        code: str,
        where: str,
        what: str,
        remedy: str,
        *,
        retry_after_s: int | None = None,
    ) -> None:
        """
        Args:
            code: of lower-case letters and dashes; it names this kind of refusal for programs, and does not change.
            where, what, remedy: as for `harness.errors.UsageError`.
            retry_after_s: after how many seconds the same request may succeed.
        """
        self.status, self.code, self.where, self.what, self.remedy = status, code, where, what, remedy
        self.retry_after_s = retry_after_s
        super().__init__(f"{said(where, what)}; {remedy}")

    @property
    def document(self) -> RefusalDocument:
        return RefusalDocument(
            type=f"urn:kernelmark:{self.code}",
            title=said(self.where, self.what),
            status=self.status,
            detail=str(self),
            where=self.where,
            remedy=self.remedy,
            retry_after_s=self.retry_after_s,
        )
