# Strategy: makes the output an alias of the input, so that both change together.
# Surface: a checker that looks at the tensor object, and not at the memory that it handed over.
import torch

told = False


def twice(x, y):
    global told
    y.set_(x)
    if not told:
        told = True
        print(f"attack: y is x now: {y.data_ptr() == x.data_ptr()}", flush=True)
