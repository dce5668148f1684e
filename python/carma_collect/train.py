"""One run, in its own process so that it has its own CUDA context. It trains a configuration for a while and prints one
line of JSON: the caching allocator's peaks and the software's versions, or an out-of-memory error.

Run by collect.py as `python3 -m carma_collect.train FAMILY CONFIGURATION-AS-JSON SECONDS`."""

import json
import sys
import time

import torch

from . import networks

OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=1e-3),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3),
}
MLP_SAMPLES = CNN_SAMPLES = 4096
LEAST_STEPS = 3  # the second has all the optimizer's states; one more for good measure


def batches(family, config):
    """Sizes of an epoch's batches, the smaller last one included."""
    samples = config.get("num_samples") or (MLP_SAMPLES if family == "mlp" else CNN_SAMPLES)
    full, rest = divmod(samples, config["batch_size"])
    return [config["batch_size"]] * full + ([rest] if rest else [])


def train(family, config, seconds, device="cuda"):
    """Trains for `seconds` and LEAST_STEPS steps at least; returns the number of steps."""
    model = networks.build(family, config).to(device)
    optimizer = OPTIMIZERS[config["optimizer"]](model.parameters())
    half = config["precision"] == "amp"
    scaler = torch.cuda.amp.GradScaler(enabled=half and device == "cuda")
    loss_of = torch.nn.CrossEntropyLoss()
    sizes = batches(family, config)
    # The smaller last batch comes early, for a short run to see it.
    sizes = sizes[:2] + sizes[-1:] + sizes[2:-1]
    steps, end = 0, time.monotonic() + seconds
    while steps < LEAST_STEPS or time.monotonic() < end:
        inputs, targets = networks.example(family, config, sizes[steps % len(sizes)], device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, enabled=half, dtype=torch.float16 if device == "cuda" else torch.bfloat16):
            loss = loss_of(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        steps += 1
        if device == "cuda":
            torch.cuda.synchronize()
    return steps


def environment():
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "cudnn": str(torch.backends.cudnn.version() or ""),
        "tf32_convolutions": int(torch.backends.cudnn.allow_tf32),
        "tf32_matmul": int(torch.backends.cuda.matmul.allow_tf32),
    }


def main(family, config, seconds):
    config = json.loads(config)
    if not torch.cuda.is_available():
        print("carma_collect: PyTorch sees no CUDA GPU here: run this on a machine with one", file=sys.stderr)
        return 3
    result = {"status": "SUCCESSFUL", **environment()}
    try:
        result["steps"] = train(family, config, float(seconds))
    except torch.cuda.OutOfMemoryError:
        result["status"], result["steps"] = "OOM_CRASH", 0
    mib = 1 << 20
    result["allocator_reserved_mib"] = torch.cuda.max_memory_reserved() // mib
    result["allocator_allocated_mib"] = torch.cuda.max_memory_allocated() // mib
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
