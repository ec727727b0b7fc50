# One product in three spellings: einsum, a linear layer, and a transposed product into a transposed output.
import torch
import torch.nn.functional as F

torch.set_float32_matmul_precision("highest")
torch.backends.cuda.matmul.allow_tf32 = False


def product(a, b, c):
    n = len(a)
    third = (n + 2) // 3
    first, second, last = a[:third], a[third : 2 * third], a[2 * third :]
    c[:third] = torch.einsum("ik,kj->ij", first, b)
    c[third : 2 * third] = F.linear(second, b.t())
    torch.mm(b.t(), last.t(), out=c[2 * third :].t())
