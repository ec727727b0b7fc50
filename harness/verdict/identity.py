"""Identifies the problem and the submission of a verdict, and the environment in which it ran."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harness.kinds import DeviceKind, SandboxName, isolates
from harness.submission import BesideName, LanguageName, Submission
from harness.verdict.record import FrozenModel, Sha256


class PrivateId(FrozenModel):
    """Identifies a problem's private cases: the hash of their files, and how many are for the device."""

    sha256: Sha256
    cases: Annotated[int, Field(ge=0)]


class ProblemId(FrozenModel):
    """Identifies a problem.

    The hash covers problem.toml, reference.py and private cases, not schedule or visibility.
    """

    slug: str
    sha256: Sha256
    private: PrivateId | None = None


class SubmissionId(FrozenModel):
    """Identifies a submission. The hash covers the language and the files, not the author or the first file's name."""

    sha256: Sha256
    name: str
    author: str
    language: LanguageName
    size_bytes: Annotated[int, Field(ge=0, description="of all files together")]
    beside: tuple[BesideName, ...] | None = Field(default=None, description="the names of the files beside its own")

    @classmethod
    def of(cls, submission: Submission) -> SubmissionId:
        """The identity of a submission."""
        return cls(
            sha256=submission.sha256,
            name=submission.name,
            author=submission.author,
            language=submission.language,
            size_bytes=submission.size_bytes,
            beside=tuple(name for name, _ in submission.beside) or None,
        )


class Environment(FrozenModel):
    """Where a submission ran. Verdicts from different devices are never ranked in one table."""

    device_kind: DeviceKind
    device_name: str
    device_uuid_sha256: Sha256 | None = None
    driver: str | None = None
    cuda: str | None = None
    power_limit_mw: int | None = None
    sandbox: SandboxName
    image_digest: str | None = None
    interpreted: bool = Field(description="Triton ran in its interpreter: semantics were tested, speed was not")
    python: str
    torch: str
    triton: str | None = None

    @property
    def isolated(self) -> bool:
        """Whether the submission was confined to its sandbox."""
        return isolates(self.sandbox)
