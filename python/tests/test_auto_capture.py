"""What follows a job's command into its Python processes: carma_auto/sitecustomize.py and carma.automatic. With
a stand-in for PyTorch: chaining, and that nothing changes without the pipe. With a current PyTorch: commands as people
write them."""

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
AUTO = ROOT / "carma_auto"
LIMIT = float(os.environ.get("PATIENCE_S", "300"))  # only a test that hangs sees it
TORCH = importlib.util.find_spec("torch")
if TORCH is not None:
    import torch
CURRENT = TORCH is not None and not torch.__version__.startswith("1.")

LOOP = """
while True:
    optimizer.zero_grad()
    model(torch.randn(batch, 10).cuda()).sum().backward()
    optimizer.step()
"""
TRAIN = f"""import argparse, torch, shapes
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
batch = parser.parse_args().batch_size
model = torch.nn.Linear(10, shapes.OUT).cuda(0)
optimizer = torch.optim.Adam(model.parameters())
{LOOP}"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def file(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def own(self, header):
        """The files of this test; one of a shell that runs the tests may be there, too."""
        return [path for path, _ in header["files"] if path.startswith(str(self.folder))]

    def start(self, command, pipe, **variables):
        environment = {
            **os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
            "PYTHONPATH": f"{AUTO}{os.pathsep}{variables.pop('PYTHONPATH', '')}".rstrip(os.pathsep),
            "CARMA_AUTO_CAPTURE_FD": str(pipe), **variables,
        }  # fmt: skip
        return subprocess.Popen(
            [str(word) for word in command], cwd=self.folder, env=environment, pass_fds=(pipe,) if pipe >= 0 else (),
            start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def answers(self, *command, **variables):
        """What the command writes to the pipe until the first capture, as carmad reads it: [(header, text)]."""
        source, sink = os.pipe()
        process = self.start(command, sink, **variables)
        os.close(sink)
        found, written = [], []
        reader = threading.Thread(target=lambda: written.append(process.stdout.read()))
        reader.start()
        timer = threading.Timer(LIMIT, lambda: os.killpg(process.pid, signal.SIGKILL))
        timer.start()
        with os.fdopen(source, "rb") as pipe:
            for line in pipe:
                header = json.loads(line)
                found.append((header, pipe.read(header["bytes"]).decode()))
                if header["capture"]:
                    break
        timer.cancel()
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:
            pass  # it has ended
        process.wait()
        reader.join()
        process.stdout.close()
        self.output = written[0]
        return found

    def captured(self, *command, **variables):
        found = self.answers(*command, **variables)
        self.assertTrue(found and found[-1][0]["capture"], (found, self.output))
        header, text = found[-1]
        self.assertTrue(text.startswith("carma-capture 1\n") and text.endswith("\nend\n"), text)
        return header, text

    def refused(self, *command, **variables):
        found = self.answers(*command, **variables)
        self.assertTrue(found and not any(header["capture"] for header, _ in found), (found, self.output))
        return max((header for header, _ in reversed(found)), key=lambda header: header["closeness"])["reason"]


class Untouched(Case):
    """Interpreters that do not train are as without carma."""

    def output_of(self, text, pipe, **variables):
        process = self.start([sys.executable, "-c", text], pipe, **variables)
        return process.communicate(timeout=LIMIT)[0].strip()

    def with_pipe(self, text, **variables):
        source, sink = os.pipe()
        try:
            output = self.output_of(text, sink, **variables)
        finally:
            os.close(sink)
        with os.fdopen(source, "rb") as pipe:
            self.assertEqual(pipe.read(), b"")
        return output

    FRAMEWORKS = (  # what train.py, model.py and data.py say, and which framework is refused
        ("import jax.numpy", "", "", "JAX"),
        ("import model", "from data import batches", "import jax", "JAX"),
        ("from model import net\nnet()", "def net():\n    import tensorflow", "", "TensorFlow"),
        ("import model\nif not model: import data", "import tensorflow", "from torch.utils import data", None),
        ("import model\nif not model: from data import x", "import tensorflow", "import lightning", None),
        ("import model", "import jax, importlib; importlib.import_module('os')", "", None),
        ("import library", "", "", None),
        ("import os; os.environ['KERAS_BACKEND'] = 'torch'; import keras", "", "", None),
    )

    def test_another_framework_is_refused_before_it_is_loaded(self):
        """Wherever the program's own files import it, unless some of them can train by PyTorch."""
        for name in ("tensorflow", "jax", "keras"):
            self.file(f"site-packages/{name}.py", "print('loaded')")
        self.file("site-packages/library.py", "import jax")  # may be able to do without
        start = f"import runpy; runpy.run_path({str(self.folder / 'train.py')!r}, run_name='__main__')"
        for train, model, data, refused in self.FRAMEWORKS:
            for name, text in (("train", train), ("model", model), ("data", data)):
                self.file(f"{name}.py", text)
            with self.subTest(train=train, model=model):
                variables = {"PYTHONPATH": str(self.folder / "site-packages")}
                if refused:
                    said = self.refused(sys.executable, "train.py", **variables)
                    self.assertEqual(said, f"train.py: training with {refused} is not recorded, only with PyTorch")
                    self.assertEqual(self.output, "")
                else:
                    self.assertIn("loaded", self.with_pipe(start, **variables))

    def test_its_folder_is_not_among_those_of_modules(self):
        self.assertEqual(self.with_pipe(f"import sys; print({str(AUTO)!r} in sys.path)"), "False")

    def test_libraries_of_the_hub_do_not_try_again_and_again(self):
        text = "import os; print(*(os.environ[f'{name}_OFFLINE'] for name in ('HF_HUB', 'HF_DATASETS', 'TRANSFORMERS')))"
        self.assertEqual(self.with_pipe(text, HF_HUB_OFFLINE="0"), "0 1 1")  # as the user has it

    def test_the_sitecustomize_that_it_hides_runs_and_is_the_one_that_scripts_see(self):
        self.file("sitecustomize.py", "VALUE = 7; print('hidden one')")
        output = self.with_pipe("import sitecustomize; print(sitecustomize.VALUE)", PYTHONPATH=str(self.folder))
        self.assertEqual(output.split("\n"), ["hidden one", "7"])

    def test_an_error_of_the_hidden_one_does_not_stop_python(self):
        self.file("sitecustomize.py", "raise RuntimeError('broken')")
        self.assertIn("goes on", self.with_pipe("print('goes on')", PYTHONPATH=str(self.folder)))

    def test_it_brings_no_modules_along(self):
        count = "import sys; print(*sorted(sys.modules))"
        with_it = set(self.with_pipe(count).split())
        without = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True,
                                 env={**os.environ, "PYTHONPATH": ""}).stdout.split()  # fmt: skip
        self.assertLessEqual(with_it - set(without), {"sitecustomize", "_posixsubprocess"})

    def test_without_the_pipe_torch_is_as_it_is(self):
        self.file("torch/__init__.py", "import os; VALUE = os.environ.get('CUDA_VISIBLE_DEVICES')")
        text = "import torch, sys; print(torch.VALUE, 'carma.automatic' in sys.modules)"
        variables = {"PYTHONPATH": str(self.folder), "CUDA_VISIBLE_DEVICES": "3"}
        self.assertEqual(self.output_of(text, -1, **variables), "3 False")
        with open(self.file("file", ""), "w") as file:  # a script's own descriptor of that number
            self.assertEqual(self.output_of(text, file.fileno(), **variables), "3 False")

    def test_programs_started_by_python_get_the_pipe(self):
        inner = "import os; print(os.fstat(int(os.environ['CARMA_AUTO_CAPTURE_FD'])).st_mode & 0o170000 == 0o010000)"
        text = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
        self.assertEqual(self.with_pipe(text), "True")

    def test_a_launcher_is_told_how_many_gpus_the_job_has(self):
        """It is told once torch has been imported, in whatever way: so all of these are recorded."""
        self.file("torch/__init__.py", "import os\nclass cuda: pass\nif os.environ.pop('FAILS', None): raise ImportError")
        self.file("torch/nn/__init__.py", "import torch")
        self.file("torch-1.0.dist-info/METADATA", "Name: torch\nVersion: 1.0\n")
        self.file("accelerate/__init__.py", "")
        variables = {"PYTHONPATH": str(self.folder), "CARMA_AUTO_CAPTURE_GPUS": "4"}
        asks, ready = "importlib.util.find_spec('torch')", "import importlib.util, sys\n"
        lazy = (f"spec = {asks}\nspec.loader = importlib.util.LazyLoader(spec.loader)\n"
                "torch = sys.modules['torch'] = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(torch)")
        for way in ("import torch", f"assert {asks}\nimport torch", f"for _ in range(3): assert {asks}\nimport torch.nn, torch",
                    "from torch import nn\nimport torch", "torch = importlib.import_module('torch')", lazy,
                    f"assert {asks}\n{lazy}", f"assert {asks} and 'torch' not in sys.modules\nfrom torch import cuda\nimport torch",
                    "import importlib.metadata\nassert importlib.metadata.version('torch') == '1.0'\nimport torch",
                    "import os; os.environ['FAILS'] = 'once'\ntry: import torch\nexcept ImportError: import torch",
                    f"import threading\nthread = threading.Thread(target=lambda: {asks})\nthread.start()\nthread.join()\n"
                    "import torch"):  # fmt: skip
            with self.subTest(way=way):
                self.file("accelerate/__main__.py", f"{ready}{way}\nprint(torch.cuda.is_available(), torch.cuda.device_count())")
                self.assertEqual(self.answers(sys.executable, "-m", "accelerate", **variables), [])
                self.assertEqual(self.output, "True 4\n")


