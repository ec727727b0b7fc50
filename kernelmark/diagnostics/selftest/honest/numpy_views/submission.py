# NumPy on views of the tensors' memory.
import numpy as np


def twice(x, y):
    np.multiply(x.numpy(), np.float32(2), out=y.numpy())
