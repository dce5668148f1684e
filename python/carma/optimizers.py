"""What the format calls an optimizer, and which tensors it keeps."""

from carma.versions import tensors_in


def name_of_optimizer(optimizer):
    name = type(optimizer).__name__.lower()
    if name == "sgd" and any(group.get("momentum") for group in optimizer.param_groups):
        return "momentum"
    return name


def states_of(optimizer):
    """Those on the GPU: 0-dimensional counters lie on the host, unless they say otherwise."""
    return [
        tensor
        for state in optimizer.state.values()
        for tensor in tensors_in(state)
        if tensor.dim() > 0 or tensor.device.type == "cuda"
    ]
