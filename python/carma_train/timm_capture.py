"""Usage: timm_capture.py MODELS.csv DIRECTORY [--until HH:MM] [--seconds N] [--memory GIB] [--model NAME]...

Records a training step of each timm model that the column `model` of MODELS.csv names, as DIRECTORY/NAME.capture. The
step has the model's own input size, any batch size, fp32, cross entropy and Adam. Models that cannot be recorded go to
DIRECTORY/failed.csv with the reason. Models come in a random order that is always the same, so the models recorded
until it is stopped are a fair sample. Started again, it goes on. Each model runs in a process of its own with a limit
of time and of memory. Needs timm and a PyTorch that python/carma can record."""

import argparse
import csv
import datetime
import gc
import os
import pathlib
import random
import resource
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

BATCH, OTHER_BATCH = 8, 12
SEED = 4068


def names_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        names = sorted({row["model"] for row in csv.DictReader(file)})
    random.Random(SEED).shuffle(names)
    return names


def record(name, path):
    import carma
    import timm
    import torch

    with torch.device("meta"):  # shapes are enough
        model = timm.create_model(name)
    size = (model.pretrained_cfg or model.default_cfg)["input_size"]
    source = torch.empty((BATCH, *size), device="meta")
    return carma.capture(model, source, "cross_entropy", "adam", path, other_batch_size=OTHER_BATCH, name=name)


def _worker(name, path, report, memory_bytes):
    """In the child: exits 0 where the capture is there, else writes why not."""
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + memory_bytes, used + memory_bytes))
    try:
        result = record(name, path)
        text, status = f"{result['events']} events" + (f", {result['reason']}" if result["reason"] else ""), 0
    except Exception as error:
        lines = str(error).splitlines() or [""]
        text, status = f"{type(error).__name__}: {lines[0][:300]}", 1
    os.write(report, text.encode())
    os._exit(status)


def run_apart(name, path, seconds, memory_bytes):
    """(done, its message)"""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        _worker(name, path, sink, memory_bytes)
    os.close(sink)
    deadline = time.monotonic() + seconds
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(source)
            return False, f"took longer than {seconds} s"
        time.sleep(0.05)
    with os.fdopen(source, "rb") as file:
        text = file.read().decode(errors="replace")
    if os.WIFSIGNALED(status):
        return False, f"ended by signal {os.WTERMSIG(status)}"
    return os.WEXITSTATUS(status) == 0, text


def failures(path):
    if not path.exists():
        return {}
    with open(path, newline="", encoding="utf-8") as file:
        return {row["model"]: row["reason"] for row in csv.DictReader(file)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--until", help="begin no model after this time of day")
    parser.add_argument("--seconds", type=int, default=300, help="for one model")
    parser.add_argument("--memory", type=int, default=8, help="GiB of address space for one model")
    parser.add_argument("--model", action="append", help="this one alone")
    parser.add_argument("--again", action="store_true", help="also the models that failed before")
    arguments = parser.parse_args()

    try:
        import timm  # noqa: F401
        import torch
    except ImportError as error:
        sys.exit(f"timm_capture: {error}: pip install -r python/requirements-capture.txt")
    torch.set_num_threads(1)  # no threads: workers are forked
    gc.collect()
    gc.freeze()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    failed_path = arguments.directory / "failed.csv"
    failed = {} if arguments.again else failures(failed_path)
    names = arguments.model or names_of(arguments.models)
    done = 0
    for index, name in enumerate(names, 1):
        path = arguments.directory / f"{name}.capture"
        if path.exists():
            done += 1
            continue
        if name in failed:
            continue
        if arguments.until and datetime.datetime.now().strftime("%H:%M") >= arguments.until:
            print(f"stopped at {arguments.until}", flush=True)
            break
        begin = time.monotonic()
        good, text = run_apart(name, path, arguments.seconds, arguments.memory << 30)
        done += good
        if not good:
            failed[name] = text
            with open(failed_path, "w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(["model", "reason"])
                writer.writerows(sorted(failed.items()))
        print(f"{index}/{len(names)} {name}: {'' if good else 'not recorded: '}{text} "
              f"({time.monotonic() - begin:.1f} s; {done} recorded, {len(failed)} not)", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
