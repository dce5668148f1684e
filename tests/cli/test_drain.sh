#!/bin/sh
# Why a GPU is closed is a set: an administrator drains GPUs, and the node. Jobs there go on, none comes, over a restart;
# each ground is opened by itself, has who and why, and jobs that wait for it are told. And GPUs are reserved for users.
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

# Nobody else's job comes to reserved GPUs, nor runs there when that begins; a restart forgets none, and one that is over is gone.
submits_wide() {
    run submit --parsable -G 4 --gpu-memory 2G "$@" -- "$TRAIN" --gpus 4 --memory 2G --sm-activity 0.3 --seconds 30
}
shows "^GPUs 0, 1 are reserved for 4242 from .* (reservation 1, by $me: course)$" \
    admin reserve --gpus 0-1 --user 4242 --from now+2hours --for 4h --reason course
submits_wide
shows "GPU 0 will be reserved for 4242 in 1:5.*: until then it takes jobs of --time 1:5[0-9:]* or less" explain 4
expect_ok admin reserve --gpus 0 --user 4242 --for 30m
shows "^ *0 .* GPU 0 is reserved for 4242 for 2" explain 4
prints "reservation 2 is taken back" admin unreserve 2
submits_wide --time 1:00:00
expect_ok wait 5
restart_daemon
shows "^GPU 2 is reserved for 4242 from .* (reservation 3, by $me)$" admin reserve --gpus 2 --user 4242 --for 1m
run admin unreserve 3
shows "^GPUs 0, 1 are reserved for 4242 from .* (reservation 1, by $me: course)$" gpus
shows "^start: in about [56]" explain 4
expect_error 1 "GPU 1 is reserved at that time already: 'carma admin unreserve 1' takes that back" \
    admin reserve --gpus 1-3 --user 4242 --from now+3h --for 1h
prints "reservation 1 is taken back" admin unreserve 1
expect_ok wait 4
expect_ok admin reserve --gpus 0,1,2-3,1 --user 4242,4242 --for 3m
submits_wide
shows "^job 6 is QUEUED: GPU 0 is reserved for 4242 for [0-2]:.* more$" explain 6
tells "[[(one['ground'], one['user'], one['by']) for one in gpu['closed']] for gpu in said['gpus']] == [[('reserved_for_users', '4242', '$me')]] * 4" gpus --json
shows "^ *0 .* reserved$" gpus
expect_ok wait 6
prints "no GPU is reserved for users" admin reserve
expect_ok admin reserve --gpus 0-3 --user "4242,$me" --for 1h
submits_wide
expect_ok wait 7
run admin unreserve 5
runs 8 --gpu-memory 2G -- "$TRAIN" --memory 2G --seconds 100000
expect_ok suspend 8
expect_ok admin reserve --gpus 0-3 --user 4242 --for 1h
expect_error 1 "more: resume it after that" resume 8
shows "stands still, suspended by $me: GPU . is reserved for 4242 for .* more; 'carma resume' lets it go on after that" explain 8

while IFS='|' read -r status error options; do
    # shellcheck disable=SC2086 # several words
    expect_error "$status" "$error" admin reserve $options
done <<'ERRORS'
1|there is no GPU 7: carma gpus lists them|--gpus 7 --user 4242 --for 1h
1|no user 'ada' has had a job here: name one that has, or say a uid|--gpus 0 --user ada --for 1h
2|'0-x' is no GPU's number: 0-1,3 are three (carma gpus)|--gpus 0-x --user 1 --for 1h
2|'GPU-0' is no GPU's number: write them like 0-1,3 (carma gpus lists them)|--gpus 1,GPU-0 --user 1 --for 1h
2|'0-64' are more than 64 GPUs, the most of one reservation|--gpus 0-64 --user 1 --for 1h
2|'soon' is not a time: write it like now+2hours, 22:00 or 2026-12-01T08:00|--gpus 0 --user 1 --from soon --for 1h
2|a reservation for 0s is none: write it like 90m, 4h or 2d, 366d at most|--gpus 0 --user 1 --for 0s
2|a reservation for 367d is none|--gpus 0 --user 1 --for 367d
ERRORS
expect_error 2 "which, for whom, how long? carma admin reserve --gpus 0-1 --user ada --for 4h" admin reserve --gpus 0
expect_error 1 "there is no reservation 9: 'carma admin reserve' lists them" admin unreserve 9

expect_error 1 "there is no GPU 7: carma gpus lists them" admin drain --gpu 7 --reason x
expect_error 1 "the reason must be a text of 1 to 127 bytes" admin drain --reason "$(printf '%0128d' 0)"
expect_error 2 "why? carma admin drain --gpu 2 --reason" admin drain --gpu 1
expect_error 2 "'x' is no GPU's number: carma gpus lists them" admin resume --gpu x
