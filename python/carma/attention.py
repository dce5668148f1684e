"""scaled_dot_product_attention as CUDA runs it. Which kernel runs depends on a GPU that is not there, so the choice is
made here. It is ATen's choice (sdp_utils.cpp) for compute capability 8.0: flash, else memory-efficient, else plain."""

import torch

from carma.versions import autocast_dtype

FLASH_HEAD_LIMIT = 256
MASK_ALIGNMENT = 8  # elements


def _plain_shapes(query, key, value, gqa):
    return query.dim() == key.dim() == value.dim() == 4 and (gqa or query.shape[1] == key.shape[1] == value.shape[1])


def _dense_rows(*tensors):
    return all(tensor.stride(-1) == 1 for tensor in tensors)


def choose(query, key, value, mask, gqa=False):
    """ "flash", "efficient" or "math"."""
    backends = torch.backends.cuda
    heads = {query.shape[-1], key.shape[-1], value.shape[-1]}
    plain = (
        _plain_shapes(query, key, value, gqa) and _dense_rows(query, key, value) and 0 not in query.shape + key.shape
    )
    half = query.dtype in (torch.float16, torch.bfloat16)
    alike = len(heads) == 1 and max(heads) <= FLASH_HEAD_LIMIT
    if plain and half and backends.flash_sdp_enabled() and mask is None and alike:
        return "flash"
    aligned = all(head % (8 if half else 4) == 0 for head in heads)
    efficient = half or query.dtype == torch.float32
    if plain and not gqa and efficient and aligned and backends.mem_efficient_sdp_enabled():
        return "efficient"
    return "math"


def _as_bias(mask, query, key):
    """A Boolean mask becomes one of the query's type; one with unaligned rows is copied into a wider one."""
    if mask is None:
        return None
    if mask.dtype == torch.bool:
        bias = torch.zeros_like(mask, dtype=query.dtype)
        mask = bias.masked_fill_(mask.logical_not(), float("-inf"))
    rows = mask.shape[-1]
    if mask.stride(-1) != 1 or any(stride % MASK_ALIGNMENT for stride in mask.stride()[:-1]):
        wider = torch.nn.functional.pad(mask, (0, -rows % MASK_ALIGNMENT))
        mask = wider[..., :rows]
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])


def _flash(query, key, value, dropout_p, is_causal, scale):
    head = query.shape[-1]
    if head % 8:  # the kernel takes heads of a multiple of 8
        scale = head**-0.5 if scale is None else scale
        query, key, value = (torch.nn.functional.pad(tensor, (0, -head % 8)) for tensor in (query, key, value))
    out = torch.ops.aten._scaled_dot_product_flash_attention(
        query, key, value, dropout_p, is_causal, False, scale=scale
    )[0]
    return out[..., :head]


def as_on_cuda(original):
    def scaled_dot_product_attention(
        query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False
    ):
        dtype = autocast_dtype()
        if dtype is not None:
            query, key, value = (tensor.to(dtype) for tensor in (query, key, value))
            if attn_mask is not None and attn_mask.is_floating_point():
                attn_mask = attn_mask.to(dtype)
        kind = choose(query, key, value, attn_mask, enable_gqa)
        if kind == "flash":
            return _flash(query, key, value, dropout_p, is_causal, scale)
        if kind == "efficient":
            needed = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
            bias = _as_bias(attn_mask, query, key)
            return torch.ops.aten._scaled_dot_product_efficient_attention(
                query, key, value, bias, needed, dropout_p, is_causal, scale=scale
            )[0]
        grouped = {"enable_gqa": True} if enable_gqa else {}  # which older releases do not know
        return torch.ops.aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, **grouped
        )[0]

    return scaled_dot_product_attention
