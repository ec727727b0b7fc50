"""The worker's own checkout of the project, and what a server's task means in it. Trusted; tasks are not.

Here a task is refused that asks for something else than this project's problems as they are.
"""

from __future__ import annotations

import secrets
from pathlib import Path, PurePath

from harness.errors import KernelmarkError, UsageError
from harness.files.identity import with_private_cases
from harness.kinds import DeviceKind, Effort, SandboxName
from harness.problem.load import check_foreign_files, identify, private_sha256
from harness.submission import Submission
from kernelmark.grading.fleet.messages import JobRequest
from kernelmark.project.problems import private_folder, problem_directories
from kernelmark.project.settings import ReadSettings
from kernelmark.service.submissions import Mode
from kernelmark.service.work import ProblemHashes, Task
from kernelmark.text.terminal import warn

_EFFORTS: dict[Mode, Effort] = {"check": "default", "screen": "screen"}
"""Of the modes that have but one."""


class TaskRefused(Exception):
    """This worker does not grade the task; another one, or another version of its checkout, may."""

    def __init__(self, error: UsageError) -> None:
        self.error = error
        super().__init__(str(error))


class Checkout:
    """The project of a worker, whose files may change at any time."""

    def __init__(self, root: Path, **flags: object) -> None:
        """`flags` are settings that override the project's.

        Raises:
            SettingsError: a setting is not valid.
        """
        self._read = ReadSettings(root, **flags)
        self.settings = self._read()
        self._said, self._told = dict[str, str](), dict[str, ProblemHashes]()

    def refresh(self) -> bool:
        """Read the settings again; if they are not valid any more, those of before count.

        Returns:
            Whether they are valid again. Judges that have started meanwhile could grade nothing.
        """
        before = self._read.fault
        self.settings = self._read()
        if self._read.fault:
            self._say("", f"{self._read.fault}; the settings are not read again")
        else:
            self._said.pop("", None)
        return before is not None and self._read.fault is None

    def problems(self) -> dict[str, ProblemHashes]:
        """The hashes of all problems, by their slugs; of one that cannot be read it is said why, once."""
        found = {}
        for directory in problem_directories(self.settings):
            try:
                found[directory.name] = self._hashes(directory)
                self._said.pop(directory.name, None)
            except KernelmarkError as error:
                self._say(directory.name, f"{error}; this worker grades no submission to it")
        self._told = found
        return found

    def request(self, task: Task, device: DeviceKind, sandbox: SandboxName) -> JobRequest:
        """What a judge is asked, for this task.

        Raises:
            TaskRefused: the task is for a problem that is not here, or not as here, or has a name that no file has.
            UsageError: the submission is one that no worker grades.
        """
        hashes = self._hashes_of(task.problem)
        if hashes.public != task.problem_sha256:
            what = "is another version than this worker has"
            raise TaskRefused(UsageError(task.problem, what, "give server and workers the same version"))
        if hashes != self._told.get(task.problem, hashes):  # such as the private cases, at the end of a phase
            what = "has changed here since the server was told which version this is"
            raise TaskRefused(UsageError(task.problem, what, "the server is told now"))
        return JobRequest(
            run=task.run,
            problem=task.problem,
            problem_sha256=_whole(hashes, final=task.final),
            final=task.final,
            submission=_submission(task),
            effort=_EFFORTS.get(task.mode, task.effort),
            baselines=() if task.mode == "check" else self.settings.baselines,
            device=device,
            sandbox=sandbox,
            timed=task.mode != "check",
            hidden=task.mode == "submit" or self.settings.server.checks_hidden,
            progress=True,
        )

    def has_changed(self, task: Task, request: JobRequest) -> bool:
        """Whether the problem of a task is another one than when it was handed over."""
        try:
            return _whole(self._hashes_of(task.problem), final=task.final) != request.problem_sha256
        except TaskRefused:
            return True

    def trial(self, other_than: str, device: DeviceKind, sandbox: SandboxName) -> JobRequest | None:
        """A check of a kernel that is right, for the worker to try itself by; None if `reference/` has none.

        Not of the problem `other_than`, if there is another.
        """
        problems, reference = self.problems(), self.settings.locate("reference")
        for slug in sorted(problems, key=lambda slug: (slug == other_than, slug)):
            file = reference / slug / "eager.py"
            if file.is_file():
                return JobRequest(
                    run=secrets.token_hex(8),
                    problem=slug,
                    problem_sha256=_whole(problems[slug], final=False),
                    submission=Submission.read(file, "baseline"),
                    effort="default",
                    baselines=(),
                    device=device,
                    sandbox=sandbox,
                    timed=False,
                    hidden=False,
                )
        return None

    def _hashes_of(self, slug: str) -> ProblemHashes:
        for directory in problem_directories(self.settings):
            if directory.name == slug:
                try:
                    return self._hashes(directory)
                except UsageError as error:
                    raise TaskRefused(error) from error
        raise TaskRefused(UsageError(slug, "no problem of this worker", "give its checkout this problem"))

    def _hashes(self, directory: Path) -> ProblemHashes:
        private, public = private_folder(self.settings), identify(directory)
        # A file that was not found is looked for where it should be, and not each minute in the whole checkout.
        check_foreign_files(directory, self.settings.checkouts, search=directory.name not in self._said)
        return ProblemHashes(
            public=public,
            private=private_sha256(directory, private, final=False),
            final_public=public,
            final_private=private_sha256(directory, private, final=True),
        )

    def _say(self, about: str, text: str) -> None:
        if self._said.get(about) != text:
            warn(text)
        self._said[about] = text


def _whole(hashes: ProblemHashes, *, final: bool) -> str:
    """The hash as a verdict has it, of the private cases, too."""
    private = hashes.final_private if final else hashes.private
    return with_private_cases(hashes.public, private) if private else hashes.public


def _submission(task: Task) -> Submission:
    if task.name != PurePath(task.name).name or not task.name.isprintable():
        raise TaskRefused(UsageError("name", f"{task.name!r} is not a file's name", "the server must not send such"))
    if task.mode == "submit" and task.effort == "screen":
        raise TaskRefused(UsageError("effort screen", "times one benchmark case, and so cannot rank"))
    beside = {file.name: file.content for file in task.beside}
    if len(beside) < len(task.beside):
        raise TaskRefused(UsageError("beside", "has two files of one name", "the server must not send such"))
    return Submission.of(task.source, task.language, author=task.author, name=task.name, beside=beside)
