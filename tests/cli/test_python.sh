#!/bin/sh
# The Python client against the daemon of a virtual node.
. "$(dirname "$0")/node.sh"
python=/usr/bin/python3
[ -x $python ] || python=python3
export PYTHONPATH="$SOURCE/python" PYTHONDONTWRITEBYTECODE=1

# client TEST...: these of python_client.py.
client() {
    $python "$SOURCE/tests/cli/python_client.py" "$SOURCE" "$@" 2>"$T/client.log" || fail "$*: $(cat "$T/client.log")"
}

start_node a100x4-40g 100
client Gone
start_daemon
client Jobs Functions Many Assistant

# The examples of docs/python.md.
mkdir examples
echo 'print("epoch 1")' >examples/train.py
(cd examples && $python "$SOURCE/tests/cli/python_examples.py" "$SOURCE/docs/python.md") >"$T/out" 2>"$T/err" ||
    fail "docs/python.md: $(cat "$T/err")"
[ "$(grep -c '^ran lines$' "$T/out")" -eq 4 ] || fail "docs/python.md: $(cat "$T/out")"
grep -q '^ran sweep.py$' "$T/out" || fail "docs/python.md: $(cat "$T/out")"
grep -qF '[0.01, 0.01]' "$T/out" || fail "sweep.py: $(cat "$T/out")"
if grep -q '^ran captured.py$' "$T/out"; then
    grep -q '^estimated .* by replay .* from model.capture$' "$T/out" || fail "captured.py: $(cat "$T/out")"
fi

# The daemon goes while a job is waited for, and comes again; the job ends after that.
client Restart &
waiter=$!
wait_for '[ -e waiting ]'
stop_daemon
wait_for '[ -s missed ]'
start_daemon
touch restarted
wait $waiter
[ -e waiting ] || fail "nothing waited for the daemon"
grep -q '^OK$' "$T/client.log" || fail "after a restart: $(cat "$T/client.log")"
