#!/bin/sh
# The real thing, where there are PyTorch and the sandbox: examples/train_mlp.py is estimated unasked, before its start
# on a full node and soon after it on an idle one. What a script does in its capture harms nobody.
. "$(dirname "$0")/node.sh"
ln -s "$SOURCE/python" "$PREFIX/share/carma/python"
/usr/bin/python3 -c 'import torch' 2>/dev/null || skip "/usr/bin/python3 has no PyTorch (Debian: python3-torch)"
"$PREFIX/lib/carma/carma-sandbox" --check 2>why || skip "$(cat why)"
start_all a100x4-40g 60 --config /dev/null

# Of a command, without a daemon: as its user, in the sandbox.
shows '^Model  *an automatic capture of train_mlp.py, [0-9]* s, captured with PyTorch' \
    estimate -- /usr/bin/python3 "$SOURCE/examples/train_mlp.py"

# On an idle node: the guess first, then the estimate.
run submit --parsable -- env OMP_NUM_THREADS=1 /usr/bin/python3 "$SOURCE/examples/train_mlp.py" --epochs 1000000
until_field 1 reservation_source estimated
expect_field 1 state RUNNING
shows '^memory: .* on each GPU: estimated .* by replay .* from an automatic capture of train_mlp.py, [0-9]* s$' \
    explain 1
run cancel 1
until_field 1 state CANCELLED

# On a full node, before it starts: as a line of a script, by a module, and with arguments that need more.
for _ in 1 2 3 4; do
    run submit --exclusive --gpu-memory 10G -- "$TRAIN" --workload resnet --seconds 1000000
done
printf '#!/bin/sh\nset -e\ncd "%s"\n/usr/bin/python3 examples/train_mlp.py "$@"\n' "$SOURCE" >job.sh
run submit --parsable job.sh -- --hidden 8192
expect_id 7 -D "$SOURCE/examples" -o "$T/out-%j" -- env PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m train_mlp
until_field 6 reservation_source estimated
until_field 7 reservation_source estimated
expect_field 6 state QUEUED
[ "$(field 6 reserved_bytes)" -gt "$(($(field 7 reserved_bytes) + 1000000000))" ] || fail "a larger model does not need more"

# A kept capture is used while the script and the packages are as they were.
cp "$SOURCE/examples/train_mlp.py" kept.py
# shellcheck disable=SC2034 # it is in the code that wait_for runs
origin='an automatic capture of kept.py'
run submit --parsable --hold -- /usr/bin/python3 kept.py
wait_for 'field 8 estimate.from 2>/dev/null | grep -q "^$origin, [0-9]* s$"' || fail "not captured: $(field 8 estimate)"
run submit --parsable --hold -- /usr/bin/python3 kept.py
wait_for 'field 9 estimate.from 2>/dev/null | grep -q "^$origin, [0-9]* s, made for job 8$"' ||
    fail "the kept capture is not used: $(field 9 estimate)"
echo '# edited' >>kept.py
run submit --parsable --hold -- /usr/bin/python3 kept.py
wait_for 'field 10 estimate.from 2>/dev/null | grep -q "^$origin, [0-9]* s$"' ||
    fail "an edited script is not captured anew: $(field 10 estimate)"

# A script that does harm outside does none here (tests/sandbox has more of them).
cat >hostile.py <<'PYTHON'
import contextlib, os, pathlib, subprocess, torch
for act in (lambda: pathlib.Path("harm").write_text("x"),
            lambda: subprocess.run([os.environ["CARMA"], "submit", "--", "true"], check=True)):
    with contextlib.suppress(Exception):
        act()
while True:
    pass
PYTHON
run submit --parsable --hold -- env CARMA="$CARMA" /usr/bin/python3 hostile.py
until_field 11 estimating true
run cancel 11
until_field 11 estimating false
[ ! -e harm ] || fail "a capture wrote a file"
prints 12 submit --parsable -- true # nobody else submitted a job
expect_ok show 12

# The reason of a script that fails is told, whatever its exit status; a library may ask for PyTorch long before.
{
    echo 'import importlib.util; assert importlib.util.find_spec("torch")'
    cat "$SOURCE/examples/train_mlp.py"
} >asks.py
printf 'import torch\nopen("/nonexistent/data.csv")\n' >fails.py
expect_ok estimate -- /usr/bin/python3 asks.py
ends 1 estimate -- sh -c '/usr/bin/python3 fails.py; exit 9'
grep -qF "fails.py:2: FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent/data.csv'" "$T/err" || fail "$said: $(cat "$T/err")"
run submit --parsable --hold -- /usr/bin/python3 fails.py
until_field 13 estimating false
wait_for 'field 13 estimate.warnings.0 2>/dev/null | grep -qF "fails.py:2: FileNotFoundError"' ||
    fail "job 13 does not say why: $(field 13 estimate)"
