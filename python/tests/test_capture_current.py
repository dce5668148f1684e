"""carma.capture on current PyTorch, with fake CUDA tensors: its operators' saved tensors, mixed precision,
checkpoints."""

import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

try:
    import torch
except ImportError:
    print("skipped: there is no PyTorch for this Python")
    sys.exit(77)
import carma
from carma import pretend

try:
    CUDA = pretend.mapping() == "cuda"
except carma.CaptureError as error:
    print(f"skipped: {error}")
    sys.exit(77)
if not CUDA:
    print(f"skipped: PyTorch {torch.__version__} records CPU operators: see test_capture.py")
    sys.exit(77)

import torch.utils.checkpoint
from capture_case import Case
from carma import attention
from carma.versions import torch_version
from torch import nn
from torch.nn import functional


class Mapping(Case):
    def kept(self, model, source, **options):
        """Sizes that the forward pass leaves for the backward pass, of the last module."""
        file = self.record(model, source, loss=lambda out: out.sum(), **options)
        self.assertEqual(file.header["mapping"], "cuda")
        return file.sizes("a", 1, "forward", str(len(model) - 1))

    def test_dropout_keeps_a_byte_per_element(self):
        kept = self.kept(nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.5)), torch.empty(32, 64))
        self.assertEqual(kept, [32 * 64 * 4, 32 * 64])

    def test_batch_norm_is_cudnns(self):
        kept = self.kept(nn.Sequential(nn.Conv2d(3, 24, 1), nn.BatchNorm2d(24)), torch.empty(4, 3, 8, 8))
        self.assertEqual(kept, [4 * 24 * 64 * 4, 24 * 4, 24 * 4])

    def test_optimizers_make_temporaries_of_all_parameters_together(self):
        file = self.record(
            nn.Sequential(*[nn.Linear(64, 64) for _ in range(4)]),
            torch.empty(4, 64),
            loss=lambda out: out.sum(),
            optimizer="adam",
        )
        live = peak = file.live(2, "backward")
        for event in file.events:
            if event.step == 2 and event.phase == "optimizer":
                live += event.size if event.kind not in "-c" else 0
                peak = max(peak, live)
        self.assertGreaterEqual(peak - file.live(2, "backward"), file.total("p"))
        self.assertEqual(file.total("o"), 2 * file.total("p"))

    @unittest.skipUnless(hasattr(torch.optim, "Adafactor"), "PyTorch has none before 2.5")
    def test_adafactor_keeps_sums_of_rows_and_columns(self):
        """Its norms are numbers that a fake tensor does not have."""
        net, source = nn.Linear(64, 32, bias=False), torch.empty(4, 64)
        file = self.record(net, source, loss=lambda out: out.sum(), optimizer="adafactor")
        self.assertEqual(file.header["optimizer"], "adafactor")
        self.assertEqual(file.total("o"), (64 + 32) * 4)

    def test_models_that_are_made_by_values_are_asked_for_themselves(self):
        class Wide(nn.Linear):
            def __init__(self):
                super().__init__(4, int(torch.linspace(2, 8, 3)[1].item()))

        with self.assertRaisesRegex(carma.CaptureError, "give the model itself$"):
            self.record(Wide, torch.empty(2, 4), loss=lambda out: out.sum())
        self.record(Wide(), torch.empty(2, 4), loss=lambda out: out.sum())

    def test_initialisation_by_values_is_left_out(self):
        """As ViT, Swin and ConvNeXt do it."""

        class Truncated(nn.Linear):
            def reset_parameters(self):
                nn.init.trunc_normal_(self.weight, std=0.02)
                nn.init.trunc_normal_(self.weight, std=1.0, a=-1.0, b=1.0)

        file = self.record(lambda: Truncated(4, 4, bias=False), torch.empty(2, 4), loss=lambda out: out.sum())
        self.assertEqual(file.total("p"), 4 * 4 * 4)

    def test_recurrent_networks_keep_a_reserve(self):
        class Recurrent(nn.Module):
            def __init__(self):
                super().__init__()
                self.gru = nn.GRU(8, 16, num_layers=2, batch_first=True)

            def forward(self, source):
                return self.gru(source)[0].sum()

        file = self.record(Recurrent(), torch.empty(4, 5, 8), loss=lambda out: out)
        self.assertIn(4 * 5 * 2 * 16 * 5 * 4, file.sizes("a", 1, "forward"))
        self.assertEqual(file.total("g", 1), file.total("p"))


