"""A training loop in small: a policy learns which kernel to write, from gradings alone.

    python examples/training/train.py --steps 20        in the root of kernelmark's repository

The files in answers/ stand for what a model writes: fast, slow, wrong and unfinished. The policy has one logit for
each. A model would generate text in place of `Policy.sample`, and take its gradient in place of `Policy.learn`.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from functools import cache
from pathlib import Path

import kernelmark

PROBLEM, BASELINE = "square", "eager"
ANSWERS = {file.stem: file.read_text() for file in sorted((Path(__file__).parent / "answers").glob("*.py"))}
KNOWN = Path(f"reference/{PROBLEM}/{BASELINE}.py").read_text()
GROUP = 4  # answers in a step
RATE = 2.0
TRIES = 3
WAIT_S = 10.0


@cache  # an answer that was given before is not graded again
def reward(source: str) -> float:
    """The speedup over PyTorch's kernel; 0 for an answer that is wrong, fails, cheats, or escapes the exact timing.

    Raises:
        kernelmark.HarnessError: this machine cannot grade any more, not even the baseline.
        kernelmark.UsageError: this script or the project's settings are wrong, so every answer would fail.
    """
    try:
        verdict = grade(source)
    except kernelmark.SubmissionError:  # too long, or not text: the answer's own fault, too
        return 0.0
    except kernelmark.HarnessError:
        grade(KNOWN)  # raises if the machine is broken; else it was the answer that made its gradings fail
        return 0.0
    if verdict.outcome is not kernelmark.Outcome.ACCEPTED:  # `unsupported` too: an answer can cause it on a CPU
        return 0.0
    if verdict.environment.device_kind == "cuda" and verdict.timing != "replayed":
        return 0.0  # an answer can prevent replays, and sealed rounds can be cheated
    return verdict.speedups[0].ratio.median if verdict.speedups else 0.0


def grade(source: str) -> kernelmark.Verdict:
    """Grade one answer; after a failure of the harness or the machine wait, and try again.

    Raises:
        kernelmark.HarnessError: the last of `TRIES` tries failed as well.
    """
    for _ in range(TRIES - 1):
        try:
            return kernelmark.grade(PROBLEM, source, effort="quick", baselines=[BASELINE])
        except kernelmark.HarnessError:
            time.sleep(WAIT_S)
    return kernelmark.grade(PROBLEM, source, effort="quick", baselines=[BASELINE])


class Policy:
    """A probability for each answer, by the softmax of the logits."""

    def __init__(self, seed: int) -> None:
        self._logits = dict.fromkeys(ANSWERS, 0.0)
        self._random = random.Random(seed)

    def probabilities(self) -> dict[str, float]:
        """Of each answer, by its name."""
        powers = {name: math.exp(logit) for name, logit in self._logits.items()}
        return {name: power / sum(powers.values()) for name, power in powers.items()}

    def sample(self) -> list[str]:
        """The names of one group of answers."""
        probabilities = self.probabilities()
        return self._random.choices(list(probabilities), list(probabilities.values()), k=GROUP)

    def learn(self, names: list[str], rewards: list[float]) -> None:
        """Move probability to the answers that are better than their group."""
        mean = statistics.fmean(rewards)
        for name, value in zip(names, rewards, strict=True):
            self._logits[name] += RATE * (value - mean)


def main() -> None:
    """Train, and print what each answer earned and how likely it has become."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    policy, earned = Policy(arguments.seed), dict[str, float]()
    for step in range(arguments.steps):
        names = policy.sample()
        rewards = [reward(ANSWERS[name]) for name in names]
        policy.learn(names, rewards)
        earned |= zip(names, rewards, strict=True)
        print(f"step {step:3}  mean reward {statistics.fmean(rewards):.3f}")
    for name, probability in policy.probabilities().items():
        print(f"{name:<12} reward {earned.get(name, math.nan):.3f}  probability {probability:.3f}")


if __name__ == "__main__":
    main()