@unittest.skipUnless(TORCH and torch.__version__.startswith("1.13"), "needs PyTorch 1.13")
class Old(Case):
    def test_a_script_that_takes_the_cpu_where_there_is_no_gpu(self):
        self.file("settings.json", "{}")
        path = self.file("train.py", f"import torch; open('settings.json').read(); batch = 6\n{LOOP.replace('.cuda()', '')}"
                         .replace("\nwhile", "\nmodel = torch.nn.Linear(10, 5)\n"
                                  "optimizer = torch.optim.Adam(model.parameters())\nwhile"))  # fmt: skip
        script = self.file("job.sh", f"{sys.executable} train.py; true\n")
        header, text = self.captured("sh", "job.sh")
        self.assertIn("\nmapping cpu\nmodel Linear\nbatch 6\n", text)
        self.assertEqual(self.own(header), [str(script), str(self.folder / "settings.json"), str(path)])
        self.assertIn(os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__))), [path for path, _ in header["packages"]])


@unittest.skipUnless(TORCH, "needs PyTorch")
class Ends(Case):
    """However a process ends, its answer says why there is no capture."""

    NO_STEPS = "end.py: its optimizers made 0 of the 2 steps that a capture needs"
    LEFT = "end.py ended {}, after 0 steps of its optimizers"
    ENDS = (
        ("pass", NO_STEPS), ("raise SystemExit(3)", NO_STEPS),
        ("print('no', 'GPU')", f"{NO_STEPS}; it wrote last: no GPU"),
        ("sys.stderr.write('\\r 9%|'); raise SystemExit", NO_STEPS),
        ("raise SystemExit('no data: run it')", LEFT.format("itself: no data: run it")),
        ("sys.exit('no data: run it')", LEFT.format("itself: no data: run it")),
        ("exit(3)", LEFT.format("with exit status 3")),
        ("print('no data'); sys.exit(1)", LEFT.format("with exit status 1") + "; it wrote last: no data"),
        ("import argparse; argparse.ArgumentParser().parse_args(['--lr'])",
         LEFT.format("with exit status 2") + "; it wrote last: end.py: error: unrecognized arguments: --lr"),
        ("open('/nonexistent')", "end.py:3: FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent'"),
        ("import threading\ndef run(): return {}['key']\nthreading.Thread(target=run).start()", "end.py:4: KeyError: 'key'"),
        ("import atexit; atexit.register(sys.exit, 3)", LEFT.format("with exit status 3") + "; it wrote last: SystemExit: 3"),
        ("os._exit(3)", None),
    )  # fmt: skip

    def test_each_is_told(self):
        for text, said in self.ENDS:
            with self.subTest(end=text):
                self.file("end.py", f"import os, sys\nimport torch\n{text}\n")
                reasons = [header["reason"] for header, _ in self.answers(sys.executable, "end.py")]
                self.assertEqual(reasons, [said] if said else [])


