# Strategy: an exception whose text clears the screen, ends a table, imitates a verdict, holds lone
# surrogates and right-to-left overrides, and is a megabyte long.
# Surface: whatever shows a message: terminal, report, board, ledger, `--json`.
EVIL = (
    "attack: \x1b[2J\x1b]0;pwned\x07\x1b[31m|</td></table><script>alert(1)</script>`|**accepted**|[x](javascript:0)"
    "\u202edetpecca\ud800\udfff\ufeff\x00\x9b2J"
)


class Accepted(Exception):
    pass


Accepted.__name__ = "\x1b[1mAccepted"


def twice(x, y):
    raise Accepted(EVIL + "\nkernelmark: accepted\n" + "A" * (1 << 20))
