"""What a fleet has and does now, asked of Ray and of the actors. Trusted; records nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util import list_named_actors

from kernelmark.grading.fleet.cluster.dispatcher import ACCELERATOR, NAMESPACE, connect
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
        return {"address": address, "machines": list(_machines()), "workers": [_worker(each) for each in actors()]}
    finally:
        ray.shutdown()


def _machines() -> Iterator[dict[str, Any]]:
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    for node in nodes:
        if node["Alive"]:
            yield {
                "machine": node["NodeManagerHostname"],
                "address": node["NodeManagerAddress"],
                "gpus": int(node["Resources"].get("GPU", 0)),
                "gpu": node["Labels"].get(ACCELERATOR, ""),
                "cpu": CPU in node["Resources"],
            }


def actors() -> Iterator[ActorState]:
    """What the actors of the fleet's programs say, those that answer; this process is connected."""
    named: list[dict[str, str]] = list_named_actors(all_namespaces=True)
    asked: list[Any] = []
    for each in named:
        if each["namespace"] == NAMESPACE:
            try:
                asked.append(ray.get_actor(each["name"], NAMESPACE).state.remote())
            except ValueError:
                continue  # it has ended
    answered, _ = ray.wait(asked, num_returns=len(asked), timeout=_ANSWER_S) if asked else ([], [])
    for answer in answered:
        try:
            document: bytes = ray.get(answer)
        except RayError:
            continue  # it was lost just now
        yield ActorState.model_validate_json(document)


def _worker(state: ActorState) -> dict[str, Any]:
    return {
        "machine": state.machine,
        "device": state.device,
        "done": state.done,
        "a_minute": round(state.a_minute, 1),
        "working": state.working,
        "waiting": state.waiting,
    }
