#!/bin/sh
# The whole system on a virtual node: jobs run, share, crash and recover, are held and cancelled.
. "$(dirname "$0")/node.sh"
start_node h200x1 300
start_daemon --set policy=round-robin --set memory_view=monitor --set share=mps --set settle=1s --set decide_period=0s

# A job runs in its directory with its environment on its GPU, and wait gives its status.
# shellcheck disable=SC2016 # for the job's shell
expect_id 1 -J shell -- sh -c 'pwd; echo "$CUDA_VISIBLE_DEVICES $CARMA_JOB_ID $MARK"; ls "$CUDA_MPS_PIPE_DIRECTORY"; exit 3'
ends 3 wait 1
run logs 1
[ "$(sed -n 1p "$T/out")" = "$(pwd -P)" ] || fail "the job ran in $(sed -n 1p "$T/out")"
sed -n 2p "$T/out" | grep -qE '^GPU-[0-9a-f-]{36} 1 $' || fail "the job's environment: $(sed -n 2p "$T/out")"
[ "$(sed -n 3p "$T/out")" = control ] || fail "MPS was not announced"
expect_field 1 state FAILED exit_cause failed
MARK=given "$CARMA" submit --parsable -W -- sh -c 'echo $MARK' >/dev/null
prints given logs 2
expect_field 2 state COMPLETED

# A signal, a command that is not there, a directory that is not there.
ends 137 submit --parsable -W -- sh -c 'kill -9 $$'
ends 127 submit --parsable -W -- "$T/no-such-program"
expect_field 4 state FAILED
field 4 message | grep -qF no-such-program || fail "job 4: $(field 4 message)"

# An exclusive job is not announced MPS.
# shellcheck disable=SC2016
run submit --parsable -W --exclusive -- sh -c 'ls "$CUDA_MPS_PIPE_DIRECTORY" | wc -l'
prints 0 logs 5

# Two jobs with too much memory together: the later crashes, waits for an idle GPU, completes. The first waits for that.
expect_id 6 -J first -- "$TRAIN" --memory 80G --sm-activity 0.3 --seconds 1000000
until_field 6 placements.0.observed_bytes $((80 << 30))
run submit --parsable -J second -- "$TRAIN" --memory 70G --sm-activity 0.3 --seconds 100
run submit --parsable -J third -- "$TRAIN" --memory 1G --sm-activity 0.3 --seconds 10
until_field 7 crashes 1
expect_field 7 state QUEUED retry true
shows '1 idle GPU needed, 0 are idle' explain 7
run gpus
grep -qF H200 "$T/out" || fail "gpus: $(cat "$T/out")"
run cancel 6
expect_ok wait 7 8
expect_field 7 attempts 2 crashes 1
expect_field 8 crashes 0
[ "$(grep -c 'CUDA out of memory' carma-7.out)" -eq 1 ] || fail "job 7 wrote: $(cat carma-7.out)"

# Hold, release, cancel; the tree of a job that ignores SIGTERM goes all the same.
expect_id 9 -H -- true
expect_field 9 state HELD
shows "held: 'carma release' lets it run" explain 9
run release 9
expect_ok wait 9
expect_error 1 "already ended" hold 9
runs 10 -- sh -c 'trap "" TERM; sleep 300 & echo $!; wait; wait'
until [ -s carma-10.out ]; do sleep 0.02; done
expect_ok cancel 10
run wait 10
expect_field 10 state CANCELLED
kill -0 "$(cat carma-10.out)" 2>/dev/null && fail "a cancelled job left a process"

# An impossible job is refused at once, and with it all others of the same request.
expect_error 1 "2 GPUs needed, the node has 1" submit -G 2 -- true
expect_error 1 "1.0 TiB of GPU memory needed" submit --gpu-memory 1T -- true
printf 'conda activate base\ntrue\nsummary.txt\nimagenet\n32\nexclusive\n1\n' >good.rad
printf 'conda activate base\ntrue\nsummary.txt\nimagenet\n32\nexclusive\n9\n' >bad.rad
echo 'Total params: 1' >summary.txt
expect_error 1 "9 GPUs needed" submit good.rad bad.rad
run queue --all --json
grep -q '"id": 11' "$T/out" && fail "something was half submitted"

# Wrong usage is status 2, a wrong file or environment 1; each is told in one line.
tells() {
    wanted=$1
    text=$2
    shift 2
    "$@" >"$T/out" 2>"$T/err" </dev/null
    status=$?
    [ "$status" -eq "$wanted" ] && [ "$(wc -l <"$T/err")" -eq 1 ] && grep -qF -e "$text" "$T/err" ||
        fail "$*: status $status: $(cat "$T/err")"
}
printf 'policy = magm\nfoo = 1\n' >wrong.conf
for program in carmad carma-vnode carma-train; do
    tells 2 "unrecognized option '--foo'" "$PREFIX/bin/$program" --foo
done
tells 2 "'foo' is not expected here" "$PREFIX/bin/carmad" foo
tells 2 "option '--state' requires an argument" "$PREFIX/bin/carmad" --state
tells 2 "unknown key 'foo'" "$PREFIX/bin/carmad" --set foo=1
tells 1 "wrong.conf:2: unknown key 'foo'" "$PREFIX/bin/carmad" --config wrong.conf
tells 1 "CARMA_TIME_SCALE 'x'" env CARMA_TIME_SCALE=x "$PREFIX/bin/carmad"
tells 2 "say 'create', 'show', 'inject' or 'clear'" "$PREFIX/bin/carma-vnode" mend
tells 2 "--seconds 'nan' is not a number" "$PREFIX/bin/carma-train" --seconds nan

"$PREFIX/bin/carmad" --version | grep -qx "carmad $("$CARMA" --version | sed 's/.* //')" || fail "carmad --version"

# One daemon per state.
"$PREFIX/bin/carmad" --state "$STATE" --socket "$T/other" 2>"$T/err"
status=$?
[ "$status" -eq 1 ] && [ "$(wc -l <"$T/err")" -eq 1 ] && grep -qF "$STATE" "$T/err" ||
    fail "a second daemon: status $status: $(cat "$T/err")"
stop_daemon
[ "$daemon_status" -eq 0 ] || fail "carmad ended with status $daemon_status"
expect_error 1 "$CARMA_SOCKET" queue
tells 1 "$STATE: its last record lies" env CARMA_TIME_SCALE=2 timeout 5 "$PREFIX/bin/carmad" --state "$STATE" \
    --socket "$T/other"