class Attention(nn.Module):
    def __init__(self, mask=None, causal=False):
        super().__init__()
        self.qkv = nn.Linear(32, 96)
        self.mask, self.causal = mask, causal

    def forward(self, source):
        batch, length, width = source.shape
        query, key, value = self.qkv(source).view(batch, length, 3, 4, 8).permute(2, 0, 3, 1, 4)
        mask = None if self.mask is None else torch.zeros(1, 4, length, length, device=source.device) > 0
        out = functional.scaled_dot_product_attention(query, key, value, mask, is_causal=self.causal)
        return out.transpose(1, 2).reshape(batch, length, width).sum()


class ScaledDotProduct(Case):
    def record_it(self, *arguments, **options):
        return self.record(Attention(*arguments), torch.empty(2, 50, 32), loss=lambda out: out, **options)

    def test_fp32_takes_the_memory_efficient_kernel(self):
        kept = self.record_it().sizes("a", 1, "forward")
        self.assertEqual(kept.count(2 * 4 * 64 * 4), 1)  # log-sum-exp: rows rounded up to 32
        self.assertEqual(kept.count(2 * 4 * 50 * 50 * 4), 0)  # no weights

    def test_a_mask_of_rows_that_are_not_aligned_is_copied(self):
        kept = self.record_it(True).sizes("a", 1, "forward")
        self.assertIn(4 * 50 * 56 * 4, kept)

    def test_half_takes_flash(self):
        file = self.record_it(None, True, precision="amp")
        self.assertEqual(file.sizes("a", 1, "forward").count(2 * 4 * 50 * 4), 1)  # log-sum-exp
        scratch = file.sizes("t", 1, "backward")
        self.assertEqual(scratch.count(2 * 4 * 128 * 32 * 4), 1)  # dq in fp32
        self.assertEqual(scratch.count(2 * 4 * 128 * 4), 1)

    def test_choice(self):
        def tensor(head, dtype=torch.float32, heads=4):
            return torch.empty(2, heads, 16, head, dtype=dtype)

        half, single = torch.float16, torch.float32
        mask = torch.empty(16, 16)
        for expected, head, dtype, given in (
            ("efficient", 64, single, None),
            ("efficient", 4, single, None),
            ("math", 6, single, None),
            ("flash", 64, half, None),
            ("flash", 20, half, None),
            ("efficient", 264, half, None),
            ("efficient", 64, half, mask),
            ("math", 20, half, mask),
            ("math", 64, torch.float64, None),
        ):
            query = tensor(head, dtype)
            self.assertEqual(attention.choose(query, query, query, given), expected, (head, dtype))
        self.assertEqual(attention.choose(tensor(64), tensor(64, heads=2), tensor(64, heads=2), None), "math")
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            self.assertEqual(attention.choose(tensor(64), tensor(64), tensor(64), None), "math")


