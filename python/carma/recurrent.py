"""LSTM, GRU and RNN as cuDNN runs them: one operator over all steps and layers. It keeps a reserve for the backward
pass, and only cuDNN knows its size. Here it is the gates and states of each step."""

import torch

from carma.versions import autocast_dtype

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
KEPT = {"lstm": 6, "gru": 5, "rnn_tanh": 2, "rnn_relu": 2}  # numbers of each unit and step: gates, cell, output
DOUBT = "cuDNN's reserve for recurrent layers is a formula's"


class _Cudnn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, source, rows, layers, kept, out_width, states, *tensors):
        hidden, weights = tensors[:states], tensors[states:]
        directions_and_layers, batch, width = hidden[0].shape
        output = source.new_empty((*source.shape[:-1], out_width))
        ends = [value.new_empty(value.shape) for value in hidden]
        reserve = source.new_empty(rows * directions_and_layers * max(v.shape[-1] for v in hidden) * kept)
        source.new_empty(rows * max(v.shape[-1] for v in hidden) * kept)  # the workspace
        ctx.states = states
        ctx.save_for_backward(source, output, reserve, *hidden, *weights)
        return (output, *ends)

    @staticmethod
    def backward(ctx, *gradients):
        source, output, reserve, *rest = ctx.saved_tensors
        hidden, weights = rest[: ctx.states], rest[ctx.states :]
        flat = source.new_empty(sum(value.numel() for value in weights))
        parts = flat.split([value.numel() for value in weights])
        source.new_empty(reserve.numel() // max(1, hidden[0].shape[0]))
        return (
            torch.empty_like(source), None, None, None, None, None, *[torch.empty_like(value) for value in hidden],
            *[part.view(value.shape) for part, value in zip(parts, weights)],
        )  # fmt: skip


def as_cudnn(name, original, recorder):
    def run(source, *rest):
        if source.device.type != "cuda":
            return original(source, *rest)
        recorder.doubt(DOUBT, 50)
        packed = isinstance(rest[2], (list, tuple))  # then the sizes of batches come first
        hidden, weights = (rest[1], rest[2]) if packed else (rest[0], rest[1])
        bidirectional = rest[7] if packed else rest[6]
        hidden = list(hidden) if isinstance(hidden, (list, tuple)) else [hidden]
        dtype = autocast_dtype()
        if dtype is not None:
            source, hidden = source.to(dtype), [value.to(dtype) for value in hidden]
            weights = [value.to(dtype) for value in weights]
        rows = source.shape[:-1].numel()
        layers = hidden[0].shape[0]
        width = hidden[0].shape[-1] * (2 if bidirectional else 1)
        out = _Cudnn.apply(source, rows, layers, KEPT[name], width, len(hidden), *hidden, *weights)
        if recorder.counting:
            recorder.counts.add_work(source.dtype, 2 * rows * sum(value.numel() for value in weights))
        return tuple(out)

    return run
