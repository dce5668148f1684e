"""python3 torch_profile.py TRACE SCRIPT [ARGUMENT...] (or -m MODULE): runs it under PyTorch's profiler with that one's
default settings, and writes the profile to TRACE. For `carma bench monitor`."""

import os
import runpy
import sys


def main(trace, script, *rest):
    module = script == "-m"
    sys.argv = [*rest] if module else [script, *rest]
    # As Python itself would have it: not the folder of this file, which has modules of other names.
    sys.path[0] = os.getcwd() if module else os.path.dirname(os.path.abspath(script))
    from torch.profiler import profile

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
    sys.exit(main(*sys.argv[1:]))
