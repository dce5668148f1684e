"""The recorder's knowledge of single operators: convolutions, matrix products and kinds. It also knows the memory that
CUDA kernels take and give back inside one operator, which no trace of operators shows."""

import math

import torch

from carma.errors import CaptureError
from carma.versions import tensors_in, torch_version

# cuBLAS takes its workspace from the caching allocator: 4096 KiB twice and 16 KiB eight times (the default
# of CUBLAS_WORKSPACE_CONFIG below Hopper, ATen/cuda/CublasHandlePool.cpp).
CUBLAS_WORKSPACE_BYTES = (2 * 4096 + 8 * 16) * 1024

GEMMS = frozenset(["mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "_addmm_activation"])
NORMS = frozenset([
    "native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm", "miopen_batch_norm", "_batch_norm_with_update",
    "native_layer_norm", "native_group_norm", "_fused_rms_norm",
])  # fmt: skip
DROPOUTS = frozenset(["native_dropout", "bernoulli_"])
ACTIVATIONS = frozenset([
    "relu", "relu_", "threshold", "leaky_relu", "leaky_relu_", "prelu", "_prelu_kernel", "elu", "elu_", "selu", "selu_",
    "celu", "celu_", "gelu", "gelu_", "silu", "silu_", "mish", "mish_", "softplus", "tanh", "tanh_", "sigmoid",
    "sigmoid_", "hardtanh", "hardtanh_", "hardswish", "hardswish_", "hardsigmoid", "hardsigmoid_", "relu6", "glu",
])  # fmt: skip
ATTENTIONS = frozenset([
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_cudnn_attention", "_softmax", "_safe_softmax",
])  # fmt: skip
# They write in place, and give nothing. Not every release knows that of fakes: 2.4 does of Adam alone.
OPTIMIZERS = frozenset(["_fused_sgd_", "_fused_adagrad_", "_fused_adam_", "_fused_adamw_"])

_names = {}


def name_of(func):
    """ "relu" of aten.relu.default."""
    name = _names.get(func)
    if name is None:
        name = _names[func] = func._schema.name.split("::")[-1]
    return name


def _convolution_backward(grad, source, weight, bias_sizes, *rest):
    mask = rest[-1]
    return (
        torch.empty_like(source) if mask[0] else None,
        torch.empty_like(weight) if mask[1] else None,
        torch.empty(bias_sizes, dtype=grad.dtype, device=grad.device) if mask[2] else None,
    )


def _like_source(grad, source, *rest):
    return torch.empty_like(source)


# Operators without shapes in 1.13 unless they run.
SHAPES = {
    "convolution_backward": _convolution_backward,
    "_adaptive_avg_pool2d_backward": _like_source,
    "_adaptive_avg_pool3d_backward": _like_source,
} if torch_version() == (1, 13) else {}  # fmt: skip


def run(func, name, args, kwargs):
    """The operator on fakes; a CaptureError where its result's size depends on values, which fakes do not have."""
    try:
        return SHAPES.get(name, func)(*args, **kwargs)
    except NotImplementedError:
        raise CaptureError(
            f"{name}: torch {torch.__version__} does not tell its result's size without running it; a newer release may"
        ) from None
    except Exception as error:
        if type(error).__name__ in ("DynamicOutputShapeException", "DataDependentOutputException"):
            raise CaptureError(
                f"{name}: its result depends on the values of tensors, which a capture does not have: "
                "record a model whose sizes do not depend on its data"
            ) from None
        raise


def is_no_copy(args, kwargs):
    """_to_copy with nothing to change: on a GPU to() would have returned its input."""
    tensor = args[0]
    return (
        kwargs.get("dtype") in (None, tensor.dtype)
        and (kwargs.get("device") is None or kwargs["device"].type == tensor.device.type)
        and kwargs.get("memory_format") in (None, torch.preserve_format)
    )


# Convolutions

FORWARD, BACKWARD_DATA, BACKWARD_WEIGHT = "f", "d", "w"


def _spread(values, rank):
    values = list(values)
    return tuple(values * rank if len(values) == 1 else values)


def _geometry(kind, source, weight, stride, padding, dilation, transposed, groups, out_shape):
    rank = source.dim() - 2
    channels = (
        (weight.shape[0], weight.shape[1] * groups) if transposed else (weight.shape[1] * groups, weight.shape[0])
    )
    return {
        "pass": kind,
        "transposed": int(transposed),
        "element_bytes": source.element_size(),
        "batch": source.shape[0],
        "channels": tuple(channels),
        "groups": groups,
        "in": tuple(source.shape[2:]),
        "out": tuple(out_shape[2:]),
        "kernel": tuple(weight.shape[2:]),
        "stride": _spread(stride, rank),
        "padding": _spread(padding, rank),
        "dilation": _spread(dilation, rank),
    }


def convolutions(name, args, kwargs, outputs):
    """Which convolution runs after which of the operator's outputs was allocated: {output: geometry}."""
    if name == "convolution":
        source, weight, _, stride, padding, dilation, transposed, _, groups = args
        return {0: _geometry(FORWARD, source, weight, stride, padding, dilation, transposed, groups, outputs[0].shape)}
    if name == "convolution_backward":
        grad, source, weight, _, stride, padding, dilation, transposed, _, groups, mask = args
        geometry = (source, weight, stride, padding, dilation, transposed, groups, grad.shape)
        found = {}
        if mask[0]:
            found[0] = _geometry(BACKWARD_DATA, *geometry)
        if mask[1]:
            found[int(mask[0])] = _geometry(BACKWARD_WEIGHT, *geometry)
        return found
    return {}


# Memory inside one operator: (name, inputs, outputs) -> sizes in bytes, taken together and given back at its end.


def _round_up(value, multiple):
    return -(-value // multiple) * multiple


def _embedding_backward(args, kwargs, outputs):
    """embedding_dense_backward_cuda sorts the indices when there are more than 3072. That takes the sorted indices,
    their old places, and the sort's own copies of both (8 bytes each). Then come the bounds of the segments."""
    indices = args[1]
    return [8 * indices.numel()] * 5 if indices.numel() > 3072 else []


def _efficient_backward(args, kwargs, outputs):
    """fp32: the kernel does not compute delta itself: grad_out * out is made in full before it is summed
    (attention_backward.cu, kKernelComputesDelta)."""
    out = args[5]
    delta = 4 * math.prod(out.shape[:-1])
    return [4 * out.numel(), delta] if out.dtype == torch.float32 else [delta]


def _flash_backward(args, kwargs, outputs):
    """dq is added up in fp32 over rows rounded to 128 and a head rounded to 32; softmax_d is one value per row
    (flash_api.cpp, mha_bwd)."""
    batch, heads, length, head = args[1].shape
    rows = batch * heads * _round_up(length, 128)
    return [4 * rows * _round_up(head, 32), 4 * rows]


SCRATCH = {
    "embedding_dense_backward": _embedding_backward,
    "_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "_scaled_dot_product_flash_attention_backward": _flash_backward,
}


def scratch(name, args, kwargs, outputs):
    rule = SCRATCH.get(name)
    return rule(args, kwargs, outputs) if rule else ()


# Kinds and work


class Counts:
    """The parts of one forward pass."""

    def __init__(self):
        self.convolutions = self.linears = self.norms = self.dropouts = self.activations = self.attentions = 0
        self.layers = self.activation_elements = 0
        self.work = {}  # multiply-adds times two, by type

    @property
    def flops(self):
        return sum(self.work.values())

    def add_work(self, dtype, flops):
        self.work[dtype] = self.work.get(dtype, 0) + flops

    def operator(self, name, args, kwargs, outputs):
        if name in GEMMS:
            self.add_work(outputs[0].dtype, _gemm_flops(name, tensors_in(args), outputs[0]))
            self.linears += name in ("mm", "addmm", "mv", "addmv", "_addmm_activation")
        elif name == "convolution":
            source, weight, transposed = args[0], args[1], args[6]
            over = source if transposed else outputs[0]
            self.add_work(outputs[0].dtype, 2 * over.numel() * math.prod(weight.shape[1:]))
            self.convolutions += 1
        elif name in NORMS:
            self.norms += 1
        elif name in DROPOUTS:
            self.dropouts += 1
        elif name in ACTIVATIONS:
            self.activations += 1
        elif name in ATTENTIONS:
            self.attentions += 1
            if name not in ("_softmax", "_safe_softmax"):
                query, key = args[0], args[1]
                self.add_work(query.dtype, 4 * query.numel() * key.shape[-2])

    def layer(self, outputs):
        """A module without children has run."""
        self.layers += 1
        self.activation_elements += sum(value.numel() for value in outputs)


def _gemm_flops(name, tensors, out):
    inner = tensors[-2].shape[-1] if name not in ("dot", "mv", "addmv") else tensors[-1].numel()
    return 2 * out.numel() * inner
