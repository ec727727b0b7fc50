# Strategy: fills the output with one value: zero, one, the greatest, a denormal, infinity, NaN, another in each call.
# Surface: tolerances that let small truths, infinities or NaN pass.
import itertools

VALUES = itertools.cycle([0.0, 1.0, 3.4e38, 1e-40, float("inf"), float("nan")])


def twice(x, y):
    value = next(VALUES)
    y.fill_(value)
    print(f"attack: every element is {value}", flush=True)
