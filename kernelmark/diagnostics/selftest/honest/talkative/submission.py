# Prints, logs and warns a lot, within the limit, at the import and in calls.
import logging
import sys
import warnings

import torch

logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(name)s %(message)s")
log = logging.getLogger("submission")
for line in range(1000):
    print(f"loading {line:4}: {'.' * 80}")
print("\N{SNOWMAN} \x1b[31mred\x1b[0m", file=sys.stderr)
calls = 0


def twice(x, y):
    global calls
    calls += 1
    if calls <= 200:
        print("call", calls, tuple(x.shape), end="\r\n", flush=True)
        log.info("doubling %d numbers", x.numel())
        warnings.warn(f"call {calls} is deprecated", DeprecationWarning, stacklevel=2)
    torch.mul(x, 2, out=y)
