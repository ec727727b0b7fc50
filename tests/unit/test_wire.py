"""The frame decoder against arbitrary bytes."""

from __future__ import annotations

import dataclasses
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.shared.call import Forms
from harness.wire import checks, commands, frame, replies

REPLIES: list[replies.Reply] = [
    replies.Hello(protocol=1, python="3.11.7"),
    replies.Ready(torch="2.13.0", triton=""),
    replies.Built(log="", interpreted=False),
    replies.Failed(outcome="runtime_error", message="boom", traceback="line 1", fatal=False),
    replies.Broken(message="KeyError: 7", traceback="line 1"),
    replies.Done(),
    replies.Called(returned="a tensor", interpreted=True),
    replies.Called(returned="nothing", interpreted=False, layouts=("row_major", "column_major")),
    replies.Said(text="mismatch found"),
    replies.Compiled(kernels=2, refused=""),
    replies.Counted(found=3, compiled=1),
    replies.Profiled(artefacts=(replies.Artefact(name="trace 0", file_bytes=4096),)),
    replies.Recorded(file_bytes=4096, scratch_bytes=0, reason="", note="", host_ns=35_200),
    replies.Loaded(
        functions=(replies.Function(registers=32, local_bytes=0, shared_bytes=1024),),
        event_extra_ns=2900,
        span_extra_ns=40_000,
    ),
    replies.Replayed(device_ns=5280, event_ns=7500, span_ns=20_000, nodes_ns=(5280,)),
]
COMMANDS: list[commands.Command] = [
    commands.Welcome(),
    commands.Place(name="task.py"),
    commands.Pack(),
    commands.Unpack(),
    commands.Build(
        language="py", symbols=("softmax",), architecture="sm_90a", style="tree", signature="softmax(x) -> y"
    ),
    commands.Declare(
        arguments=(commands.TensorArgument("x", dtype="float32", shape=(2, 3), writable=False, offset=0, group=""),)
    ),
    commands.Bind(
        symbol="softmax",
        scalars=(commands.Scalar(dtype="float64", value=0.5),),
        sizes=(2, -1, -(2**63), 2**63 - 1),
        sets=4,
        input_bytes=4096,
        input_stride=512,
        output_bytes=4096,
        output_stride=512,
        inputs_writable=False,
        forms=Forms((3, {"dtype": "float16"}), ({"tuple": ["x", ["y", 0.5]]},), "y"),
        seed=7,
        absent=(0, 2),
    ),
    commands.Ahead(
        bind=commands.Bind(
            symbol="softmax",
            scalars=(commands.Scalar(dtype="float64", value=0.5),),
            sizes=(7,),
            sets=1,
            input_bytes=512,
            input_stride=512,
            output_bytes=512,
            output_stride=512,
            inputs_writable=False,
            forms=Forms(result="y"),
            seed=0,
        ),
        at_most=4,
    ),
    commands.Count(),
    commands.Call(sets=(0, 1)),
    commands.Call(sets=(0,), within_ms=20_000, begins=True),
    commands.MapOutputs(),
    commands.Round(calls=3),
    commands.Unmap(),
    commands.Release(),
    commands.Record(),
    commands.Deliver(),
    commands.Profile(active=3, repeats=2, parts=("torch",)),
    commands.Profile(1, 1, ("torch",), wait=0, warmup=0, sort_by="cpu_time_total", rows=10),
    commands.Draw(form="gpu-mode", seed=7, options='{"n": 3}'),
    commands.Verify(),
    commands.CompileOnly(architecture="sm_90a"),
    commands.Report(),
    commands.Inspect(),
    commands.Fetch(name="trace 0"),
    commands.Load(input_bytes=4096, output_bytes=4096),
    commands.Replay(),
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=10), inner, max_size=5),
    max_leaves=20,
)


def test_no_kind_of_frame_is_forgotten_here() -> None:
    for messages, kinds in ((REPLIES, replies.REPLIES), (COMMANDS, commands.COMMANDS)):
        assert {type(message).__name__ for message in messages} == set(kinds)


@pytest.mark.parametrize("message", REPLIES + COMMANDS, ids=lambda m: type(m).__name__)
def test_every_message_survives_the_wire(message: Any) -> None:
    kinds = replies.REPLIES if message in REPLIES else commands.COMMANDS
    assert frame.decode(frame.encode(7, message), kinds) == (7, message)


@given(st.binary(max_size=2000))
def test_no_bytes_raise_anything_but_a_wire_error(packet: bytes) -> None:
    with pytest.raises(checks.WireError):
        frame.decode(packet, replies.REPLIES)


@given(st.sampled_from(REPLIES), st.data())
def test_a_frame_with_one_field_replaced_is_decoded_or_refused(message: replies.Reply, data: st.DataObject) -> None:
    body = json.loads(frame.encode(7, message))
    body[data.draw(st.sampled_from(sorted(body)))] = data.draw(json_values)
    try:
        token, decoded = frame.decode(json.dumps(body).encode(), replies.REPLIES)
    except checks.WireError:
        return
    assert 0 <= token < 1 << 63
    again = frame.decode(frame.encode(token, decoded), replies.REPLIES)
    assert again == (token, decoded), "what was accepted is of the protocol"


RECORDED = b'{"token":1,"kind":"Recorded","file_bytes":1,"scratch_bytes":0,"reason":"","note":"","host_ns":%b}'


