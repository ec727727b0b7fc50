"""An environment for `verifiers`: the project's problems as tasks, each answer rewarded by its grading.

The library finds the classes by the package's name, `kernel-tasks` on its command line. The model answers, gets the
messages of the compiler and the checker, and answers again. Its code runs only in the fleet's sandboxes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import verifiers.v1 as vf
from openai import AsyncOpenAI
from pydantic import Field

import kernelmark
from kernel_tasks.dataset import LANGUAGES, Split, problems, prompt
from kernel_tasks.grading import Grading

_gradings: dict[Path, Grading] = {}  # by project, in a global: the library makes new tasks, which must find the fleet


class KernelData(vf.TaskData):
    """One problem, the language that the answer must be in, and the kernel over which speedups count."""

    project: str
    problem: str
    language: str
    baseline: str


class KernelTaskConfig(vf.TaskConfig):
    """The settings of a task."""

    baseline: str = "eager"
    """The organizers' kernel over which speedups count."""


class KernelTask(vf.Task[KernelData, vf.State, KernelTaskConfig]):
    """The task of writing the kernel of one problem."""

    @vf.reward
    async def speed(self, trace: vf.Trace) -> float:
        """The reward of the last answer. An error of the harness ends the rollout with an error, without a reward."""
        data = self.data
        grading = _gradings[Path(data.project)]
        graded = await grading.grade(data.problem, trace.last_reply, language=data.language, baseline=data.baseline)
        return graded.reward


class KernelConfig(vf.TasksetConfig):
    """Which problems, with `--env.taskset.split` or `--env.taskset.problems`."""

    task: KernelTaskConfig = KernelTaskConfig()
    project: Path = Path()
    """The folder of a kernelmark project."""
    split: Split = "train"
    problems: list[str] = Field(default_factory=list)
    """Names of problems; none: all of the split."""
    language: str = "py"


class KernelTaskset(vf.Taskset[KernelTask, KernelConfig]):
    """The project's problems, a task each."""

    def load(self) -> Iterator[KernelTask]:
        config = self.config
        if config.language not in LANGUAGES:
            raise ValueError(f"language {config.language!r} is not one of {', '.join(LANGUAGES)}")
        project = kernelmark.Project.around(config.project)
        for name in config.problems or problems(project, config.split):
            given = {"problem": name, "language": config.language, "baseline": config.task.baseline}
            text = prompt(project.problem(name), config.language)
            yield KernelTask(KernelData(name=name, prompt=text, project=str(project.root), **given), config.task)


class TurnsConfig(vf.HarnessConfig):
    """How long a rollout is, with `--env.agent.harness.turns`."""

    turns: int = Field(default=3, ge=1)
    """How many answers the model may give; with 1 it gets no feedback."""


class SeveralTurns(vf.Harness[TurnsConfig]):
    """Asks the model for an answer, sends it feedback, and asks again. Runs in this process."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: KernelData,
    ) -> vf.ProgramResult:
        system, text = self.resolve_text_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": text})
        grading = _gradings[Path(data.project)]
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, timeout=None) as client:
            for left in reversed(range(self.config.turns)):
                reply = await client.chat.completions.create(model=ctx.model, messages=messages)
                answer = reply.choices[0].message.content or ""
                if left:
                    own = {"language": data.language, "baseline": data.baseline}
                    said = (await grading.grade(data.problem, answer, **own)).said
                    messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": said}]
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


class KernelEnvConfig(vf.EnvConfig):
    """One agent, which needs no machine of its own."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig(), harness=TurnsConfig(id="kernel-tasks"))


class KernelEnv(vf.Env[KernelEnvConfig]):
    """Keeps the fleet running for as long as the environment serves rollouts."""

    async def start(self) -> None:
        grading = Grading(self.taskset.config.project)
        await grading.open()
        _gradings[grading.project.root] = grading

    async def stop(self) -> None:
        while _gradings:
            await _gradings.popitem()[1].close()

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        await agents.agent.run(task)
