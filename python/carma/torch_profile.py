"""python3 -m carma.torch_profile TRACE SCRIPT [ARGUMENT...] (or -m MODULE): runs it under PyTorch's profiler with that
one's default settings, and writes the profile to TRACE. For `carma bench monitor`."""

import runpy
import sys

from torch.profiler import profile


def main(arguments):
    trace, script, *rest = arguments
    module = script == "-m"
    sys.argv = rest if module else [script, *rest]
    status = 0
    with profile() as profiler:
        try:
            if module:
                runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            status = end.code
    profiler.export_chrome_trace(trace)
    return status


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
