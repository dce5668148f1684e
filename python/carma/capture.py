"""Usage: python -m carma.capture [OPTIONS] SCRIPT [ARGUMENT]...

Runs a training script as it is, but with fake tensors: no GPU is needed and no model is allocated. Every tensor that
comes and goes on the GPU is noted until the optimizers have made the wanted number of steps. Then the script is
stopped, and the notes are written to a file that `carma estimate --capture` reads (docs/capture.md)."""

import argparse
import os
import sys
import types


def _arguments():
    parser = argparse.ArgumentParser(
        prog="python -m carma.capture",
        description=__doc__.split("\n\n", 1)[1],
        usage="%(prog)s [OPTIONS] SCRIPT [ARGUMENT]...",
    )
    parser.add_argument("-o", "--output", default="model.capture", metavar="FILE", help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=2, metavar="N", help="of optimizers; default: %(default)s")
    parser.add_argument(
        "--batch", metavar="N,M",
        help="run the script once with {batch} in its arguments replaced by N and once by M: the capture holds for "
        "every batch size",
    )  # fmt: skip
    parser.add_argument(
        "--longest", type=int, metavar="N",
        help="a last step with batches of which each dimension that differs between steps (sentences' length) is N",
    )  # fmt: skip
    parser.add_argument(
        "--example-batch", metavar="FILE",
        help="of torch.save() or a .npz: every data loader gives this batch, where the data are not here",
    )  # fmt: skip
    parser.add_argument("--name", help="of the model; default: its class")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="the script's own")
    return parser.parse_args()


def _batches(arguments):
    """The script's arguments for each run."""
    if arguments.batch is None:
        return [arguments.arguments]
    sizes = arguments.batch.split(",")
    if (
        not 1 <= len(sizes) <= 2
        or not all(size.isdigit() and int(size) > 0 for size in sizes)
        or len(set(sizes)) < len(sizes)
    ):
        sys.exit(f"carma.capture: --batch {arguments.batch}: one or two different batch sizes, as in 8,12")
    if not any("{batch}" in argument for argument in arguments.arguments):
        sys.exit(
            "carma.capture: --batch: the script's arguments must say where it goes, as `train.py --batch-size {batch}`"
        )
    return [[argument.replace("{batch}", size) for argument in arguments.arguments] for size in sizes]


def main():
    arguments = _arguments()
    runs = _batches(arguments)
    for option, value in (("steps", arguments.steps), ("longest", arguments.longest)):
        if value is not None and value < 1:
            sys.exit(f"carma.capture: --{option} {value}: at least 1")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before PyTorch looks
    try:
        import torch  # noqa: F401
    except ImportError as error:
        sys.exit(f"carma.capture: {error}: install PyTorch for {sys.executable}")
    from carma import example, script, step, writer
    from carma.errors import CaptureError

    try:
        batch = example.load(arguments.example_batch) if arguments.example_batch is not None else None
        recorded = [script.record(arguments.script, run, arguments.steps, arguments.longest, batch) for run in runs]
        (trace, header), other = recorded[0], recorded[1][0] if len(recorded) > 1 else None
        if other is not None and other.batch == trace.batch:
            raise CaptureError(f"--batch {arguments.batch}: the script trained with {trace.batch} both times")
        if arguments.name is not None:
            header["model"] = arguments.name
        text, reason = writer.text(trace, other, header)
        step.write(arguments.output, text)
    except (CaptureError, OSError) as error:
        sys.exit(f"carma.capture: {error}")
    scale = "for any batch size" if not reason else f"for this batch size alone ({reason})"
    training = f"batch size {trace.batch}, {header['optimizer']}, {header['precision']}"
    print(f"{arguments.output}: {header['model']}, {training}, {len(trace.events)} events; {scale}", file=sys.stderr)
    for doubt in header["doubts"]:
        print(f"{arguments.output}: {doubt}", file=sys.stderr)


class _Callable(types.ModuleType):
    """`import carma.capture` puts this module where the function carma.capture was: it can be called all the same."""

    def __call__(self, *args, **kwargs):
        from carma import step

        return step.capture(*args, **kwargs)


if __name__ == "__main__":
    main()
else:
    sys.modules[__name__].__class__ = _Callable
