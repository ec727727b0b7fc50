"""Tries the environment without a model: a local server plays it, with three prepared answers for each rollout.

python environments/kernel_tasks/rollouts.py        in the root of the repository
"""

from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import verifiers.v1 as vf

PROBLEM = "square"
WRONG = "```python\ndef square(x, y):\n    y.copy_(x + x)\n```\n"
PARTLY = "```python\ndef square(x, y):\n    y[:4096] = x[:4096] ** 2\n```\n"
SLOW = "Through float64:\n\n```python\ndef square(x, y):\n    y.copy_((x.double() ** 2).float())\n```\n"
EAGER = f"What PyTorch does:\n\n```python\n{Path(f'reference/{PROBLEM}/eager.py').read_text()}```\n"
CUT_OFF = "```python\ndef square(x, y):\n    torch.mul(x, x, out="
ROLLOUTS = [[WRONG, SLOW, EAGER], [PARTLY, CUT_OFF, SLOW], ["I would multiply.", WRONG, PARTLY]]


class ScriptedModel(BaseHTTPRequestHandler):
    """Serves OpenAI's chat completions. A request's messages tell which rollout it is, and which answer is next."""

    begun = iter(ROLLOUTS)
    lock = threading.Lock()

    def do_POST(self) -> None:
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        given = [message["content"] for message in messages if message["role"] == "assistant"]
        with self.lock:
            rollout = next((one for one in ROLLOUTS if given and one[: len(given)] == given), None) or next(self.begun)
        message = {"role": "assistant", "content": rollout[len(given)]}
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
        """Print nothing, so that the output has the rollouts only."""


async def main() -> None:
    """Play all rollouts at the same time, and print the messages and the reward of each."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), ScriptedModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = vf.resolve_env_config({"taskset": {"id": "kernel-tasks", "problems": [PROBLEM]}})
    env = vf.load_environment(config)
    model = vf.ModelContext("scripted", vf.EvalClientConfig(base_url=f"http://127.0.0.1:{server.server_port}/v1"))
    (task,) = env.taskset
    async with env.serving():
        episodes = await asyncio.gather(*(env.run_slot(slot, model) for slot in env.slots(task, len(ROLLOUTS))))
    for trace in sorted((trace for episode in episodes for trace in episode.traces), key=lambda trace: -trace.reward):
        print(f"{trace.reward:.3f}" if trace.ok else f"error  {trace.errors}")
        for message in trace.messages[1:]:
            print(f"    {message.role}: {' '.join(str(message.content).split())[:150]}")


if __name__ == "__main__":
    asyncio.run(main())
