#!/bin/sh
# How jobs end through the daemon: cancelled, out of time, without a daemon, by a reboot; attacks on their status files.
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 60
set -- --config /dev/null
start_daemon "$@"

# status_of JOB KEY: a value of the status file of its first launch.
status_of() {
    sed -n "s/^$2 //p" "$STATE/runs/$1-1-1/status"
}

# until_gone PID...
until_gone() {
    for pid in "$@"; do
        wait_for '[ ! -d "/proc/$1" ] || grep -q "^State:.Z" "/proc/$1/status" 2>/dev/null' "$pid" ||
            fail "process $pid is still there: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
    done
}

until_file() {
    wait_for '[ -s "$1" ]' "$@" || fail "no $1"
}

# Against all resistance: deaf to SIGTERM, in sessions of its own, without parents, flooding its output.
cat >deaf.sh <<'SCRIPT'
trap '' TERM HUP INT
(setsid sh -c 'echo $$ >stray.pid; while :; do echo flood; sleep 0.001; done' &)
echo $$ >deaf.pid
while :; do sleep 0.05; done
SCRIPT
run submit --parsable -- sh deaf.sh
until_file stray.pid && until_file deaf.pid
group=$(status_of 1 cgroup)
expect_ok cancel 1
for _ in 1 2 3 4 5 6 7 8 9 10; do run cancel 1; done
until_field 1 state CANCELLED
[ "$(python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM record WHERE type IN (\"cancelled\", \"timer\")").fetchone()[0])' \
    "$STATE/store.db")" -lt 10 ] || fail "what is asked again is recorded again"
until_gone "$(cat stray.pid)" "$(cat deaf.pid)"
[ -z "$group" ] || ! grep -qF "$group" /proc/[0-9]*/cgroup 2>/dev/null || fail "processes are left in $group"

# Its time is up, after it was told so.
expect_ok submit --parsable --time 0:30 --signal USR1@20 -o told.out -- \
    sh -c 'trap "echo told" USR1; while :; do sleep 0.02; done'
until_field 2 exit_cause timeout
[ "$(cat told.out)" = told ] || fail "told before the time was up: $(cat told.out)"
shows 'time limit of 0:30 reached' show 2

# Also while no daemon is there.
run submit --parsable --time 1:00 -- sh -c 'echo $$ >alone.pid; exec sleep 600'
until_file alone.pid
until_field 3 state RUNNING
stop_daemon KILL
until_gone "$(cat alone.pid)"
start_daemon "$@"
until_field 3 exit_cause timeout

# The machine is started anew: the job is gone, and another process has the pid and the start time of its shepherd, and
# of itself. The status's boot decides.
run submit --parsable -- sh -c 'echo $$ >before.pid; exec sleep 600'
until_file before.pid
until_field 4 state RUNNING
run submit --parsable -- sh -c 'echo $$ >removed.pid; exec sleep 600'
until_file removed.pid
until_field 5 state RUNNING
stop_daemon KILL
shepherd=$(status_of 4 shepherd)
kill -KILL "${shepherd% *}" "$(cat before.pid)"
setsid sleep 300 &
other=$!
ticks=$(sed 's/.*) //' "/proc/$other/stat" | cut -d' ' -f20)
sed -i -e 's/^boot .*/boot 00000000-0000-4000-8000-000000000000/' -e "s/^shepherd .*/shepherd $other $ticks/" \
    -e "s/^process .*/process $other $ticks/" "$STATE/runs/4-1-1/status"
shepherd=$(status_of 5 shepherd)
mv "$STATE/runs/5-1-1" elsewhere # the remains of a directory that was never synced, after a power failure
kill -KILL "${shepherd% *}" # it would make it again
mkdir "$STATE/runs/4-2-1" # of a launch that began while its placement was being stored
start_daemon "$@"
until_field 4 state LOST
[ ! -e "$STATE/runs/4-2-1" ] || fail "a launch that was never stored has left its directory"
shows 'started anew' show 4
until_field 5 state LOST
sleep 1.2 # two looks of the daemon
kill -KILL "$other" || fail "process $other was taken for the lost job's"

