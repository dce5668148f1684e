#!/bin/sh
# Several users of one daemon: each one's view of the others' jobs, and each one's rights.
. "$(dirname "$0")/users.sh"
homes
start_all a100x4-40g 100 --set admin_group=carma-admins

# alice's jobs: one runs, one waits, one has failed with a line of its output, one could not write where it was told to.
export PASSPHRASE=hunter2-environment
run_as alice submit --parsable -J runs -- sh -c 'echo $$ hunter2-argument >pid; exec sleep 1000'
expect_output 1
run_as alice submit --parsable -J waits --hold -o private/log -- true
run_as alice submit --parsable -J fails -- sh -c 'echo "MemoryError: hunter2-output"; exit 1'
run_as alice submit --parsable -J lost -o hunter2-directory/log -- true
unset PASSPHRASE
until_field 1 state RUNNING
until_field 3 state FAILED
until_field 4 state FAILED

# She sees her own.
run_as alice show 3
grep -q 'hunter2-output' "$T/out" || fail "alice does not see why her job failed: $(cat "$T/out")"
run_as alice show --json 1
grep -q 'hunter2-argument' "$T/out" || fail "alice does not see her own command"
run_as alice show --json 4
grep -q 'hunter2-directory' "$T/out" || fail "alice does not see her own path"

# Others see that they are there, and nothing that she or her jobs wrote. An administrator has no exception.
for user in bob carol; do
    run_as $user queue --all
    grep -q 'runs  *alice' "$T/out" || fail "$user does not see alice's job in the queue: $(cat "$T/out")"
    for what in 'queue --all --json' 'show --json 1' 'show --json 2' 'show --json 3' 'show --json 4' 'explain --json 1' \
        'explain --json 2' 'explain --json 3' 'explain --json 4' 'show 3' 'explain 4' 'stats' 'gpus --json'; do
        # shellcheck disable=SC2086 # words
        allowed $user $what
        ! grep -e hunter2 -e "$T/alice" -e private "$T/out" || fail "$said: shows alice's private data"
    done
    run_as $user show --json 1
    check '[said[name] for name in ("name", "user", "state", "gpus")] == ["runs", "alice", "RUNNING", 1]' \
        'not {"command", "directory", "output", "error", "conda_environment", "environment", "summary_name"} & set(said)' \
        'said["message"] is None and said["failure"] is None and said["estimate"] is None'
    refused $user 'permission denied: job 3 belongs to alice' logs 3
done

# Nor why one was refused: that may be the message of a run before.
run_as alice submit --parsable --hold -- true
run_as alice submit --parsable -d afterok:5 -- true
allowed alice cancel 5
until_field 6 state REFUSED
run_as alice explain 6
grep -q '^job 6 was refused: it depended on job 5' "$T/out" || fail "$said: $(cat "$T/out")"
run_as bob explain 6
grep -qx 'job 6 was refused' "$T/out" || fail "$said: $(cat "$T/out")"

# Nobody else changes her jobs; an administrator may, and the log names the administrator.
for verb in cancel hold release requeue suspend resume checkpoint; do
    refused bob 'belongs to alice' $verb 1
    refused bob 'belongs to alice' $verb 2
done
refused bob 'belongs to alice' signal 1 HUP
refused bob 'priority 1 is above 0' submit -p 1 -- true
[ "$failures" -eq 0 ] || exit 1 # the next job would wait for the cancelled ones
expect_field 1 state RUNNING
expect_field 2 state HELD
allowed alice suspend 1
allowed carol suspend 1
refused alice 'suspended by an administrator: only one can resume it' resume 1
run_as bob explain 1
grep -q 'stands still, suspended by an administrator' "$T/out" || fail "$said: $(cat "$T/out")"
allowed carol resume 1
expect_field 1 state RUNNING
# What she tells her job leaves room for what others tell it.
head -c 524288 /dev/zero | tr "\0" "\n" >>"$(echo "$STATE"/runs/1-*)/orders"
refused alice 'was told too many things' signal 1 64
allowed carol suspend 1
read -r program _ <alice/pid
wait_for 'grep -q "^State:.T" /proc/"$1"/status' "$program" || fail "an administrator's word does not reach alice's job"
allowed carol resume 1
allowed carol release 2
until_field 2 state FAILED # its output's directory is not there
allowed carol cancel 1
until_field 1 state CANCELLED
grep -q 'job 1 of alice: cancelled by uid 12003' "$T/daemon.log" || fail "the log does not name the user that cancelled"
run_as alice submit --parsable --hold -- true
allowed alice cancel 7
expect_field 7 state CANCELLED

# Without an admin_group there are no administrators; root needs none.
restart_daemon
run_as alice submit --parsable --hold -- true
refused carol 'belongs to alice' cancel 8
expect_ok cancel 8
stop_daemon
# A group that is not there has no members.
start_daemon --set admin_group=no-such-group
run_as alice submit --parsable --hold -- true
refused carol 'belongs to alice' cancel 9
grep -q "admin_group 'no-such-group': there is no such group" "$T/daemon.log" || fail "nothing is said of the missing group"
