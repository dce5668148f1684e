#!/bin/sh
# The default sharing mode: MPS for a user's jobs, turns for several users' where that pays, and where there is no MPS.
. "$(dirname "$0")/users.sh"
start_node h200x1 20 # a window of measurements is 4.5 s: a busy machine leaves no empty ones
chmod 666 "$CARMA_VNODE"
. "$SOURCE/tests/cli/mps.sh"
homes
SHARE=auto

# train USER SM_ACTIVITY: submits a job without end.
train() {
    allowed "$1" submit --parsable --gpu-memory 5G -- "$TRAIN" --memory 4G --sm-activity "$2" --seconds 1000000
}

start --set policy=carma
shows '"share": "auto"' gpus --json
grep -q '"share_why": null' "$T/out" || fail "gpus --json: $(cat "$T/out")"
train alice 0.3
until_field 1 placements.0.observed_bytes $((4 << 30)) # it is judged by what it does, and not while it starts
wait_for '"$CARMA" gpus --json | grep -q "\"sm_activity_permille\": 300"' || fail "job 1 is not as active as it will be"
# A job of another user, of which nothing is known, would gain little by turns; one of the same user shares by MPS.
train bob 0.3
shows "GPU 0 is in use by alice's job 1; time-slicing with it would not pay" explain 2
train alice 0.3
until_field 3 state RUNNING
shows 'runs.* by MPS' explain 3
run cancel 1 3
until_field 2 state RUNNING
run cancel 2
run wait 1-3
stop_daemon

# Without MPS jobs take turns, and the log and carma gpus tell why.
start --set policy=carma --set mps_control="$T/no-mps"
grep -q "share = auto, and no job shares by MPS: there is no MPS control program '$T/no-mps'" "$T/daemon.log" ||
    fail "the log does not say that there is no MPS"
shows "GPU 0: shared by time-slice although share = auto: there is no MPS control program" gpus
train alice 0.3
until_field 4 state RUNNING
shows 'runs.* by time-slicing' explain 4
cancel 4
run submit --mps-memory-limit 4G -- true
grep -q "warning: --mps-threads and --mps-memory-limit are not in force here: there is no MPS control program" "$T/err" ||
    fail "$said: $(cat "$T/err")"
