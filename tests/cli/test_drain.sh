#!/bin/sh
# Why a GPU is closed is a set: an administrator drains GPUs, and the node. Jobs there go on, none comes, over a restart;
# each ground is opened by itself, has who and why, and jobs that wait for it are told.
. "$(dirname "$0")/node.sh"
start_all a100x4-40g 60
me=$(id -un)

runs 1 -G 4 --gpu-memory 2G -- "$TRAIN" --gpus 4 --memory 2G --sm-activity 0.3 --seconds 100000
prints "GPU 1 takes no further jobs; those that run there go on" admin drain --gpu 1 --reason 'its fan'
shows "^ *1 .* draining: 1$" gpus
shows "^GPU 1 takes no job: drained by $me: its fan$" gpus
[ "$(field 1 state)" = RUNNING ] || fail "a job on a drained GPU is $(field 1 state)"
run submit --parsable -G 4 --gpu-memory 2G -- "$TRAIN" --gpus 4 --memory 2G --sm-activity 0.3 --seconds 30
shows "GPU 1 is drained: its fan" explain 2

# The node, too; a restart forgets neither.
prints "the node takes no further jobs; those that run there go on" admin drain --reason "the hall's power"
run submit --parsable --gpu-memory 2G -- "$TRAIN" --memory 2G --sm-activity 0.3 --seconds 30
shows "GPU 0 is drained: the hall's power" explain 3
expect_ok cancel 1
until_field 1 state CANCELLED
restart_daemon
shows "^ *1 .* drained$" gpus
shows "^GPU 1 takes no job: drained by $me: its fan; the node is drained by $me: the hall's power$" gpus
tells "[[(one['ground'], one['by'], one['why'], one['since_ns'] > 0) for one in gpu['closed']] for gpu in said['gpus']][:2] == [
    [('node_drained', '$me', 'the hall\\'s power', True)],
    [('drained', '$me', 'its fan', True), ('node_drained', '$me', 'the hall\\'s power', True)]]" gpus --json
python3 "$SOURCE/tests/cli/exposition.py" fetch "$CARMA_SOCKET" | grep -c '^carma_gpu_drained.* 1$' | grep -qx 4 ||
    fail "the metrics do not say it"
[ "$(field 3 state)" = QUEUED ] || fail "a job on a drained node is $(field 3 state)"

"$CARMA" doctor | grep -qF "GPU 1 takes no job: drained by $me: its fan" || fail "doctor does not say it"

# What opens one does not open the others.
prints "the node is not drained any more; GPU 1 still takes no job: 'carma gpus' says why" admin resume
expect_ok wait 3
shows "GPU 1 is drained: its fan" explain 2
prints "GPU 1 takes jobs again" admin resume --gpu 1
expect_ok wait 2
run gpus
grep -q "takes no job" "$T/out" && fail "$said: $(cat "$T/out")"

expect_error 1 "there is no GPU 7: carma gpus lists them" admin drain --gpu 7 --reason x
expect_error 1 "the reason must be a text of 1 to 127 bytes" admin drain --reason "$(printf '%0128d' 0)"
expect_error 2 "why? carma admin drain --gpu 2 --reason" admin drain --gpu 1
expect_error 2 "'x' is no GPU's number: carma gpus lists them" admin resume --gpu x
