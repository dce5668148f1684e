"""A run of the corpus's scripts on the CPU, as the truth: PyTorch's own allocator says what it gave and took back. Run
as `truth.py OUT STEPS SCRIPT ARGUMENT...` it trains that many steps. It writes the events of the last one: each line a
number of bytes, negative where they are given back."""

import difflib
import os
import pathlib
import sys

SMALL = 1 << 12  # bytes: below, scalars and views of the host's own
STEPS = 2


def stand_in_for_missing_data():
    import contextlib
    import types

    from carma import imports, missing

    stack = contextlib.ExitStack()
    nobody = types.SimpleNamespace(doubt=lambda *_: None)
    imports.change(stack, missing.changes(stack, lambda _, owner, name, value: setattr(owner, name, value), nobody))


def record(out, steps, script, arguments):
    import runpy
    import types

    import torch
    from torch.profiler import ProfilerActivity, profile

    class Enough(BaseException):
        pass

    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False  # its layouts are the CPU's own
    torch.compile = lambda model=None, *_, **__: (lambda function: function) if model is None else model
    torch.nn.Module.compile = lambda *_, **__: None
    state = {"profile": None, "steps": 0}
    call, init = torch.nn.Module.__call__, torch.optim.Optimizer.__init__

    def begin(module, *args, **kwargs):
        now = state["profile"] is None and state["steps"] == steps - 1 and module.training and torch.is_grad_enabled()
        if now and any(True for _ in module.parameters()):
            state["profile"] = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
            state["profile"].__enter__()
        return call(module, *args, **kwargs)

    def end():
        watched = state["profile"]
        watched.__exit__(None, None, None)
        events = [event for event in watched.profiler.kineto_results.events() if event.name() == "[memory]"]
        events.sort(key=lambda event: event.start_ns())
        pathlib.Path(out).write_text("".join(f"{event.nbytes()}\n" for event in events))
        raise Enough

    def made(optimizer, *args, **kwargs):
        init(optimizer, *args, **kwargs)
        step = type(optimizer).step

        def followed(optimizer, *args, **kwargs):
            result = step(optimizer, *args, **kwargs)
            state["steps"] += 1
            if state["profile"] is not None:
                end()
            return result

        optimizer.step = types.MethodType(followed, optimizer)

    stand_in_for_missing_data()
    dropout = torch.dropout  # a mask of a byte for each element, as CUDA's
    torch.dropout = torch._VF.dropout = lambda source, p, train: (
        torch.native_dropout(source, p, True)[0] if train and 0 < p < 1 else dropout(source, p, train)
    )
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.optim.") and hasattr(module, "_default_to_fused_or_foreach"):
            module._default_to_fused_or_foreach = lambda *_, **__: (False, True)  # as on CUDA
    torch.nn.Module.__call__, torch.optim.Optimizer.__init__ = begin, made
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(script)
    try:
        runpy.run_path(script, run_name="__main__")
    except Enough:
        os._exit(0)


def _sizes(path):
    """Sizes in order, and the most that was alive beyond the beginning's."""
    sizes, live, peak = [], 0, 0
    for line in path.read_text().splitlines():
        change = int(line)
        live += change
        peak = max(peak, live)
        if change >= SMALL:
            sizes.append(change)
    return sizes, peak


def _recorded(path):
    """The same of the recorded step: as many allocations as a step of the CPU sees."""
    import capture_case

    sizes, live, peak, begun = [], 0, 0, False
    for event in capture_case.File(path).events:
        begun = begun or (event.step == STEPS and event.label and event.kind != "-")
        if not begun or event.kind in "cw":
            continue
        live += event.size
        peak = max(peak, live)
        if event.size >= SMALL:
            sizes.append(event.size)
    return sizes, peak


def compare(entry, folder, run):
    """Two texts of a step: the share of the CPU's bytes that the capture has in the same order, and the error of its
    peak. Both are "" where the script does not run here on the CPU."""
    out = pathlib.Path(folder, "truth")
    done = run([sys.executable, "-B", pathlib.Path(__file__), out, str(STEPS),
                pathlib.Path(__file__).parent / f"{entry.name}.py", *entry.arguments], entry, folder)  # fmt: skip
    if done.returncode or not out.exists():
        return "", ""
    real, real_peak = _sizes(out)
    found, peak = _recorded(pathlib.Path(folder, "model.capture"))
    if not real:
        return "", ""
    match = difflib.SequenceMatcher(None, real, found, autojunk=False)
    weight = sum(real[block.a + i] for block in match.get_matching_blocks() for i in range(block.size))
    return f"{weight / sum(real):.0%}", f"{peak / real_peak - 1:+.1%}"


if __name__ == "__main__":
    record(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:])
