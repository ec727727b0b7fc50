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
from collections.abc import Iterable, Iterator
from pathlib import Path

import kernelmark

PROBLEM, BASELINE = "square", "eager"
ANSWERS = {file.stem: file.read_text() for file in sorted((Path(__file__).parent / "answers").glob("*.py"))}
KNOWN = Path(f"reference/{PROBLEM}/{BASELINE}.py").read_text()
GROUP = 8  # answers in a step, graded side by side
RATE = 0.5
TRIES = 3
WAIT_S = 10.0


def rewards(fleet: kernelmark.Fleet, sources: Iterable[str]) -> dict[str, float]:
    """What each of these answers earns; they are graded side by side.

    After a failure of the harness or the machine it waits, and grades again what failed.

    Raises:
        kernelmark.HarnessError: this machine cannot grade any more, not even the baseline.
        kernelmark.UsageError: this script or the project's settings are wrong, so every answer would fail.
    """
    left, earned = set(sources), dict[str, float]()
    for attempt in range(TRIES):
        if attempt:
            time.sleep(WAIT_S)
        for result in grade(fleet, left):
            if result.verdict is not None:
                earned[str(result.job.submission)] = kernelmark.reward(result.verdict, BASELINE)
            elif isinstance(result.error, kernelmark.SubmissionError):  # too long, or not text: the answer's own fault
                earned[str(result.job.submission)] = 0.0
            elif isinstance(result.error, kernelmark.UsageError):
                raise result.error
        left -= earned.keys()
        if not left:
            return earned
    for result in grade(fleet, [KNOWN]):
        if result.error is not None:
            raise result.error
    return earned | dict.fromkeys(left, 0.0)  # the machine works, so these answers make their gradings fail


def grade(fleet: kernelmark.Fleet, sources: Iterable[str]) -> Iterator[kernelmark.JobResult]:
    """Grade each source as fast as that is possible: until its first test that fails, and with one timed case."""
    jobs = [kernelmark.Job(problem=PROBLEM, submission=source) for source in sources]
    return fleet.grade_many(jobs, effort="screen", baselines=[BASELINE])


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

    def learn(self, names: list[str], earned: list[float]) -> None:
        """Move probability to the answers that are better than their group, by how many standard deviations."""
        mean, deviation = statistics.fmean(earned), statistics.pstdev(earned)
        for name, value in zip(names, earned, strict=True):
            self._logits[name] += RATE * (value - mean) / deviation if deviation else 0.0


def main() -> None:
    """Train, and print what each answer earned and how likely it has become."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    policy, known = Policy(arguments.seed), dict[str, float]()
    with kernelmark.Fleet() as fleet:
        for step in range(arguments.steps):
            names = policy.sample()
            known |= rewards(fleet, {ANSWERS[name] for name in names} - known.keys())
            earned = [known[ANSWERS[name]] for name in names]
            policy.learn(names, earned)
            print(f"step {step:3}  mean reward {statistics.fmean(earned):.3f}", flush=True)
    for name, probability in policy.probabilities().items():
        print(f"{name:<12} reward {known.get(ANSWERS[name], math.nan):.3f}  probability {probability:.3f}")


if __name__ == "__main__":
    main()
