"""One tiny training step without cuDNN, then one with a convolution, on CUDA's first GPU:

    python3 -m carma.tiny_step

prints a line of JSON after each, and waits for a line on its input (not where the input has ended). `carma calibrate`
reads the GPU's memory in between:

    {"step": "linear", "torch": "2.4.1", "reserved_bytes": ..., "used_bytes": ..., "cublas_workspace_bytes": ...}
    {"step": "convolution", "torch": "2.4.1", "reserved_bytes": ..., "used_bytes": ..., "cublas_workspace_bytes": ...}

reserved_bytes: held by PyTorch's caching allocator. used_bytes: in use on the whole GPU by CUDA's account, by this
process and others. Their difference on an otherwise unused GPU is the memory of context and libraries.
cublas_workspace_bytes: allocated by the first matrix product besides its result.

Exit status: 0; 3 without PyTorch or without a GPU that it can use, said in one line.
"""

import json
import sys

NO_GPU = 3
WIDTH = 64


def complain(text):
    print(f"carma.tiny_step: {text}", file=sys.stderr)
    return NO_GPU


def report(torch, step, workspace):
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    figures = {
        "step": step,
        "torch": torch.__version__,
        "reserved_bytes": torch.cuda.memory_reserved(),
        "used_bytes": total - free,
        "cublas_workspace_bytes": workspace,
    }
    print(json.dumps(figures), flush=True)
    sys.stdin.readline()


def cublas_workspace(torch):
    """The caching allocator gives cuBLAS its workspace at the first product, and nobody frees it."""
    matrix = torch.zeros(WIDTH, WIDTH, device="cuda")
    before = torch.cuda.memory_allocated()
    product = matrix @ matrix
    torch.cuda.synchronize()
    own = product.untyped_storage().nbytes() if hasattr(product, "untyped_storage") else WIDTH * WIDTH * 4
    rounded = (own + 511) // 512 * 512
    return max(0, torch.cuda.memory_allocated() - before - rounded)


def train_once(torch, model, sample):
    optimizer = torch.optim.Adam(model.parameters())
    target = torch.zeros(sample.shape[0], dtype=torch.long, device="cuda")
    loss = torch.nn.functional.cross_entropy(model(sample), target)
    loss.backward()
    optimizer.step()


def main():
    try:
        import torch
    except ImportError as error:
        return complain(f"PyTorch is not installed for this python3: {error}")
    if not torch.cuda.is_available():
        return complain(f"PyTorch {torch.__version__} finds no CUDA GPU that it can use")
    nn = torch.nn
    workspace = cublas_workspace(torch)
    linear = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10)).cuda()
    train_once(torch, linear, torch.zeros(8, WIDTH, device="cuda"))
    report(torch, "linear", workspace)
    convolution = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)
    ).cuda()
    train_once(torch, convolution, torch.zeros(8, 3, 32, 32, device="cuda"))
    report(torch, "convolution", workspace)
    return 0


if __name__ == "__main__":
    sys.exit(main())
