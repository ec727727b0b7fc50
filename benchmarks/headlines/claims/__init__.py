"""The claims, in the order in which they are measured: what has never been measured, or is short, first."""

from benchmarks.headlines.claims import (
    block_sparse,
    dynamic_int8,
    events,
    fused_optimizer,
    gelu,
    int8_weight_only,
    max_autotune,
    per_token,
    pow_square,
    softmax,
    sparse_inference,
    sparse_runtime,
    split_k,
    square_autotune,
    zero_copy,
)

_MODULES = (
    gelu, softmax, square_autotune, pow_square, dynamic_int8, int8_weight_only, per_token, sparse_inference,
    sparse_runtime, block_sparse, split_k, fused_optimizer, zero_copy, events, max_autotune,
)  # fmt: skip
CLAIMS = {module.CLAIM.name: module.CLAIM for module in _MODULES}
