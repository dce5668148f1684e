"""The command line: python3 -m carma_collect FAMILY --output FILE."""

import argparse
import sys

from . import collect, draw


def options():
    parser = argparse.ArgumentParser(prog="python3 -m carma_collect", description=__doc__)
    parser.add_argument("family", choices=sorted(draw.FAMILIES))
    parser.add_argument("--output", required=True, metavar="FILE", help="CSV file to write or to go on with")
    parser.add_argument("--runs", type=int, default=1000, metavar="N", help="rows in all (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=10, metavar="S", help="of each training (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the random draw (default %(default)s)")
    parser.add_argument("--gpu", type=int, default=0, metavar="INDEX", help="NVML's index (default %(default)s)")
    parser.add_argument("--beyond", action="store_true",
                        help="also SGD, momentum, AdamW, mixed precision, checkpointing, Conv1D transformers")  # fmt: skip
    return parser.parse_args()


def show(done, runs, row):
    end = "\n" if done == runs or not sys.stderr.isatty() else ""
    start = "\r\033[K" if sys.stderr.isatty() else ""
    print(f"{start}{done}/{runs} {row['status']} {row['max_gpu_memory_mib']} MiB", end=end, file=sys.stderr, flush=True)


def main():
    arguments = options()
    try:
        from . import gpu as driver
    except ImportError:
        print("carma_collect: the package nvidia-ml-py is missing: python3 -m pip install nvidia-ml-py", file=sys.stderr)
        return 1
    try:
        gpu = driver.Gpu(arguments.gpu)
        if gpu.processes():
            raise collect.Refused(f"GPU {gpu.index} runs {gpu.processes()} processes: measure on a GPU that is idle")
        collect.collect(
            arguments.output, arguments.family, arguments.runs, arguments.seed, arguments.beyond,
            lambda config: collect.measure(gpu, driver.Watch, arguments.family, config, arguments.seconds), show,
        )  # fmt: skip
    except driver.NoGpu as error:
        print(f"carma_collect: {error}", file=sys.stderr)
        return 3
    except (collect.Refused, OSError) as error:
        print(f"carma_collect: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ncarma_collect: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
