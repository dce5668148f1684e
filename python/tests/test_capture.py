"""carma.capture on PyTorch 1.13: it records the memory that a run with real tensors holds."""

import ctypes
import importlib
import pathlib
import sys
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

try:
    import torch
except ImportError:
    print("skipped: there is no PyTorch for this Python (Debian: python3-torch)")
    sys.exit(77)
if not torch.__version__.startswith("1.13"):
    print(f"skipped: PyTorch is {torch.__version__}, not 1.13: see test_capture_current.py")
    sys.exit(77)

import carma
from capture_case import ROOT, Case
from carma import pretend, script, step, versions
from carma.recorder import FORWARD, Recorder
from torch import nn


class Residual(nn.Module):
    """Convolutions, norms, a shortcut, an attention, a residual sum, pooling, a linear layer."""

    def __init__(self, width=16):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, groups=2)
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.head = nn.Linear(width, 10)
        self.probe = lambda tensor: tensor

    def forward(self, source):
        first = self.probe(torch.relu(self.bn1(self.conv1(source))))
        out = self.probe(first + torch.nn.functional.silu(self.conv2(first)))
        out = nn.functional.max_pool2d(out, 2)
        tokens = self.norm(out.flatten(2).transpose(1, 2))
        query, key, value = self.qkv(tokens).chunk(3, -1)
        weights = torch.softmax(query @ key.transpose(1, 2), -1)
        return self.head(self.probe(weights @ value + tokens).mean(1))


def real_bytes():
    """The C library's mappings for large allocations (test_lifetimes makes every tensor of interest one)."""

    class Info(ctypes.Structure):
        _fields_ = [
            (name, ctypes.c_size_t)
            for name in (
                "arena",
                "ordblks",
                "smblks",
                "hblks",
                "hblkhd",
                "usmblks",
                "fsmblks",
                "uordblks",
                "fordblks",
                "keepcost",
            )
        ]

    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Info
    return mallinfo2().hblkhd


class Watch:
    """Calls look() when a tensor is made and when its gradient is there."""

    def __init__(self, look):
        self.look = look
        self.seen = []

    def __call__(self, tensor):
        self.seen.append(self.look())
        tensor.register_hook(lambda gradient: self.seen.append(self.look()) or None)
        return tensor


def train(model, optimizer, source, targets, watch, steps=2):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(source), targets)
        loss.backward()
        del loss
        watch.seen.append(watch.look())
        optimizer.step()
        watch.seen.append(watch.look())


