#!/bin/sh
# The wheel that script/wheel makes of python/carma, installed in a fresh environment, against a virtual node. Where
# PyPI can be reached, also by IPython as a notebook has it, and under mypy.
. "$(dirname "$0")/node.sh"
unset PYTHONPATH
export PYTHONDONTWRITEBYTECODE=1
PYTHON=/usr/bin/python3
[ -x $PYTHON ] || PYTHON=python3
export PYTHON
$PYTHON -c 'import setuptools, venv, ensurepip' 2>/dev/null ||
    skip "$PYTHON has no setuptools, or cannot make environments (Debian: python3-setuptools, python3-venv)"

wheel=$("$SOURCE/script/wheel" "$T/wheels" 2>"$T/err") || fail "script/wheel: $(cat "$T/err")"
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$SOURCE/meson.build")
[ "$wheel" = "$T/wheels/carma-$version-py3-none-any.whl" ] || fail "script/wheel made $wheel of version '$version'"
for left in build carma.egg-info; do
    [ ! -e "$SOURCE/python/$left" ] || fail "script/wheel leaves python/$left"
done

$PYTHON -m venv "$T/venv" || exit 99
"$T/venv/bin/python" -m pip install -q --no-index --no-deps "$wheel" >"$T/out" 2>&1 || fail "pip: $(cat "$T/out")"
start_all a100x4-40g 100
# The origin of carma, its imports, and a job and a function that run by the environment's own Python.
cat >use.py <<'END'
import sys
import carma

@carma.job
def where():
    return sys.executable, carma.__file__

if __name__ == "__main__":
    assert carma.__file__.startswith(sys.prefix), carma.__file__
    assert not {"torch", "numpy"} & set(sys.modules), "import carma loads PyTorch"
    job = carma.submit(["echo", "by wheel"])
    assert job.wait() == 0 and job.logs() == "by wheel\n", job.logs()
    assert where.submit().result() == (sys.executable, carma.__file__)
    print(carma.__version__)
END
run_python() {
    said="python $*"
    "$T/venv/bin/python" "$@" >"$T/out" 2>"$T/err"
    status=$?
}
run_python use.py
expect_status 0
expect_output "$version"

# A type checker's view and a notebook's.
if timeout 300 "$T/venv/bin/python" -m pip install -q mypy ipython >"$T/log" 2>&1; then
    (cd "$SOURCE/python" && "$T/venv/bin/python" -m mypy --cache-dir "$T/mypy") >"$T/out" 2>&1 ||
        fail "mypy: $(cat "$T/out")"
    cat >typed.py <<'END'
import carma

@carma.job(gpus=1)
def train(lr: float) -> int:
    return 1

lines: list[str] = list(carma.submit("true", gpus=2, share="mps").logs(follow=True))
result: int = train.submit(lr=0.1).result()
wrong: str = train.submit(lr=0.1).result()
carma.submit("true", gpu=2)
END
    (cd "$T" && "$T/venv/bin/python" -m mypy --strict --cache-dir "$T/mypy" typed.py) >"$T/out" 2>&1
    [ "$(grep -c error: "$T/out")" -eq 2 ] && grep -q 'typed.py:9: .*assignment' "$T/out" && grep -q 'typed.py:10: .*"gpu"' "$T/out" ||
        fail "mypy: $(cat "$T/out")"
    run_python "$SOURCE/tests/cli/python_notebook.py"
    expect_status 0
    [ "$(tail -1 "$T/out")" = ok ] || fail "$said: $(cat "$T/out" "$T"/carma-*.out)"
else
    echo "mypy and IPython cannot be installed here: left out ($(tail -1 "$T/log"))"
fi

# Libraries that know nothing of carma: submitit by its plugin, Dask by an executor, the protocol's own client and carma-mcp.
if timeout 300 "$T/venv/bin/python" -m pip install -q submitit dask mcp==2.3.0 >"$T/log" 2>&1; then
    cat >others.py <<'END'
import asyncio
import os
import re
import sys

import carma
import dask
import mcp
import submitit
from mcp.client.stdio import StdioServerParameters

executor = submitit.AutoExecutor(folder="submitit", cluster="carma", carma_max_num_timeout=3)
named = set(re.findall("`carma_([a-z_]+)`", open(sys.argv[1] + "/docs/coming-from.md").read())) - {"max_num_timeout"}
assert len(named) > 9 and named <= executor._executor._valid_parameters(), named
executor.update_parameters(timeout_min=6000, gpus_per_node=1, name="by-submitit", carma_gpu_memory="1G", carma_array_parallelism=2)
job = executor.submit(lambda x: 2 * x, 21)
assert job.result() == 42
carma.Job(int(job.job_id)).wait()
assert job.get_info()["State"] == "COMPLETED", job.state
assert carma.Job(int(job.job_id)).info["name"] == "by-submitit"
jobs = executor.map_array(lambda x: (x, os.environ["CARMA_ARRAY_TASK_ID"]), [5, 6, 7])
assert [one.result() for one in jobs] == [(5, "0"), (6, "1"), (7, "2")], [one.stderr() for one in jobs]
wrong = executor.submit(lambda: 1 / 0)
assert "ZeroDivisionError" in str(wrong.exception())

def rank():
    environment = submitit.JobEnvironment()
    print("task", environment.global_rank)
    return environment.global_rank, environment.num_tasks

executor.update_parameters(tasks_per_node=2)
both = executor.submit(rank)
assert both.results() == [(0, 2), (1, 2)], both.stderr()
assert "task 1\n" in both.task(1).stdout(), both.task(1).stdout()
executor.update_parameters(tasks_per_node=1, carma_begin="now+10hours")
late = executor.submit(rank)
late.cancel()
assert late.get_info()["State"] == "CANCELLED", late.state

# A job that has its signal before the limit saves its call, and goes on with that.
class Counts(submitit.helpers.Checkpointable):
    def __init__(self):
        self.starts = 1

    def __call__(self):
        import time

        while self.starts == 1:
            time.sleep(0.01)
        return self.starts

    def checkpoint(self):
        again = Counts()
        again.starts = self.starts + 1
        return submitit.helpers.DelayedSubmission(again)

executor = submitit.AutoExecutor(folder="submitit", cluster="carma")
executor.update_parameters(timeout_min=900, carma_gpu_memory="1G", carma_signal="USR2@880m")
assert executor.submit(Counts()).result() == 2

values = [dask.delayed(lambda x: x + 1)(n) for n in range(3)]
with carma.Executor(gpu_memory="1G") as workers:
    assert dask.compute(*values, scheduler=workers) == (1, 2, 3)

async def assistant():
    server = StdioServerParameters(command=os.path.join(os.path.dirname(sys.executable), "carma-mcp"), env=dict(os.environ))
    async with mcp.Client(server) as client:
        assert "submit" in {tool.name for tool in (await client.list_tools()).tools}
        said = await client.call_tool("submit", {"command": ["true"], "gpu_memory": "1G"})
        assert not said.is_error and "Not submitted" in said.content[0].text, said

asyncio.run(assistant())
print("ok")
END
    run_python others.py "$SOURCE"
    expect_status 0
    [ "$(tail -1 "$T/out")" = ok ] || fail "$said: $(cat "$T/out" "$T/err")"
else
    echo "submitit, Dask and mcp cannot be installed here: left out ($(tail -1 "$T/log"))"
fi
