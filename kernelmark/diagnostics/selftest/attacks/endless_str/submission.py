# Strategy: raises an exception that can neither be named nor shown: its text never ends, and its class's name raises.
# Surface: whoever makes a message of an exception, and waits for that.
import time


class Nameless(type):
    @property
    def __name__(cls):
        raise SystemExit(0)


class Endless(Exception, metaclass=Nameless):
    def __str__(self):
        print("attack: an exception's text never ends", flush=True)
        while True:
            time.sleep(1)


def twice(x, y):
    raise Endless