class Lifetimes(Case):
    def test_as_with_real_tensors(self):
        """At each of the points in forward and backward as many bytes are alive as in a run that computes."""
        ctypes.CDLL(None).mallopt(-3, 64 << 10)  # M_MMAP_THRESHOLD: larger allocations are counted by real_bytes()
        torch.set_num_threads(1)
        batch, size = 8, 64
        model = Residual()
        source, targets = torch.randn(batch, 3, size, size), torch.randint(10, (batch,))

        model.probe = watch = Watch(real_bytes)
        start = real_bytes()
        train(model, torch.optim.SGD(model.parameters(), lr=0.01), source, targets, watch)
        real = [value - start for value in watch.seen]

        with pretend.gpu(Recorder) as recorder:

            def alive():
                recorder.reap()
                blocks = {id(block): block.bytes for block in recorder.live.values()}
                return sum(value for value in blocks.values() if value > 64 << 10)

            model = Residual()
            model.probe = watch = Watch(alive)
            source, targets = torch.empty(batch, 3, size, size), torch.empty(batch, dtype=torch.long)
            with step._on_gpu(recorder, model, "cpu", "fp32"):
                start = alive()
                optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
                with recorder.during(FORWARD):
                    train(model, optimizer, source, targets, watch)
            input_bytes = source.numel() * 4
            fake = [value - start - input_bytes for value in watch.seen]
            recorder.finish()
        self.assertEqual(len(real), 2 * (3 + 3 + 2))
        self.assertGreater(max(real), 10 << 20)
        for index, (one, other) in enumerate(zip(real, fake)):
            self.assertAlmostEqual(one, other, delta=0.004 * max(real), msg=f"point {index} of {real} and {fake}")

    def test_gradients_are_summed_in_place(self):
        class Shared(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.left, self.right = (nn.Linear(256, 256, bias=False) for _ in range(3))

            def forward(self, source):
                hidden = self.first(source)
                return self.left(hidden) * 2 + self.right(hidden)

        file = self.record(Shared(), torch.empty(64, 256), loss=lambda out: out.sum())
        unit = 64 * 256 * 4
        # the sum's and the product's (views and one product), then those of left and right: their sum takes none
        made = [size for size in file.sizes("t", 1, "backward") if size == unit]
        self.assertEqual(len(made), 3)

    def test_views_and_in_place_operators_allocate_nothing(self):
        class Views(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(64, 64)

            def forward(self, source):
                return self.linear(source).view(-1, 32).t().add_(1).relu_()

        file = self.record(Views(), torch.empty(32, 64), loss=lambda out: out.sum())
        self.assertEqual([size for size in file.sizes("a", 1, "forward") if size > 4], [32 * 64 * 4])

    def test_checkpointing_keeps_only_the_inputs(self):
        class Deep(nn.Module):
            def __init__(self, checkpointed):
                super().__init__()
                self.layers = nn.ModuleList(
                    nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh()) for _ in range(4)
                )
                self.checkpointed = checkpointed

            def forward(self, out):
                for layer in self.layers:
                    out = torch.utils.checkpoint.checkpoint(layer, out) if self.checkpointed else layer(out)
                return out

        import torch.utils.checkpoint

        source = torch.empty(128, 256, requires_grad=True)
        plain = self.record(Deep(False), source, loss=lambda out: out.sum())
        spared = self.record(Deep(True), source, loss=lambda out: out.sum())
        unit = 128 * 256 * 4
        # each layer: two linear outputs that nobody saves, two of tanh: against one for each checkpoint
        self.assertEqual(plain.live(1, "forward") - spared.live(1, "forward"), 4 * unit)
        self.assertEqual(
            spared.sizes("t", 1, "backward").count(unit) + spared.sizes("a", 1, "backward").count(unit),
            plain.sizes("t", 1, "backward").count(unit) + 4 * 4,
        )


class Sizes(Case):
    def test_parameters_gradients_and_states_are_exact(self):
        states = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}
        for optimizer, count in states.items():
            model = Residual()
            expected = [value.numel() * 4 for value in model.parameters()]
            file = self.record(model, torch.empty(2, 3, 16, 16), optimizer=optimizer)
            self.assertEqual(sorted(file.sizes("p")), sorted(expected))
            self.assertEqual(int(file.header["parameters"]), sum(expected))
            self.assertEqual(sorted(file.sizes("g")), sorted(expected), optimizer)  # 1.13 keeps them from step to step
            self.assertEqual(sorted(file.sizes("o")), sorted(expected * count), optimizer)
            self.assertEqual(file.header["optimizer"], optimizer)
            self.assertEqual(file.total("b"), (16 + 16) * 4 + 8)

    def test_frozen_layers_have_no_gradient_and_no_state(self):
        model = Residual()
        model.conv1.weight.requires_grad_(False)
        file = self.record(model, torch.empty(2, 3, 16, 16), optimizer="adam")
        self.assertEqual(file.sizes("p", label="conv1"), [3 * 16 * 9 * 4])
        self.assertEqual(file.sizes("g", label="conv1"), [])
        self.assertEqual(file.total("o"), 2 * (file.total("p") - 3 * 16 * 9 * 4))
        self.assertEqual([conv[0] for conv in file.convs], ["f", "f", "d", "w"])  # conv1: forward alone

    def test_accumulation_adds_into_the_first_gradient(self):
        once = self.record(Residual(), torch.empty(2, 3, 16, 16), optimizer="adam")
        thrice = self.record(Residual(), torch.empty(2, 3, 16, 16), optimizer="adam", accumulate=3)
        self.assertEqual(once.total("g"), thrice.total("g"))
        self.assertEqual(thrice.total("t", 1, "backward") - 3 * once.total("t", 1, "backward"), 2 * once.total("g"))
        self.assertEqual(once.live(1, "optimizer"), thrice.live(1, "optimizer"))

    def test_geometry_and_counts(self):
        model = nn.Sequential(
            nn.Conv2d(4, 8, (3, 5), stride=2, padding=(1, 0), dilation=(1, 2), groups=2),
            nn.ConvTranspose2d(8, 6, 2, stride=2),
            nn.Flatten(),
            nn.LazyLinear(10),
        )
        model(torch.empty(1, 4, 32, 32))
        file = self.record(model, torch.empty(3, 4, 32, 32))
        self.assertEqual(
            [" ".join(conv) for conv in file.convs][:2],
            ["f 4 0 1x 4 8 2 32,32 16,12 3,5 2,2 1,0 1,2", "f 4 1 1x 8 6 1 16,12 32,24 2,2 2,2 0,0 1,1"],
        )
        self.assertEqual(sorted(conv[0] for conv in file.convs), ["d", "f", "f", "w", "w"])
        flops = 2 * (8 * 16 * 12 * 2 * 15 + 8 * 16 * 12 * 6 * 4 + 10 * 6 * 32 * 24)
        self.assertEqual(file.header["flops"], f"{flops}x")
        self.assertEqual(file.header["counts"], "4 2 1 0 0 0 0")
        self.assertEqual(int(file.header["elements"]), 8 * 16 * 12 + 2 * 6 * 32 * 24 + 10)

    def test_any_batch_size(self):
        self.record(Residual(), torch.empty(2, 3, 16, 16), optimizer="adam")
        self.assertTrue(self.result["scales"])
        small, large = self.path.read_text(), self.file(7)
        real = self.record(Residual(), torch.empty(7, 3, 16, 16), optimizer="adam", other_batch_size=0)
        self.assertEqual(
            [event._replace(label="") for event in large.events if event.kind != "c"],
            [event._replace(label="") for event in real.events if event.kind != "c"],
        )
        self.assertIn("batch 2 scales", small)
        self.assertFalse(self.result["scales"])
        self.assertNotIn("x ", self.path.read_text().split("events", 1)[1])

    def test_what_does_not_scale_says_so(self):
        class Pairs(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(8, 8)

            def forward(self, source):
                out = self.linear(source)
                return out @ out.t()

        self.record(Pairs(), torch.empty(8, 8), loss=lambda out: out.sum())
        self.assertIn("not linear", self.result["reason"])
        self.assertIn("\nbatch 8\n", self.path.read_text())

        class Branches(nn.Linear):
            def forward(self, source):
                return super().forward(source).relu() if len(source) > 8 else super().forward(source)

        self.record(Branches(8, 8), torch.empty(8, 8), loss=lambda out: out.sum())
        self.assertIn("events differ", self.result["reason"])


class Mapping(Case):
    """CPU operators that allocate otherwise than CUDA's."""

    def test_dropout_keeps_a_byte_per_element(self):
        file = self.record(
            nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.5)), torch.empty(32, 64), loss=lambda out: out.sum()
        )
        self.assertEqual(file.sizes("a", 1, "forward", "1"), [32 * 64 * 4, 32 * 64])
        self.assertEqual(file.sizes("t", 1, "forward", "1"), [])

    def test_batch_norm_keeps_mean_and_deviation_of_each_channel(self):
        file = self.record(
            nn.Sequential(nn.Conv2d(3, 24, 1), nn.BatchNorm2d(24)), torch.empty(4, 3, 8, 8), loss=lambda out: out.sum()
        )
        self.assertEqual(file.sizes("a", 1, "forward", "1"), [4 * 24 * 64 * 4, 24 * 4, 24 * 4])

    def test_max_pool_keeps_indices_of_8_bytes(self):
        file = self.record(
            nn.Sequential(nn.Conv2d(3, 4, 1), nn.MaxPool2d(2)), torch.empty(4, 3, 8, 8), loss=lambda out: out.sum()
        )
        self.assertEqual(file.sizes("a", 1, "forward", "1"), [4 * 4 * 16 * 4, 4 * 4 * 16 * 8])

    def test_attention_keeps_its_weights(self):
        class Attention(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = nn.MultiheadAttention(32, 4, batch_first=True, dropout=0.1)

            def forward(self, source):
                return self.attention(source, source, source, need_weights=False)[0]

        file = self.record(Attention(), torch.empty(2, 24, 32), loss=lambda out: out.sum())
        kept = file.sizes("a", 1, "forward")
        self.assertEqual(kept.count(2 * 4 * 24 * 24 * 4), 2)  # softmax's, and after dropout
        self.assertEqual(kept.count(2 * 4 * 24 * 24), 1)  # dropout's mask

    def test_embedding_sorts_many_indices(self):
        for rows, times in ((3072, 0), (3073, 5)):
            file = self.record(
                nn.Embedding(10, 4),
                torch.empty(rows, dtype=torch.long),
                loss=lambda out: out.sum(),
                batch_size=rows,
                other_batch_size=0,
            )
            self.assertEqual(file.sizes("t", 1, "backward").count(8 * rows), times)

    def test_cublas_takes_its_workspace_once_in_each_thread(self):
        file = self.record(Residual(), torch.empty(2, 3, 16, 16))
        self.assertEqual(
            [(event.step, event.phase, event.size) for event in file.events if event.kind == "w"],
            [(1, "forward", 8519680), (1, "backward", 8519680)],
        )

    def test_recurrent_networks_are_refused(self):
        class Recurrent(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTM(8, 8)

            def forward(self, source):
                return self.lstm(source)[0].sum()

        with self.assertRaisesRegex(carma.CaptureError, "^lstm runs inside cuDNN .* cannot be recorded$"):
            self.record(Recurrent(), torch.empty(4, 2, 8), loss=lambda out: out)
        self.assertFalse(self.path.exists())


class Refusals(Case):
    def test_releases(self):
        """2.4.1 without CUDA, as this build of 1.13 is; and one that is older."""
        for version, why in (("2.0.1+cu118", "1.13 and 2.1 to 2.15 can$"), ("2.4.1+cpu", "built without CUDA.* from 2.10 on it can$")):
            says = unittest.mock.patch.object(pretend, "torch_version", lambda text=version: versions.torch_version(text))
            with says, self.assertRaisesRegex(carma.CaptureError, f"^torch .* cannot be recorded.* {why}"):
                pretend.mapping()

    def test_mixed_precision(self):
        for precision in ("amp", "half"):
            with self.assertRaisesRegex(
                carma.CaptureError, f"^precision '{precision}' cannot be recorded on torch 1.13"
            ):
                self.record(Residual(), torch.empty(2, 3, 16, 16), precision=precision)

    def test_sizes_that_depend_on_values(self):
        class Masked(nn.Linear):
            def forward(self, source):
                out = super().forward(source)
                return out[out > 0]

        with self.assertRaisesRegex(carma.CaptureError, "depends on the values"):
            self.record(Masked(4, 4), torch.empty(2, 4), loss=lambda out: out.sum())

    def test_arguments(self):
        net, source = nn.Linear(4, 4), torch.empty(2, 4)
        for message, options in (
            ("^optimizer 'lion': one of sgd", {"optimizer": "lion"}),
            ("^optimizer 'adafactor': torch 1.13.* has none", {"optimizer": "adafactor"}),
            ("^precision 'int8': one of", {"precision": "int8"}),
            ("^accumulate 0: at least 1", {"accumulate": 0}),
            ("^batch size -1: at least 1", {"batch_size": -1}),
            ("^batch size -2: at least 1", {"other_batch_size": -2}),
            ("^loss: its result is not a single number", {"loss": lambda out: out}),
        ):
            with self.assertRaisesRegex(carma.CaptureError, message):
                self.record(net, source, **options)
        with self.assertRaisesRegex(carma.CaptureError, "^batch size 0: at least 1"):
            self.record(net, torch.empty(0, 4))

    def test_training_on_the_cpu_alone(self):
        with self.assertRaisesRegex(carma.CaptureError, "^nothing was allocated on a GPU: the step has to train a model on a CUDA"):
            Recorder("cuda", None).finish()

    def test_the_model_is_left_as_it_was(self):
        model = Residual().eval()
        before = {name: value.clone() for name, value in model.state_dict().items()}
        call, functional = nn.Module.__call__, nn.functional.dropout
        self.record(model, torch.empty(2, 3, 16, 16), optimizer="adam")
        self.assertFalse(model.training)
        self.assertIs(nn.Module.__call__, call)
        self.assertIs(nn.functional.dropout, functional)
        for name, value in model.state_dict().items():
            self.assertIs(type(value), torch.Tensor)
            self.assertTrue(torch.equal(value, before[name]), name)
        self.assertEqual(model(torch.zeros(1, 3, 16, 16)).shape, (1, 10))
        self.assertTrue(all(value.grad is None for value in model.parameters()))

    def test_nothing_is_allocated(self):
        """A model that no machine holds."""

        def huge():
            return nn.Sequential(nn.Linear(1 << 20, 1 << 20, bias=False), nn.Linear(1 << 20, 10))

        file = self.record(huge, torch.empty(1, 1 << 20), optimizer="adam")
        self.assertGreater(file.peak, 16 << 40)


SCRIPT = """
import sys, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        return torch.rand(3, 16, 16), index % 10

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(1568, 10)).to(device)
optimizer = torch.optim.Adam(model.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
total = 0
for source, targets in DataLoader(Data(), batch_size=int(sys.argv[1]), shuffle=True, num_workers=2):
    source, targets = source.to(device), targets.to(device)
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(model(source), targets)
    loss.backward()
    optimizer.step()
    scheduler.step()
    total += loss.item()
    print(f"loss {loss:.3f}, {total / 2}")
    EXTRA
"""


class Script(Case):
    def test_as_the_library_records_it(self):
        done, _ = self.script(SCRIPT.replace("EXTRA", "pass"), "--batch", "8,12", arguments=("{batch}",))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Sequential, batch size 8, adam, fp32", done.stderr)
        self.assertIn("for any batch size", done.stderr)
        ours = self.file()
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 10)
        )
        file = self.record(model, torch.empty(8, 3, 16, 16), optimizer="adam")
        for kind in "pgobw":
            self.assertEqual(sorted(ours.sizes(kind, 1)), sorted(file.sizes(kind, 1)), kind)
            self.assertEqual(sorted(ours.sizes(kind, 0)), sorted(file.sizes(kind, 0)), kind)
        kept = file.sizes("a", 1, "forward")
        kept.remove(8 * 10 * 4)  # the output, which the script has no name for
        self.assertEqual(ours.sizes("a", 1, "forward"), kept)
        self.assertEqual(sorted(ours.sizes("i", 1)), sorted(file.sizes("i", 1)))
        self.assertEqual(ours.sizes("p", label="4"), [8 * 14 * 14 * 10 * 4, 40])
        self.assertEqual(ours.header["counts"], file.header["counts"])
        self.assertEqual(ours.header["flops"], file.header["flops"])
        self.assertEqual(ours.convs, file.convs)

    def refused(self, extra, message, steps=2):
        path = self.folder / "train.py"
        path.write_text(SCRIPT.replace("EXTRA", extra))
        with self.assertRaisesRegex(carma.CaptureError, rf"\A{message.replace('SCRIPT', str(path))}\Z"):
            script.record(str(path), ["8"], steps)

    def test_a_number_stands_in_for_a_value(self):
        for check in ("assert loss.item() == 1", "assert not loss < 9", "assert not torch.isnan(loss)"):
            done, _ = self.script(SCRIPT.replace("EXTRA", check), arguments=("8",))
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_cuda_and_autocast_are_refused(self):
        self.refused("model.to('cuda')", "torch 1.13.* cannot pretend a CUDA device: .*")
        self.refused("torch.autocast('cuda').__enter__()", "autocast cannot be recorded on torch 1.13.*")
        self.refused("torch.autocast('cpu', dtype=torch.bfloat16).__enter__()", "autocast cannot be recorded on .*")

    def test_a_short_or_broken_script_is_told(self):
        self.refused("pass", "SCRIPT: its optimizers made 8 steps, not 9: let it train longer, or ask for fewer", 9)
        self.refused("sys.exit(3)", r"SCRIPT: its optimizers made 1 steps, not 2 \(it ended with exit status 3\): .*")
        self.refused("nonsense", "SCRIPT:26: NameError: name 'nonsense' is not defined")

    def test_one_line_and_no_file(self):
        done, path = self.script("nonsense", arguments=("8",))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, f"carma.capture: {path}:1: NameError: name 'nonsense' is not defined\n")
        self.assertFalse(self.path.exists())
        done, _ = self.script("", "--batch", "8,12")
        self.assertEqual(done.returncode, 1)
        self.assertIn("must say where it goes", done.stderr)
        done, _ = self.script("", "--batch", "8,8", arguments=("{batch}",))
        self.assertIn("one or two different batch sizes", done.stderr)


class Imported(Case):
    def test_lists_and_ranges_are_indices(self):
        places = pretend.index((range(2), slice(2), [True, False], []), "cpu")
        self.assertEqual([getattr(place, "dtype", place) for place in places], [torch.long, slice(2), torch.bool, torch.long])
        self.assertEqual((pretend.index([1, 2], "cpu").tolist(), pretend.index(2, "cpu")), ([1, 2], 2))

    def test_the_module_of_the_functions_name_can_be_called(self):
        importlib.import_module("carma.capture")
        with self.assertRaisesRegex(TypeError, "missing"):
            carma.capture()


class Golden(Case):
    def test_format(self):
        """tests/golden/model.capture, which carma's own reader reads in tests/unit/test_estimate_capture.c."""
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Conv2d(8, 8, 3, groups=2),
            nn.Flatten(),
            nn.Linear(8 * 12 * 12, 10),
        )
        self.record(model, torch.empty(4, 3, 16, 16), optimizer="adam", name="golden")
        written = self.path.read_text().replace(torch.__version__.split("+")[0], "1.13")
        self.assertEqual(written, (ROOT / "tests/golden/model.capture").read_text())


if __name__ == "__main__":
    unittest.main()
