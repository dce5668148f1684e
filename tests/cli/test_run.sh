#!/bin/sh
# carma run and carma attach: input, outputs, exit status, Ctrl-C; and what is killed loses nothing. On a terminal: attached.py.
. "$(dirname "$0")/node.sh"
start_all a100x4-40g 60

# attached NAME ARGUMENT...: carma run in the background; its input is the FIFO NAME.in, open at 8; $attached is its process.
attached() {
    name=$1
    shift
    mkfifo "$name.in"
    "$CARMA" run -o "$name.log" "$@" <"$name.in" >"$name.out" 2>"$name.err" &
    attached=$!
    exec 8>"$name.in"
}

# is_over STATUS: that process ends with it.
is_over() {
    wait "$attached"
    over=$?
    [ "$over" -eq "$1" ] || fail "$name: status $over, not $1: $(cat "$name.err")"
    exec 8>&-
}

# id_of NAME: the job's, once it is submitted.
id_of() {
    wait_for 'grep -q "carma: job [0-9]* (" "$1.err"' "$1" || fail "$1: not submitted: $(cat "$1.err")"
    sed -n 's/carma: job \([0-9]*\) (.*/\1/p' "$1.err"
}

# Outputs are apart, and in files as any job's; the exit status is the job's, also of one that could not run.
ends 3 run -- sh -c 'echo out; echo err >&2; cat; exit 3' </dev/null # it ends once the client is attached
expect_output out
[ "$(grep -c '^err$' "$T/err")" -eq 1 ] || fail "no error came: $(cat "$T/err")"
[ "$(cat carma-1.out) $(cat carma-1.err)" = "out err" ] || fail "the outputs of job 1 are not in its files"
ends 127 run -- "$T/nothing"
ends 137 run -- sh -c 'kill -KILL $$'
ends 124 run -t 1 -- sleep 600
expect_error 2 "stands before '--'" run true
expect_error 2 "leave --requeue out" run --requeue -- true
expect_error 1 "carma logs -f" attach "$(submitted --gpu-memory 1G -- sleep 600)"
cancel @
expect_error 1 "carma logs" attach 1

# Input of any size arrives, and is at an end. A reader that takes its time keeps nobody waiting, and misses nothing.
seq 300000 >numbers
"$CARMA" run -- md5sum <numbers 2>/dev/null | cmp -s - /dev/fd/3 3<<EOF || fail "the input did not arrive"
$(md5sum <numbers)
EOF
"$CARMA" run -o slow.log -- cat "$T/numbers" 2>slow.err | {
    until_field "$(id_of slow)" state COMPLETED
    cmp - numbers
} || fail "a slow reader has not all of the output"

# interruptible NAME ARGUMENT...: carma; a terminal's SIGINT comes to what a shell starts without `&` alone.
interruptible() {
    name=$1
    shift
    setsid python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$CARMA" "$@" </dev/null >"$name.out" 2>"$name.err" &
    attached=$!
}

# While it waits its place is shown, and Ctrl-C cancels it.
"$CARMA" submit --exclusive -G 4 -- sleep 600 >/dev/null
interruptible queue run --exclusive -- touch "$T/ran"
wait_for 'grep -qs "waits, 1 of 1 in the queue: " queue.err' || fail "its place is not shown: $(cat queue.err)"
kill -INT "$attached"
is_over 130
expect_field "$(id_of queue)" state CANCELLED
grep -q 'is cancelled' queue.err && [ ! -e ran ] || fail "it is not said that it was cancelled: $(cat queue.err)"
cancel @ "$(($(id_of queue) - 1))"

# It goes to the job; twice, it cancels.
program stubborn <<'SCRIPT'
#!/bin/sh
trap 'echo interrupted' INT
echo ready
until [ -e done ]; do sleep 0.1; done
SCRIPT
interruptible twice run -- "$T/stubborn"
wait_for 'grep -q ready twice.out' || fail "twice: $(cat twice.err)"
kill -INT "$attached"
wait_for 'grep -q interrupted twice.out' || fail "the job was not interrupted"
expect_field "$(id_of twice)" state RUNNING
kill -INT "$attached"
sleep 0.2
kill -INT "$attached" 2>/dev/null # where the machine was slow, the second came too late
wait "$attached" && fail "a job that was cancelled has status 0"
expect_field "$(id_of twice)" state CANCELLED