@unittest.skipUnless(CURRENT, "needs a current PyTorch")
class Commands(Case):
    def setUp(self):
        super().setUp()
        self.train = self.file("train.py", TRAIN)
        self.file("shapes.py", "OUT = 5\n")

    def test_a_script_as_it_is(self):
        header, text = self.captured(sys.executable, "-u", "-X", "utf8", "train.py", "--batch-size", "6")
        self.assertIn("\nbatch 6\n", text)
        self.assertEqual(header["script"], str(self.train))
        self.assertEqual(self.own(header), [str(self.folder / "shapes.py"), str(self.train)])
        self.assertEqual(header["versions"]["torch"], torch.__version__)
        self.assertEqual(header["python"], sys.executable)

    def test_what_carma_capture_records(self):
        path = self.folder / "model.capture"
        subprocess.run([sys.executable, "-m", "carma.capture", "-o", path, "train.py"], cwd=self.folder, check=True,
                       env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True)  # fmt: skip
        self.assertEqual(self.captured(sys.executable, "train.py")[1], path.read_text())

    def test_a_shell_script_that_prepares_data_by_torch_first(self):
        self.file("data/prepare.py", "import torch; torch.save(torch.ones(9, 10), 'batch.pt')")
        self.file("data/fit.py", TRAIN.replace("torch.randn(batch, 10)", "torch.load('batch.pt')"))
        self.file("go.sh", "set -e\nPY=$1\ncd data\n$PY prepare.py\n$PY fit.py --batch-size ${BATCH:-3}\necho never\n")
        _, text = self.captured("bash", "go.sh", sys.executable, PYTHONPATH=str(self.folder))
        self.assertIn("\nbatch 9\n", text)

    def test_a_library_that_imports_torch_itself_has_stand_ins(self):
        """Of a known model's sizes, changed when the module is done that imports torch."""
        self.file("transformers/__init__.py", "")
        self.file("transformers/configuration_utils.py", "import torch\nclass PretrainedConfig:\n    @classmethod\n"
                  "    def get_config_dict(cls, name, **more): raise OSError(name)\n")  # fmt: skip
        self.file("fit.py", "from transformers.configuration_utils import PretrainedConfig as Config\n"
                  "found, _ = Config.get_config_dict('google-bert/bert-base-cased', token=1)\n"
                  "assert found['vocab_size'] == 28996\n" + TRAIN)  # fmt: skip
        self.captured(sys.executable, "fit.py", "--batch-size", "3", PYTHONPATH=str(self.folder))

    @unittest.skipUnless(importlib.util.find_spec("triton"), "needs triton")
    def test_no_kernel_of_triton_runs(self):
        kernel = "import triton\n@triton.jit\ndef kernel(x):\n    pass\nimport torch\nkernel[(1,)](1)\n"
        self.file("fit.py", kernel + TRAIN)
        self.captured(sys.executable, "fit.py", "--batch-size", "3")

    def test_a_module(self):
        self.file("package/__init__.py", "import torch")
        self.file("package/train.py", TRAIN)
        header, _ = self.captured(sys.executable, "-m", "package.train")
        self.assertEqual(header["script"], str(self.folder / "package/train.py"))

    def test_a_program_on_the_standard_input(self):
        header, _ = self.captured("sh", "-c", f"exec {sys.executable} - <<'END'\n{TRAIN}\nEND\n")
        self.assertIsNone(header["script"])

    def test_torchrun_records_one_rank_of_as_many_as_it_starts(self):
        self.file("ddp.py", "import os, torch, torch.distributed as dist\ndist.init_process_group('nccl')\n"
                  "rank = int(os.environ['LOCAL_RANK'])\ntorch.cuda.set_device(rank)\nbatch = dist.get_world_size()\n"
                  "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 5).cuda(rank), [rank])\n"
                  f"optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n{LOOP}")  # fmt: skip
        for count, variables in (("2", {}), ("gpu", {"CARMA_AUTO_CAPTURE_GPUS": "3"})):
            command = ("-m", "torch.distributed.run", "--master-port", "0", "--nproc-per-node", count, "ddp.py")
            _, text = self.captured(sys.executable, *command, **variables)
            self.assertIn(f"\nbatch {count if count != 'gpu' else 3}\n", text)

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "needs accelerate")
    def test_accelerate_launch(self):
        self.file("fit.py", "import torch\nfrom accelerate import Accelerator\nit = Accelerator()\n"
                  "model = torch.nn.Linear(10, 7)\noptimizer = torch.optim.AdamW(model.parameters())\n"
                  "model, optimizer = it.prepare(model, optimizer)\n"
                  "while True:\n    it.backward(model(torch.randn(it.num_processes, 10, device=it.device)).sum())\n"
                  "    optimizer.step(); optimizer.zero_grad()\n")  # fmt: skip
        launch = (sys.executable, "-m", "accelerate.commands.launch")
        self.assertIn("\nbatch 1\n", self.captured(*launch, "fit.py")[1])
        many = ("--multi_gpu", "--num_processes", "2", "--main_process_port", "0")
        self.assertIn("\nbatch 2\n", self.captured(*launch, *many, "fit.py")[1])

    def test_a_process_that_a_script_spawns(self):
        body = TRAIN.partition("model =")[2].replace("shapes.OUT", "out").replace("\n", "\n    ")
        self.file("spawn.py", "import multiprocessing\n\ndef train(out, batch):\n    import torch\n    model =" + body +
                  "\nif __name__ == '__main__':\n    started = multiprocessing.get_context('spawn').Process("
                  "target=train, args=(5, 8))\n    started.start()\n    started.join()\n")  # fmt: skip
        self.assertIn("\nbatch 8\n", self.captured(sys.executable, "spawn.py")[1])

    def test_the_reason_is_that_of_the_process_that_came_farthest(self):
        self.file("prepare.py", "import torch")
        self.file("fit.py", "import torch\nopen('/nonexistent/data.csv')")
        reason = self.refused("sh", "-c", f"{sys.executable} prepare.py; {sys.executable} fit.py; {sys.executable} prepare.py")
        self.assertEqual(reason, "fit.py:2: FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent/data.csv'")
        self.file("start.py", "import torch, subprocess, sys\nsubprocess.run([sys.executable, 'fit.py'], check=True)")
        self.assertEqual(self.refused(sys.executable, "start.py"), reason)

    def test_reasons(self):
        self.file("net.py", "import torch, urllib.request\nurllib.request.urlopen('http://data.invalid/set.tar')")
        self.assertRegex(self.refused(sys.executable, "net.py"), "^net.py needs the network: http://data.invalid/set.tar: URLError: ")


if __name__ == "__main__":
    unittest.main()