# A job of the daemon's own user can write into its run directory. What it says of another shepherd is not believed.
cat >forge.py <<'PYTHON'
import os, socket
path = os.environ["CARMA_RUN"] + "/status"
lines = open(path).read().replace("phase running", "phase ended").split("\n")
lines = ["shepherd %d 1" % os.getpid() if line.startswith("shepherd ") else line for line in lines]
lines.insert(-2, "cause completed")
open(path + ".forged", "w").write("\n".join(lines).replace("exit_status -1", "exit_status 0"))
os.rename(path + ".forged", path)
poke = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
poke.connect(os.path.dirname(os.path.dirname(os.environ["CARMA_RUN"])) + "/notify")
for text in [b"6 1\n", b"", b"x" * 500, b"-1", b"99999999999999999999 1\n", b"1 1\n"] * 500:
    poke.send(text)
open("forged", "w").write("forged\n")
while not os.path.exists("enough"):
    pass
os._exit(9)
PYTHON
run submit --parsable -- sh -c 'until grep -q "phase running" "$CARMA_RUN/status"; do sleep 0.01; done; exec python3 forge.py'
until_file forged
sleep 1.2
expect_field 6 state RUNNING
grep -q 'job 6: .*not trusted' "$T/daemon.log" || fail "no word of the forged status: $(cat "$T/daemon.log")"
[ "$(grep -c 'job 6: .*not trusted' "$T/daemon.log")" = 1 ] || fail "said more than once"
echo >enough
until_field 6 state FAILED
expect_field 6 exit_status 9

# The shepherd is killed: its tree is gone before the job is anything else.
run submit --parsable -- sh -c '(env -i setsid sh -c "echo \$\$ >orphan.pid; exec sleep 600" &); exec sleep 600'
until_file orphan.pid
until_field 7 state RUNNING
shepherd=$(status_of 7 shepherd)
kill -KILL "${shepherd% *}"
until_field 7 state LOST
[ -n "$(status_of 7 cgroup)" ] || echo "no control groups here: a process that left session, parents and environment is not found"
[ -z "$(status_of 7 cgroup)" ] || until_gone "$(cat orphan.pid)"
kill -KILL "$(cat orphan.pid)" 2>/dev/null

# A user's session ends, and his carmad goes on.
kill -HUP "$daemon"
wait_for 'grep -q "has ended (SIGHUP): carmad goes on" "$T/daemon.log"' || fail "SIGHUP is not spoken of"
expect_ok queue
# Somebody removes its socket.
rm "$CARMA_SOCKET"
wait_for '"$CARMA" queue >/dev/null 2>&1' || fail "carmad is not reached again"
grep -q "socket was removed: carmad has made it again" "$T/daemon.log" || fail "a socket that was made again is not spoken of"

# A part of a pipeline that ends by itself is not cut short (what is left behind: test_left.sh).
for try in 1 2 3 4 5; do # half a second may be too short on a busy machine
    run submit --wait --parsable -- bash -c 'echo whole > >(sleep 0.1; cat)'
    run logs "$(cat "$T/out")"
    [ "$try" -lt 5 ] && ! grep -q whole "$T/out" || break
done
expect_output whole

# It saves its state when it is asked to, each time, and runs on; where it can, and where it has said how.
run submit --parsable --time 1000:00 --signal USR1 -o saved.out -- \
    sh -c 'trap "echo saved" USR1; trap "echo other" USR2; echo runs; while :; do sleep 0.02; done'
