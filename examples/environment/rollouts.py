"""Tries the environment without a model: a server of canned answers stands in its place.

PYTHONPATH=examples/environment python examples/environment/rollouts.py        in the root of the repository
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import verifiers.v1 as vf

PROBLEM = "square"
ANSWERS = [
    f"This is what PyTorch does:\n\n```python\n{Path(f'reference/{PROBLEM}/eager.py').read_text()}```\n",
    "Through float64, to be safe:\n\n```python\ndef square(x, y):\n    y.copy_((x.double() ** 2).float())\n```\n",
    "```python\ndef square(x, y):\n    y[:4096] = x[:4096] ** 2\n```\n",
    "```python\ndef square(x, y):\n    y.copy_(x + x)\n```\n",
    "I would multiply each element by itself.",
    "```python\ndef square(x, y):\n    torch.mul(x, x, out=",
]


class ScriptedModel(BaseHTTPRequestHandler):
    """Answers each request with the next of `ANSWERS`, in the form of OpenAI's chat completions."""

    answers = itertools.cycle(ANSWERS)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": next(self.answers)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = json.dumps(
            {"id": "1", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice]}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Say nothing: the rewards are what is printed."""


async def main() -> None:
    """Roll out one task once an answer, all at a time, and print what each answer earned."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), ScriptedModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = vf.resolve_env_config({"taskset": {"id": "kernel-tasks", "problems": [PROBLEM]}})
    env = vf.load_environment(config)
    model = vf.ModelContext("scripted", vf.EvalClientConfig(base_url=f"http://127.0.0.1:{server.server_port}/v1"))
    (task,) = env.taskset
    async with env.serving():
        episodes = await asyncio.gather(*(env.run_slot(slot, model) for slot in env.slots(task, len(ANSWERS))))
    for trace in sorted((trace for episode in episodes for trace in episode.traces), key=lambda trace: -trace.reward):
        said = " ".join(trace.last_reply.split())
        print(f"{trace.reward:.3f}  {said[:90]}" if trace.ok else f"error  {trace.errors}")


if __name__ == "__main__":
    asyncio.run(main())
