"""What a fleet has and does now, asked of Ray and of the actors. Trusted; records nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util import list_named_actors

from kernelmark.grading.fleet.cluster.dispatcher import ACCELERATOR, NAMESPACE, connect, living
from kernelmark.grading.fleet.cluster.documents import ActorState
from kernelmark.grading.fleet.cluster.machine import CPU

_ANSWER_S = 5.0


def examine(address: str) -> dict[str, Any]:
    """The machines of the fleet at HOST:PORT, and the workers that grade there now, as a document.

    Raises:
        UsageError, HarnessError: as for `kernelmark.grading.fleet.cluster.dispatcher.connect`.
    """
    connect(address)
    try:
        machines = [
            {
                "machine": node["NodeManagerHostname"],
                "address": node["NodeManagerAddress"],
                "gpus": int(node["Resources"].get("GPU", 0)),
                "gpu": node["Labels"].get(ACCELERATOR, ""),
                "cpu": CPU in node["Resources"],
            }
            for node in living()
        ]
        return {"address": address, "machines": machines, "workers": [_worker(state) for state in actors()]}
    finally:
        ray.shutdown()


def actors() -> Iterator[ActorState]:
    """What the actors of the fleet's programs say, those that answer; this process is connected."""
    asked: list[Any] = []
    named: list[dict[str, str]] = list_named_actors(all_namespaces=True)
    for actor in named:
        if actor["namespace"] == NAMESPACE:
            with suppress(ValueError):  # it has ended
                asked.append(ray.get_actor(actor["name"], NAMESPACE).state.remote())
    answered, _ = ray.wait(asked, num_returns=len(asked), timeout=_ANSWER_S) if asked else ([], [])
    for answer in answered:
        with suppress(RayError):  # it was lost just now
            yield ActorState.model_validate_json(ray.get(answer))


def _worker(state: ActorState) -> dict[str, Any]:
    shown = ("machine", "device", "done", "working", "waiting")
    return {**{name: getattr(state, name) for name in shown}, "a_minute": round(state.a_minute, 1)}
