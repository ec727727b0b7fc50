"""An environment for `verifiers`: the project's problems as tasks, each answer rewarded by its grading.

The library finds the classes in `__all__` by the module's name, `kernel-tasks` on its command line. One model call
answers a task; no code runs but in the fleet's sandboxes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import verifiers.v1 as vf
from kernel_answers import LANGUAGES, Grading, prompt
from openai import AsyncOpenAI
from pydantic import Field

__all__ = ["KernelEnv", "KernelTaskset", "OneCall"]

GRADING = Grading()  # of this process: the library makes a task anew wherever it needs one, from its data alone


class KernelData(vf.TaskData):
    """One problem, and the language that the answer must be in."""

    problem: str
    language: str


class KernelTaskConfig(vf.TaskConfig):
    """What a task reads when it is scored."""

    baseline: str = "eager"
    """The organizers' kernel over which speedups count."""


class KernelTask(vf.Task[KernelData, vf.State, KernelTaskConfig]):
    """To write the kernel of one problem."""

    @vf.reward
    async def speed(self, trace: vf.Trace) -> float:
        """What the answer earns. An error of the harness ends the rollout with an error and without a reward."""
        data = self.data
        answer, problem = trace.last_reply, Path(data.problem)
        return await GRADING.reward(problem, answer, language=data.language, baseline=self.config.baseline)


class KernelConfig(vf.TasksetConfig):
    """Which problems, with `--env.taskset.problems`."""

    task: KernelTaskConfig = KernelTaskConfig()
    folder: Path = Path("problems")
    problems: list[str] = Field(default_factory=list)
    """Names of problems; none: all of the folder."""
    language: str = "py"


class KernelTaskset(vf.Taskset[KernelTask, KernelConfig]):
    """The project's problems, a task each."""

    def load(self) -> Iterator[KernelTask]:
        config = self.config
        if config.language not in LANGUAGES:
            raise ValueError(f"language {config.language!r} is not one of {', '.join(LANGUAGES)}")
        names = config.problems or sorted(file.parent.name for file in config.folder.glob("*/problem.toml"))
        for name in names:
            problem, language = config.folder / name, config.language
            text = prompt(problem, language)
            yield KernelTask(KernelData(name=name, prompt=text, problem=str(problem), language=language), config.task)


class OneCall(vf.Harness[vf.HarnessConfig]):
    """Asks the model once, from this process: nothing else is needed to answer a task."""

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
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        system, text = self.resolve_text_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": text})
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, timeout=None) as client:
            await client.chat.completions.create(model=ctx.model, messages=messages)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


class KernelEnvConfig(vf.EnvConfig):
    """One agent, which needs no machine of its own."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class KernelEnv(vf.Env[KernelEnvConfig]):
    """Keeps the fleet for as long as the environment serves rollouts."""

    async def start(self) -> None:
        await GRADING.open()

    async def stop(self) -> None:
        await GRADING.close()

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        await agents.agent.run(task)
