"""carma.tiny_step without a GPU: its message then, and, with a stand-in for PyTorch, its report."""

import contextlib
import io
import json
import pathlib
import runpy
import subprocess
import sys
import types
import unittest
from unittest import mock

PYTHON = pathlib.Path(__file__).resolve().parents[1]
SCRIPT = str(PYTHON / "carma" / "tiny_step.py")


class FakeTensor:
    def __init__(self, torch, elements):
        self.torch, self.elements, self.shape = torch, elements, (8,)
        torch.allocated += max(512, elements * 4)

    def __matmul__(self, other):
        if not self.torch.cublas:
            self.torch.cublas = True
            self.torch.allocated += self.torch.workspace
        return FakeTensor(self.torch, self.elements)

    def untyped_storage(self):
        return types.SimpleNamespace(nbytes=lambda: self.elements * 4)


def fake_torch(available=True, workspace=8519680):
    torch = types.ModuleType("torch")
    torch.__version__ = "9.9.9"
    torch.allocated, torch.cublas, torch.workspace, torch.modules = 0, False, workspace, []
    torch.long = "long"

    class Module:
        def __init__(self, *children):
            torch.modules.append(type(self).__name__)

        def cuda(self):
            torch.reserved += 2 << 20
            return self

        def parameters(self):
            return []

        def __call__(self, sample):
            return sample

    def zeros(*shape, **_):
        elements = 1
        for size in shape:
            elements *= size
        return FakeTensor(torch, elements)

    torch.reserved = 20 << 20
    torch.zeros = zeros
    names = ["Linear", "ReLU", "Conv2d", "BatchNorm2d", "AdaptiveAvgPool2d", "Flatten", "Sequential"]
    layers = {name: type(name, (Module,), {"__init__": lambda self, *a, **k: Module.__init__(self)}) for name in names}
    loss = types.SimpleNamespace(backward=lambda: None)
    functional = types.SimpleNamespace(cross_entropy=lambda output, target: loss)
    torch.nn = types.SimpleNamespace(functional=functional, **layers)
    torch.optim = types.SimpleNamespace(Adam=lambda parameters: types.SimpleNamespace(step=lambda: None))
    torch.cuda = types.SimpleNamespace(
        is_available=lambda: available,
        synchronize=lambda: None,
        memory_allocated=lambda: torch.allocated,
        memory_reserved=lambda: torch.reserved,
        mem_get_info=lambda: (30 << 30, 40 << 30),
    )
    return torch


def run(torch, text=""):
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.dict(sys.modules, {"torch": torch}), mock.patch("sys.stdin", io.StringIO(text)), \
            contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_path(SCRIPT, run_name="__main__")
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()


class TinyStep(unittest.TestCase):
    def test_without_pytorch_it_says_so_in_one_line(self):
        status, out, err = run(None)
        self.assertEqual((status, out), (3, ""))
        self.assertRegex(err, r"\Acarma\.tiny_step: PyTorch is not installed .*\n\Z")

    def test_without_a_gpu_it_says_so_in_one_line(self):
        status, out, err = run(fake_torch(available=False))
        self.assertEqual((status, out), (3, ""))
        self.assertEqual(err, "carma.tiny_step: PyTorch 9.9.9 finds no CUDA GPU that it can use\n")

    def test_it_reports_both_steps(self):
        torch = fake_torch()
        status, out, err = run(torch)
        self.assertEqual((status, err), (0, ""))
        linear, convolution = map(json.loads, out.splitlines())
        self.assertEqual((linear["step"], convolution["step"]), ("linear", "convolution"))
        self.assertEqual(linear["torch"], "9.9.9")
        self.assertEqual(linear["cublas_workspace_bytes"], 8519680)
        self.assertEqual(linear["reserved_bytes"], 22 << 20)
        self.assertEqual(convolution["reserved_bytes"], 24 << 20)
        self.assertEqual(linear["used_bytes"], 10 << 30)
        before = torch.modules[: torch.modules.index("Sequential")]
        self.assertNotIn("Conv2d", before, "no cuDNN in the first step")
        self.assertIn("Conv2d", torch.modules)

    def test_as_a_module(self):
        """As carma calibrate starts it; machines of developers may have a GPU, and then it works."""
        ended = subprocess.run(
            [sys.executable, "-m", "carma.tiny_step"],
            cwd=PYTHON, input="", capture_output=True, text=True, timeout=120, check=False,
        )
        if ended.returncode == 0:
            self.assertEqual(len(ended.stdout.splitlines()), 2)
        else:
            self.assertEqual(ended.returncode, 3, ended.stderr)
            self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)


if __name__ == "__main__":
    unittest.main()