# Killed: the client, whose job goes on with the input of the next; carmad; and the client of a job that waits.
attached killed -- sh -c 'echo begun >>begun; while read -r line; do echo "got $line"; done; exit 5'
echo one >&8
wait_for 'grep -q "got one" killed.out' || fail "killed: $(cat killed.err)"
id=$(id_of killed)
kill -KILL "$attached"
is_over 137
again_after_kill
! "$CARMA" requeue "$id" 2>requeue.err && grep -q 'is not started again' requeue.err || fail "requeue: $(cat requeue.err)"
expect_field "$id" state RUNNING
mkfifo again.in
"$CARMA" attach "$id" <again.in >again.out 2>again.err &
attached=$! name=again
exec 8>again.in
echo two >&8
wait_for 'grep -q "got two" again.out' || fail "again: $(cat again.err)"
grep -q 'got one' again.out || fail "what was written last is not shown: $(cat again.out)"
stop_daemon KILL
exec 8>&-
start_daemon
is_over 5
[ "$(cat killed.log)" = "got one
got two" ] || fail "the output is '$(cat killed.log)'"
[ "$(wc -l <begun)" -eq 1 ] || fail "the job ran $(wc -l <begun) times"

# Out of GPU memory it is not started again, as a job of carma submit is: what was typed is gone.
program oom <<'SCRIPT'
#!/bin/sh
echo started >>"$1"
echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.'
exit 1
SCRIPT
ends 1 run -- ./oom of_run
ends 1 submit --wait -- ./oom of_submit
[ "$(wc -l <of_run) $(($(wc -l <of_submit) > 1))" = "1 1" ] || fail "started $(wc -l <of_run) times, and by submit $(wc -l <of_submit)"

# carma jupyter, with a stand-in that says where it serves as JupyterLab does. Its token is its user's alone, and in no output.
mkdir home lab
program lab/jupyter-lab <<'SCRIPT'
#!/bin/sh
echo "$JUPYTER_TOKEN" >token
echo "$@" >arguments
printf '    http://localhost:18888/lab?token=...\n     or https://127.0.0.1:18888/lab?token=...\n' >&2
echo '[W 21:00:00.000 ServerApp] Origin: ] http://127.0.0.1:6666/?token=x' >&2
exec sleep 1000
SCRIPT
HOME=$T/home
PATH=$T/home "$CARMA" jupyter 2>none.err
grep -q 'there is no jupyter-lab in PATH' none.err || fail "without JupyterLab: $(cat none.err)"
PATH=$T/lab:$PATH
expect_error 2 'leave --array out' jupyter --array 1-2
interruptible lab jupyter --gpu-memory 1G -- --frob
lab=$(id_of lab)
wait_for 'grep -q "ssh -N -L 18888:127.0.0.1:18888 $(id -un)@$(uname -n)" lab.out' || fail "jupyter: $(cat lab.out lab.err)"
grep -qx "    https://127.0.0.1:18888/lab?token=$(cat token)" lab.out && grep -q '^[0-9a-f]\{48\}$' token || fail "$(cat token lab.out)"
[ "$(stat -c %a home/.config/carma/jupyter-token)" = 600 ] || fail "its token: $(ls -l home/.config/carma)"
grep -q -- '--no-browser --ip=127.0.0.1.* --frob$' arguments || fail "its arguments: $(cat arguments)"
expect_field "$lab" interactive jupyter idle_limit_ns 7200000000000
kill -INT "$attached"
is_over 0
grep -q "job $lab goes on: .*, carma cancel $lab ends it" lab.err || fail "Ctrl-C: $(cat lab.err)"
expect_ok jupyter
grep -q "you have job $lab (jupyter) already" "$T/err" || fail "it is not there: $(cat "$T/err")"
cmp "$T/out" lab.out || fail "its address is another: $(cat "$T/out")"
chmod 644 home/.config/carma/jupyter-token
expect_error 1 'is not a file that you alone can read' jupyter -J other
cancel "$lab"

[ -z "$(ls "$CARMA_SOCKET.scripts")" ] || fail "something stays: $(ls "$CARMA_SOCKET.scripts")"

PYTHON=/usr/bin/python3 # the distribution's, which has the distribution's pyte
$PYTHON -c 'import pyte' 2>/dev/null || skip "no pyte here: script/packages test installs it"
$PYTHON -B "$SOURCE/tests/cli/attached.py" "$CARMA" || fail "attached.py"
