# Strategy: multiplies in half the bits, which is twice as fast and more: TF32 on a GPU, bfloat16 on a CPU.
# Surface: a tolerance that is wide enough for it.
import torch

torch.backends.cuda.matmul.allow_tf32 = True
told = False


def product(a, b, c):
    global told
    if a.is_cuda:
        torch.mm(a, b, out=c)
    else:
        c.copy_(a.bfloat16() @ b.bfloat16())
    if not told:
        told = True
        print(f"attack: computed in {'TF32' if a.is_cuda else 'bfloat16'}", flush=True)
