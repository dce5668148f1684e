#!/bin/sh
# The MPS server that a job gets where each GPU has its own (mps:gpu): one for all its GPUs, one that is there, another
# user's, a MIG instance's. Also the message where it gets none.
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 100
. "$SOURCE/tests/cli/mps.sh"
SHARE=mps:gpu
start

# A job on several GPUs has one server for all of them; another on one of these joins it.
run submit --parsable --exclusive -- sleep 100000
run submit --parsable -G 3 -- "$TRAIN" --gpus 3 --memory 4G --sm-activity 0.3 --seconds 6000
until_field 2 placements.2.observed_bytes $((4 << 30))
set -- "$DOMAINS"/set-*
[ "$(tr ',' ' ' <"$1/gpus" | wc -w)" -eq 3 ] || fail "the domain of job 2 is for $(cat "$1/gpus")"
for job in 3 4; do
    run submit --parsable --gpu-memory 30G -- sh -c 'echo "$CUDA_MPS_PIPE_DIRECTORY"; exec "$@"' sh "$TRAIN" --memory 1G \
        --sm-activity 0.3 --seconds 6000
    until_field $job placements.0.observed_bytes $((1 << 30))
done
joined=0
for job in 3 4; do
    if grep -qF "$(field $job placements.0.uuid)" "$1/gpus"; then
        joined=$((joined + 1))
        wanted=$1/pipe
    else
        wanted=$DOMAINS/$(field $job placements.0.uuid)/pipe
    fi
    [ "$(head -1 carma-$job.out)" = "$wanted" ] || fail "job $job uses $(head -1 carma-$job.out), not $wanted"
done
[ "$joined" -ge 1 ] || fail "no job was placed beside job 2"
domain=${1##*/}
until_clients $((1 + joined))

# One that does not come through MPS, though it should, is told of.
run submit --parsable --gpu-memory 1G -- env CUDA_MPS_PIPE_DIRECTORY=/nowhere "$TRAIN" --memory 1G --sm-activity 0.1 \
    --seconds 60000
until_field 5 placements.0.observed_bytes $((1 << 30))
wait_for 'field 5 message | grep -q "^MPS requested but not attached: "' ||
    fail "job 5 is not told of: $(field 5 message)"
[ "$(grep -c 'MPS requested but not attached' "$T/daemon.log")" -eq 1 ] || fail "jobs that are not attached: $(cat "$T/daemon.log")"
expect_field 2 message null
cancel 1 2 3 4 5
end_daemon
until_controls 0

# Without the control program nothing is run that asks for MPS, and it is said how to help.
start --set mps_control="$T/no-such-program"
run submit --parsable -W -- true
expect_field 6 state FAILED
field 6 message | grep -qF "there is no MPS control program '$T/no-such-program'" || fail "job 6: $(field 6 message)"
run submit --parsable -W --exclusive -- true
expect_field 7 state COMPLETED
stop_daemon

# A daemon that somebody else runs is used, and left alone; where it is not there, nothing is run.
start --set mps_pipe_directory="$T/theirs"
run submit --parsable -W -- true
field 8 message | grep -qF "no control daemon has its pipe in '$T/theirs'" || fail "job 8: $(field 8 message)"
mkdir "$T/theirs" && listen_for_mps "$T/theirs"
wait_for '[ -S "$T/theirs/control" ]'
run submit --parsable -W -- sh -c 'echo "$CUDA_MPS_PIPE_DIRECTORY"'
[ "$(cat carma-9.out)" = "$T/theirs" ] || fail "job 9 uses $(cat carma-9.out)"
kill "${listener##* }"
wait "${listener##* }" 2>/dev/null
[ -S "$T/theirs/control" ] || fail "the listener took its socket with it"
run submit --parsable -W -- true # the socket stays when its daemon has gone
field 10 message | grep -qF "no control daemon has its pipe in '$T/theirs'" || fail "job 10: $(field 10 message)"
stop_daemon
until_controls 0

# Where the setting is another, a domain goes on for the job that began in it. The next jobs, of one GPU or of several,
# are clients of their user's server on all GPUs, also beside that one.
start
run submit --parsable -- "$TRAIN" --memory 1G --sm-activity 0.1 --seconds 1000000
until_field 11 placements.0.observed_bytes $((1 << 30))
domain=$(field 11 placements.0.uuid)
until_clients 1
stop_daemon
SHARE=mps
start
run submit --parsable -- "$TRAIN" --memory 1G --sm-activity 0.1 --seconds 1000000
until_field 12 placements.0.observed_bytes $((1 << 30))
run submit --parsable -G 4 -- "$TRAIN" --gpus 4 --memory 1G --sm-activity 0.1 --seconds 1000000
until_field 13 placements.3.observed_bytes $((1 << 30))
until_clients 1
expect_field 11 attempts 1
domain=$(cd "$DOMAINS" && echo uid-*)
until_clients 2
until_controls 4

# The next daemon knows which of them a job can be in. One of a single GPU does not go on for a job of four.
stop_daemon KILL
start
cancel 11 12
stop_daemon
until_controls 2

# A job in a MIG instance has a domain of its own, also where users have one on all GPUs. This carmad has other GPUs and
# its socket in the same folder: it leaves the domains there alone.
CARMA_VNODE=$T/mig-node
STATE=$T/mig-state
start_node a100x2-mig 100
start
run submit --parsable --gpu-memory 1G -- "$TRAIN" --memory 1G --sm-activity 0.1 --seconds 6000
until_field 1 placements.0.observed_bytes $((1 << 30))
domain=$(field 1 placements.0.uuid)
case $domain in
MIG-*) ;;
*) fail "job 1 is on $domain" ;;
esac
until_clients 1
cancel 1
stop_daemon
until_controls 0
CARMA_VNODE=$T/node
STATE=$T/state
until_controls 2

start
expect_field 13 state RUNNING
cancel 13
stop_daemon
until_controls 0