class Training(Case):
    def deep(self, checkpointed=False, width=256):
        class Deep(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(
                    nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.Tanh())
                    for _ in range(4)
                )

            def forward(self, out):
                for layer in self.layers:
                    out = (
                        torch.utils.checkpoint.checkpoint(layer, out, use_reentrant=reentrant)
                        if checkpointed
                        else layer(out)
                    )
                return out

        reentrant = checkpointed == "reentrant"
        return Deep()

    def activations(self, file):
        return file.live(1, "forward") - file.total("p") - file.total("i", 1) - file.total("w", 1, "forward")

    def test_autocast_halves_activations(self):
        source = torch.empty(512, 256)
        single = self.record(self.deep(), source, loss=lambda out: out.sum())
        mixed = self.record(self.deep(), source, loss=lambda out: out.sum(), precision="amp")
        # its additions: a half copy of the input, and of each weight except the first, because that one's input needs
        # no gradient
        copies = (512 * 256 + 7 * 256 * 256) * 2
        self.assertAlmostEqual(
            self.activations(mixed) - copies, self.activations(single) / 2, delta=self.activations(single) / 100
        )
        self.assertEqual(mixed.header["precision"], "amp")
        self.assertEqual(mixed.total("g"), single.total("g"))  # gradients stay fp32

    def test_half_model(self):
        single = self.record(self.deep(), torch.empty(512, 256), loss=lambda out: out.sum(), optimizer="adam")
        half = self.record(
            self.deep(), torch.empty(512, 256), loss=lambda out: out.sum(), optimizer="adam", precision="half"
        )
        for kind in "pgo":
            self.assertEqual(2 * half.total(kind), single.total(kind), kind)
        self.assertEqual(
            {
                conv[1]
                for conv in self.record(
                    nn.Conv2d(4, 4, 3), torch.empty(2, 4, 8, 8), loss=lambda out: out.sum(), precision="half"
                ).convs
            },
            {"2"},
        )

    def test_checkpointing_keeps_only_the_inputs(self):
        source = torch.empty(512, 256, requires_grad=True)
        plain = self.record(self.deep(), source, loss=lambda out: out.sum())
        unit = 512 * 256 * 4
        for how in ("reentrant", "not"):
            spared = self.record(self.deep(how), source, loss=lambda out: out.sum())
            self.assertEqual(plain.live(1, "forward") - spared.live(1, "forward"), 4 * 2 * unit, how)
            self.assertLess(spared.peak, plain.peak)
            self.assertEqual(plain.total("g"), spared.total("g"))

    def test_accumulation_and_frozen_layers(self):
        model = self.deep()
        model.layers[0].requires_grad_(False)
        file = self.record(model, torch.empty(8, 256), loss=lambda out: out.sum(), accumulate=2, optimizer="adam")
        trained = sum(value.numel() * 4 for value in model.parameters() if value.requires_grad)
        self.assertEqual(file.total("g", 1), trained)
        self.assertEqual(file.total("g", 2), trained)  # made anew: zero_grad() has dropped them
        self.assertEqual(file.total("o"), 2 * trained)
        self.assertEqual(file.sizes("g", label="layers.0.0"), [])

    def test_gradients_are_summed_in_place(self):
        class Shared(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.left, self.right = (nn.Linear(256, 256, bias=False) for _ in range(3))

            def forward(self, source):
                hidden = self.first(source)
                return self.left(hidden) * 2 + self.right(hidden)

        file = self.record(Shared(), torch.empty(64, 256), loss=lambda out: out.sum())
        self.assertEqual(file.sizes("t", 1, "backward").count(64 * 256 * 4), 3)

    def test_any_batch_size(self):
        self.record(self.deep(), torch.empty(8, 256), loss=lambda out: out.sum(), optimizer="adam", precision="amp")
        self.assertTrue(self.result["scales"])
        large = self.file(20)
        real = self.record(
            self.deep(),
            torch.empty(20, 256),
            loss=lambda out: out.sum(),
            optimizer="adam",
            precision="amp",
            other_batch_size=0,
        )
        self.assertEqual(
            [event for event in large.events if event.kind != "c"],
            [event for event in real.events if event.kind != "c"],
        )


SCRIPT = """
import sys, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

assert torch.cuda.is_available() and torch.cuda.device_count() == 1
device = torch.device("cuda")
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters())
model.to(device)
scaler = torch.cuda.amp.GradScaler(enabled=AMP)
loader = DataLoader(TensorDataset(torch.zeros(99, 64), torch.zeros(99, dtype=torch.long)), batch_size=int(sys.argv[1]))
for step, (source, targets) in enumerate(loader):
    with torch.autocast("cuda", torch.float16, enabled=AMP):
        loss = nn.functional.cross_entropy(model(source.to(device)), targets.to(device))
    scaler.scale(loss / 2).backward()
    if step % 2:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    print(loss.item())
    EXTRA
"""


class Script(Case):
    def test_as_the_library_records_it(self):
        for amp, precision in (("False", "fp32"), ("True", "amp")):
            done, _ = self.script(
                SCRIPT.replace("AMP", amp).replace("EXTRA", ""),
                "--batch",
                "8,12",
                "--name",
                "mlp",
                arguments=("{batch}",),
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            script = self.file()
            self.assertEqual(
                (script.header["model"], script.header["optimizer"], script.header["precision"]),
                ("mlp", "adamw", precision),
            )
            model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
            file = self.record(
                model,
                torch.empty(8, 64),
                loss=lambda out, target: functional.cross_entropy(out, target) / 2,
                targets=torch.empty(8, dtype=torch.long),
                optimizer="adamw",
                accumulate=2,
                precision=precision,
            )
            for kind in "pgo":
                self.assertEqual(sorted(script.sizes(kind, 1)), sorted(file.sizes(kind, 1)), kind)
            self.assertEqual(script.sizes("a", 1, "forward", "0"), file.sizes("a", 1, "forward", "0"))
            self.assertEqual(script.sizes("p", label="2"), [2560 * 4, 40])
            self.assertTrue(script.header["batch"].endswith("scales"))

    def recorded(self, extra="", **replaced):
        text = SCRIPT.replace("AMP", "False").replace("EXTRA", extra)
        for old, new in replaced.items():
            self.assertIn(old, text)
            text = text.replace(old, new)
        done, _ = self.script(text, arguments=("8",))
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.file()

    def test_small_values_are_real(self):
        """Those of batches, and of all that is computed from small tensors alone."""
        self.recorded("assert targets.to(device).sum().item() == 0 and (source.to(device) == 0).all()")
        self.recorded("assert torch.arange(6, device=device).view(2, 3)[1].tolist() == [3, 4, 5]")
        self.recorded("x = torch.zeros(4, device=device); x[1:].add_(2); assert x.cpu().numpy().tolist() == [0, 2, 2, 2]")
        self.recorded("assert torch.tensor([3, 0, 5], device=device).nonzero().shape == (2, 1)")

    def test_others_have_stand_ins(self):
        big = "big = torch.randn(400, 400, device=device); "
        self.recorded(big + "assert big.sum().item() == 1 and not torch.isnan(big).any() and torch.isfinite(big).all()")
        self.recorded(big + "assert big.argmax().item() == 0 and big[big > 0].shape == (160000,)")

    def test_tensors_of_the_host_are_real(self):
        self.recorded("host = torch.rand(9); assert 0 < host.sum().item() < 9 and len(host[host < 2]) == 9")
        self.recorded("import numpy; assert torch.from_numpy(numpy.arange(3)).add(1).tolist() == [1, 2, 3]")

    def test_lists_and_ranges_are_indices(self):
        self.recorded("x = torch.zeros(3, 4, device=device); x[range(3), targets.to(device)[:3]] = 1; assert x[[0, 2], 0].sum() == 2")

    def test_a_script_that_takes_the_cpu_unless_it_is_told(self):
        text = SCRIPT.replace("AMP", "False").replace("EXTRA", "").replace('device("cuda")', 'device("cpu")')
        done, _ = self.script(text, arguments=("8",))
        self.assertIn("nothing was allocated on a GPU: the step has to train a model on a CUDA device", done.stderr)

    def test_compiled_models_are_recorded_as_they_are(self):
        plain = self.recorded()
        compiled = self.recorded(**{"model.to(device)": "model.to(device); model = torch.compile(model)"})
        self.assertEqual(plain.events, compiled.events)

    @unittest.skipIf(torch_version() < (2, 10), "older releases import it by themselves")
    def test_the_compiler_is_imported_where_it_is_asked_for(self):
        self.recorded("import sys; assert not {'torch._dynamo.convert_frame', 'sympy.core'} & set(sys.modules)")
        self.recorded(
            "import torch.fx.experimental.symbolic_shapes as shapes\n"
            "    assert hasattr(shapes, 'definitely_true') == ('definitely_true' in open(shapes.__file__).read())\n"
            "    from sympy.core import Symbol; from sympy import symbols; assert symbols('x') == Symbol('x')\n"
            "    import torch._dynamo; assert torch._dynamo.explain and torch._dynamo.utils.counters is not None\n"
            "    assert torch.fx.experimental.symbolic_shapes.ShapeEnv()"
        )

    def test_a_script_without_an_optimizer(self):
        file = self.recorded(**{
            "optimizer = torch.optim.AdamW(model.parameters())": (
                "optimizer = None; torch.cuda.set_per_process_memory_fraction(0.5)\n"
                "import os; os.environ['PYTORCH_ALLOC_CONF'] = 'max_split_size_mb:64'"
            ),
            "scaler = torch.cuda.amp.GradScaler(enabled=False)": "scaler = None",
            "scaler.scale(loss / 2).backward()": "loss.backward()\n    for p in model.parameters(): p.data.sub_(p.grad); p.grad = None",
            "if step % 2:": "if False:",
        })  # fmt: skip
        self.assertEqual(file.header["optimizer"], "none")
        self.assertEqual(file.allocator, "max_split_size_mb:64,per_process_memory_fraction:0.5")
        self.assertEqual(max(event.step for event in file.events), 2)

    def test_parameters_that_an_optimizer_has_already_move_to_the_device(self):
        file = self.recorded()
        self.assertEqual(file.total("o"), 2 * file.total("p"))
        self.assertEqual(file.total("p"), (64 * 256 + 256 + 2560 + 10) * 4)

    def test_the_longest_batch_is_made_from_shorter_ones(self):
        text = """
import itertools, torch
model = torch.nn.Sequential(torch.nn.Embedding(10, 8), torch.nn.Linear(8, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for length in itertools.count(5):
    model(torch.ones(4, length, dtype=torch.long).to("cuda")).sum().backward()
    optimizer.step()
"""
        for options, steps, length, doubt in (
            ((), 2, 6, "steps differ"), (("--longest", "300"), 4, 300, "length 300 were made"),
        ):  # fmt: skip
            done, _ = self.script(text, *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(doubt, self.file().doubts)
            self.assertIn(4 * length * 8 * 4, self.file().sizes("a", steps, "forward"))

    def test_the_largest_batch_that_the_loader_has_comes_last(self):
        """Where the script bears it; else what its own steps show."""
        text = """
import torch
from torch.utils.data import DataLoader
rows = [torch.ones(9 if at % 40 else 300, dtype=torch.long) for at in range(400)]
rows[4] = torch.ones(11, dtype=torch.long)
def collate(rows):
    source = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return {"source": source, "longest": source.shape[1]}
model = torch.nn.Sequential(torch.nn.Embedding(10, 8), torch.nn.Linear(8, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for batch in DataLoader(rows[1:], batch_size=4, collate_fn=collate):
    source = batch["source"].to("cuda")
    assert True
    model(source).sum().backward()
    optimizer.step()
"""
        for assertion, length, doubt in (
            ("source.shape[1] == batch['longest']", 300, "the largest of 100 counts"), ("source.shape[1] < 300", 11, "steps differ"),
        ):  # fmt: skip
            done, _ = self.script(text.replace("assert True", f"assert {assertion}"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(doubt, self.file().doubts)
            steps = range(1, max(event.step for event in self.file().events) + 1)
            lengths = [max(self.file().sizes("a", step, "forward")) / (4 * 8 * 4) for step in steps]
            self.assertEqual(max(lengths), length)

    def test_a_loss_of_a_repeated_micro_step_is_scaled_in_place(self):
        text = """
import torch
class Learner(torch.nn.Linear):
    def forward(self, source):
        return super().forward(source).sum()
model = Learner(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(20):
    loss = model(torch.zeros(4, 8).cuda())
    loss *= 0.2
    loss.backward()
    if step % 5 == 4:
        optimizer.step()
"""
        done, _ = self.script(text)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_example_batch_stands_in_for_data_that_are_not_here(self):
        import numpy

        text = """
import sys, torch
class Words(torch.utils.data.Dataset):
    def __init__(self, path):
        self.lines = open(path).readlines()
    def __len__(self):
        return len(self.lines)
    def __getitem__(self, index):
        return self.lines[index]
loader = torch.utils.data.DataLoader(Words("/nonexistent/words.txt"), batch_size=int(sys.argv[1]), shuffle=True)
model = torch.nn.Linear(30, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for batch in loader:
    torch.nn.functional.cross_entropy(model(batch[X].cuda()), batch[Y].cuda()).backward()
    optimizer.step()
"""
        pair, named = self.folder / "pair.pt", self.folder / "named.npz"
        torch.save((torch.ones(4, 30), torch.ones(4, dtype=torch.long)), pair)
        numpy.savez(named, words=numpy.ones((4, 30), "float32"), classes=numpy.ones(4, "int64"))
        for path, words, classes in ((pair, "0", "1"), (named, "'words'", "'classes'")):
            script = text.replace("X", words).replace("Y", classes)
            for size in (3, 8):  # it is cut, or repeated
                done, _ = self.script(script, "--example-batch", path, arguments=(str(size),))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(size * 30 * 4, self.file().sizes("a", 2, "forward"))
                self.assertIn("the example batch stands in", self.file().doubts)
        done, _ = self.script(text, arguments=("3",))
        self.assertIn("FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent/words.txt'", done.stderr)
        for path, reason in ((self.folder / "absent.pt", "No such file"), (self.folder / "empty.pt", "no tensor in it")):
            if path.stem == "empty":
                torch.save([], path)
            done, _ = self.script(text, "--example-batch", path, arguments=("3",))
            self.assertRegex(done.stderr, f"^carma.capture: --example-batch {path}: .*{reason}")

    def test_precision_is_that_of_the_products(self):
        half = self.recorded(**{"torch.zeros(99, 64)": "torch.zeros(99, 64).bfloat16()",
                                "model.to(device)": "model.to(device).bfloat16()"})  # fmt: skip
        self.assertEqual(half.header["precision"], "half")
        mixed = self.recorded(**{"enabled=False)\nloader": "enabled=True)\nloader", "torch.float16, enabled=False": "torch.bfloat16"})
        self.assertEqual(mixed.header["precision"], "amp")


if __name__ == "__main__":
    unittest.main()
