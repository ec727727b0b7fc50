"""adam_multi_tensor in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# params   count × [width ** (2 - index % 3) * (1 + index // 3 % 4)]  float32  inout
# grads    count × [width ** (2 - index % 3) * (1 + index // 3 % 4)]  float32  input
# means    count × [width ** (2 - index % 3) * (1 + index // 3 % 4)]  float32  inout
# squares  count × [width ** (2 - index % 3) * (1 + index // 3 % 4)]  float32  inout


@triton.jit
def compute(
    params, grads, means, squares, rate, beta1, beta2, eps, weight_decay, step, params_elements, means_elements,
    squares_elements, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    params_value = tl.load(params + i, mask=i < params_elements)
    tl.store(params + i, params_value, mask=i < params_elements)
    means_value = tl.load(means + i, mask=i < means_elements)
    tl.store(means + i, means_value, mask=i < means_elements)
    squares_value = tl.load(squares + i, mask=i < squares_elements)
    tl.store(squares + i, squares_value, mask=i < squares_elements)


def adam_multi_tensor(params, grads, means, squares, rate, beta1, beta2, eps, weight_decay, step):
    for index in range(len(params)):
        elements = max(params[index].numel(), means[index].numel(), squares[index].numel())
        compute[(triton.cdiv(elements, 1024),)](
            params[index], grads[index], means[index], squares[index], rate, beta1, beta2, eps, weight_decay, step,
            params[index].numel(), means[index].numel(), squares[index].numel(), BLOCK=1024
        )