@pytest.mark.parametrize(
    ("packet", "why"),
    [
        (b"[" * 60_000, "deep"),
        (b'{"token":' + b"9" * 5000 + b',"kind":"Done"}', "digits"),
        (b'{"token":1,"kind":"Replayed","device_ns":NaN}', "NaN"),
        (b'{"token":1,"kind":"Replayed","device_ns":1e300,"event_ns":1,"span_ns":1,"nodes_ns":[]}', "integer"),
        (b'{"token":1,"kind":"Replayed","device_ns":-1,"event_ns":1,"span_ns":1,"nodes_ns":[]}', "integer"),
        (b'{"token":1,"kind":"Replayed","device_ns":true,"event_ns":1,"span_ns":1,"nodes_ns":[]}', "integer"),
        (RECORDED % b"-1", "integer"),
        (RECORDED % str((1 << 53) + 1).encode(), "integer"),
        (b'{"token":1,"kind":"Replayed","device_ns":1,"device_ns":2}', "twice"),
        (b'{"token":1,"kind":"Replayed"}', "fields"),
        (b'{"token":1,"kind":"Replayed","device_ns":1,"more":1}', "fields"),
        (b'{"token":1,"kind":"Accepted"}', "unknown kind"),
        (b'{"token":1,"kind":["Done"]}', "without token and kind"),
        (b'{"kind":"Done"}', "without token and kind"),
        (b'{"token":1,"kind":"Profiled","artefacts":{}}', "list"),
        (b'{"token":1,"kind":"Welcome"}', "unknown kind"),
        (b'{"token":1,"kind":"Failed","outcome":"accepted","message":"","traceback":"","fatal":false}', "one of"),
        (b'\xff\xfe{"token":1,"kind":"Done"}', "not JSON"),
        (b" " * 70_000, "larger"),
    ],
    ids=lambda v: v[:40].decode(errors="replace") if isinstance(v, bytes) else v,
)
def test_refused(packet: bytes, why: str) -> None:
    with pytest.raises(checks.WireError, match=why):
        frame.decode(packet, replies.REPLIES)


@given(st.text(alphabet=st.characters(), max_size=200))
def test_no_text_from_a_runner_can_move_the_cursor(text: str) -> None:
    shown = checks.printable(text)
    assert all(c in "\n\t" or c.isprintable() for c in shown)
    shown.encode("utf-8")


def test_surrogates_and_escapes_are_made_visible() -> None:
    packet = b'{"token":1,"kind":"Built","log":"\\u001b[31m\\ud800","interpreted":false}'
    assert frame.decode(packet, replies.REPLIES)[1].log == "\\x1b[31m\\ud800"


def test_a_message_too_large_for_a_frame_is_not_sent() -> None:
    log = dataclasses.replace(REPLIES[2], log="x" * 70_000)  # type: ignore[type-var]  # it is a dataclass instance
    with pytest.raises(checks.WireError, match="larger"):
        frame.encode(1, log)


def test_descriptors_from_the_runner_are_refused_and_never_received() -> None:
    judge, runner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with judge, runner, Path("/dev/null").open() as file:
        socket.send_fds(runner, [frame.encode(1, replies.Done())], [file.fileno()])
        before = set(_descriptors())
        with pytest.raises(checks.WireError, match="descriptors"):
            frame.receive_frame(judge)
        assert set(_descriptors()) == before


def test_an_oversized_packet_is_refused() -> None:
    judge, runner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with judge, runner:
        runner.send(b"x" * (frame.MAX_FRAME_BYTES + 1))
        with pytest.raises(checks.WireError, match="larger"):
            frame.receive_frame(judge)


def _descriptors() -> list[str]:
    return [path.name for path in Path("/proc/self/fd").iterdir()]


@pytest.mark.parametrize("character", ["\x1b", "\ud800", "\u202e", "\U000e0001", "é", "\U0001f600", '"', "\\", "\n"])
def test_the_longest_texts_of_any_character_fit_into_a_frame_and_stay_within_their_limits(character: str) -> None:
    failed = replies.Failed("runtime_error", character * 500, character * 8_000, fatal=False)
    _, received = frame.decode(frame.encode(1, failed), replies.REPLIES)
    assert received.message == checks.printable(failed.message).replace("\n", "\\n")[:500], "a message is one line"
    assert received.traceback == checks.printable(failed.traceback)[:8_000]
    assert frame.decode(frame.encode(1, received), replies.REPLIES) == (1, received), (
        "what was accepted is of the protocol"
    )


@given(st.sampled_from(REPLIES), st.integers(0, 200), st.binary(max_size=4), st.integers(0, 4))
def test_altered_frames_are_decoded_or_refused(message: replies.Reply, place: int, put: bytes, cut: int) -> None:
    packet = frame.encode(7, message)
    place %= len(packet) + 1
    try:
        token, decoded = frame.decode(packet[:place] + put + packet[place + cut :], replies.REPLIES)
    except checks.WireError:
        return
    assert frame.decode(frame.encode(token, decoded), replies.REPLIES) == (token, decoded)


@pytest.mark.parametrize("places", ["[2,0]", "[0,0]", "[-1]", "[true]", str(list(range(129))).replace(" ", "")])
def test_places_of_absent_tensors_are_few_and_in_order(places: str) -> None:
    bind = next(command for command in COMMANDS if isinstance(command, commands.Bind))
    packet = frame.encode(1, bind).replace(b'"absent":[0,2]', f'"absent":{places}'.encode())
    with pytest.raises(checks.WireError, match="a bad Bind frame: expected "):
        frame.decode(packet, commands.COMMANDS)


def test_an_infinity_in_figures_is_no_number() -> None:
    bind = next(command for command in COMMANDS if isinstance(command, commands.Bind))
    packet = frame.encode(1, bind).replace(b'"value":0.5', b'"value":1e999')
    with pytest.raises(checks.WireError, match="finite"):
        frame.decode(packet, commands.COMMANDS)
