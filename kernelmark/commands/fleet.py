"""The commands `kernelmark fleet`: start a fleet of several machines, join it, show it, stop it. Trusted."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from harness.errors import UsageError
from kernelmark.commands.help import Group
from kernelmark.commands.options import device_option, form_option, load_settings
from kernelmark.project.documents import print_as
from kernelmark.text.terminal import print_text, say

if TYPE_CHECKING:
    from kernelmark.grading.fleet.cluster.dispatcher import FleetDocument
    from kernelmark.grading.fleet.cluster.machine import RayNode

_block_option = click.option("--block", is_flag=True, help="Stay until interrupted, instead of in the background.")
_idle_option = click.option("--no-grading", is_flag=True, help="This machine only dispatches: it grades nothing.")
_device = device_option("What grades on this machine. [default: its GPUs, or its CPU if it has none]")


@click.group(cls=Group)
def fleet() -> None:
    """Grade on several machines at once."""


@fleet.command()
@click.option("--host", metavar="IP", help="This machine's address, as the other machines see it.")
@click.option("--port", type=click.IntRange(1, 65535), default=6379, show_default=True, help="Where it listens.")
@_device
@_idle_option
@_block_option
def start(host: str | None, port: int, device: str | None, no_grading: bool, block: bool) -> None:
    """Start a fleet with this machine as its first, and write its address to fleet.address.

    Run it in the project's directory. It makes a token if there is none (~/.ray/auth_token). Anyone with the token can
    run any program on the fleet's machines.
    """
    from kernelmark.grading.fleet.cluster import machine

    node, token = machine.start(load_settings(), host, port, _chosen(device, no_grading))
    if token is not None:
        say(f"made a token: copy {token} to the same place on each of the other machines")
    _running(node, block)


@fleet.command()
@click.argument("address")
@_device
@_idle_option
@_block_option
def join(address: str, device: str | None, no_grading: bool, block: bool) -> None:
    """Add this machine to the fleet at ADDRESS: HOST:PORT, or a copy of its file fleet.address.

    Run it in the directory of the same project.
    """
    from kernelmark.grading.fleet.cluster import machine

    _running(machine.join(load_settings(), address, _chosen(device, no_grading)), block)


@fleet.command()
@click.argument("address", default="fleet.address")
@form_option
def status(address: str, form: str) -> None:
    """Show the machines of the fleet at ADDRESS, and what they are grading."""
    from kernelmark.grading.fleet.cluster.machine import find_address, require_token

    found = find_address(address)
    require_token()  # before ray is imported
    from kernelmark.grading.fleet.cluster.dispatcher import examine

    document = examine(found)
    print_as(form, "fleet", document, _lines(document))


@fleet.command()
def stop() -> None:
    """Remove this machine from its fleet in this project; stopping the first machine ends the others within two
    minutes.

    Programs that use the fleet lose the gradings that it has not finished.
    """
    from kernelmark.grading.fleet.cluster import machine

    if not machine.stop(load_settings()):
        raise UsageError("fleet stop", "no fleet of this project runs on this machine")


def _running(node: RayNode, block: bool) -> None:
    say(f"{socket.gethostname()} is in the fleet; on other machines: kernelmark fleet join {node.address}")
    if block:
        node.wait()
    node.log.unlink(missing_ok=True)  # nobody was told of it, and Ray has logs of its own
    print_text(node.address)


def _chosen(device: str | None, no_grading: bool) -> Any:
    if no_grading and device is not None:
        raise UsageError("--no-grading", "excludes --device", "use one of them")
    return None if no_grading else device or load_settings().device


def _lines(document: FleetDocument) -> Iterator[str]:
    from kernelmark.text.terminal import columns, counted, visible

    machines, workers = document["machines"], [dict[str, Any](worker) for worker in document["workers"]]
    yield f"fleet {document['address']}: {counted(len(machines), 'machine')}, {counted(len(workers), 'worker')}"
    rows = []
    for node in machines:
        gpus = f"{node.gpus} × {node.gpu or 'GPU'}" if node.gpus else ""
        rows.append((visible(node.machine), node.address, visible(gpus or ("CPU" if node.cpu else "nothing"))))
    yield from columns(rows, head=("machine", "address", "grades on"))
    if not workers:
        yield "no program uses it now"
        return
    yield ""
    numbers: Any = ("done", "a_minute", "working", "waiting")
    table = list[Sequence[str]]()
    for worker in workers:
        table.append((visible(worker["machine"]), visible(worker["device"]), *(str(worker[key]) for key in numbers)))
    totals = (sum(worker[key] for worker in workers) for key in numbers)
    table.append(("all", "", *(f"{total:.1f}" if isinstance(total, float) else str(total) for total in totals)))
    head = ("worker on", "device", "done", "a minute", "working", "waiting")
    yield from columns(table, head=head, right={2, 3, 4, 5})