saves=$(cat "$T/out")
until_field "$saves" state RUNNING
wait_for 'grep -q runs saved.out'
expect_ok checkpoint "$saves"
wait_for 'grep -q saved saved.out'
expect_ok signal "$saves" USR2
wait_for 'grep -q other saved.out'
[ "$(grep -c saved saved.out)" -eq 1 ] || fail "it was told once, and saved twice"
expect_ok checkpoint "$saves"
wait_for '[ "$(grep -c saved saved.out)" -eq 2 ]'
expect_field "$saves" state RUNNING
run submit --parsable --hold -- sleep 600
expect_error 1 "is HELD: only one that runs can save its state" checkpoint "$(cat "$T/out")"
run submit --parsable -- sleep 600
until_field "$(cat "$T/out")" state RUNNING
expect_error 1 "has not said what signal that is: --signal" checkpoint @
run cancel "$saves" @
until_field "$saves" state CANCELLED

# It stands still, and its time with it, also without a daemon; it goes on, gets signals, and waits again in its place.
run submit --parsable --time 1000:00 -o stands.out -- sh -c 'trap "echo got" USR1; trap "exit 5" HUP
    sh -c "while :; do echo beat; sleep 0.02; done" & echo "$CARMA_RESTART_COUNT runs"; while :; do wait; done'
stands=$(cat "$T/out")
still() { # but for what it wrote before it was stopped
    wait_for 'grep -q "^State:.T" "/proc/$1/status" && [ "$(wc -l <stands.out)" = "$(sleep 0.2; wc -l <stands.out)" ]' \
        "$(status_of "$stands" process | cut -d ' ' -f 1)" || fail "a suspended job goes on"
}
wait_for 'grep -qs beat stands.out'
expect_error 1 "is RUNNING: it is not suspended" resume "$stands"
expect_ok suspend "$stands"
expect_field "$stands" state SUSPENDED
still
expect_error 1 "is SUSPENDED: only one that runs can get a signal" signal "$stands" USR1
shows "^ *$stands .* S " queue
shows 'stands still, suspended by' explain "$stands"
blocked=$(submitted -G 4 --exclusive --gpu-memory 1G -- true)
shows "start: not known: job $stands stands still" explain "$blocked"
run cancel "$blocked"
again_after_kill "$@"
expect_field "$stands" state SUSPENDED
still
count=$(wc -l <stands.out)
expect_ok resume "$stands"
wait_for '[ "$(wc -l <stands.out)" -gt "$1" ]' "$count"
shows 'Stood still  *[0-9]' show "$stands"
expect_ok signal -s running USR1
wait_for 'grep -q got stands.out'
count=$(wc -l <stands.out)
wait_for '[ "$(wc -l <stands.out)" -gt "$1" ]' "$count" || fail "a signal ended those that do not handle it"
expect_ok suspend "$stands"
expect_ok requeue "$stands"
wait_for 'grep -q "^1 runs" stands.out'
expect_field "$stands" attempts 2
expect_field "$stands" crashes 0
expect_ok signal "$stands" 1
until_field "$stands" state FAILED
expect_field "$stands" exit_status 5
expect_error 1 "has already ended (FAILED): submit it again" requeue "$stands"

# It leaves its GPU idle.
stands=$(submitted -- "$TRAIN" --memory 1G --sm-activity 0.8 --seconds 60000)
wait_for '"$CARMA" gpus | grep -q " [1-9][0-9]*% "' || fail "a job that trains is not active"
expect_ok suspend "$stands"
wait_for '! "$CARMA" gpus | grep -q " [1-9][0-9]*% "' || fail "a suspended job is active"
cancel "$stands"

# A suspended job is cancelled like any other, and its time limit waits for it.
stands=$(submitted --time 1:00 -- sleep 600)
until_field "$stands" state RUNNING
expect_ok suspend "$stands"
until_field "$(submitted --time 1:00 -- sleep 600)" state TIMEOUT
expect_field "$stands" state SUSPENDED
expect_ok cancel "$stands"
until_field "$stands" state CANCELLED
