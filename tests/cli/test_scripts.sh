#!/bin/sh
# A script is copied when it is submitted: every start of the job runs that copy.
. "$(dirname "$0")/node.sh"
start_all a100x4-40g 60

# Edited after submission, between its starts and across a daemon's death; called with arguments from another directory.
mkdir jobs elsewhere
cat >jobs/train.sh <<'SCRIPT'
#!/bin/sh -u
#CARMA -t 3m --requeue
echo "one $0 $1 $# $(dirname "$CARMA_SCRIPT")"
while [ ! -e go ]; do sleep 0.05; done
[ "$CARMA_RESTART_COUNT" -gt 0 ] || exec sleep 1000
SCRIPT
cp jobs/train.sh original.sh
runs 1 -D elsewhere -o out jobs/train.sh -- "two words" 2
printf '#!/bin/sh\necho edited >edited\n' >jobs/train.sh
touch elsewhere/go
again_after_kill
until_field 1 attempts 2
until_field 1 state COMPLETED
expect_field 1 attempts 2 command '["jobs/train.sh", "two words", "2"]'
[ ! -e elsewhere/edited ] || fail "the script edited after submission has run"
for launch in 1 2; do
    echo "one $CARMA_SOCKET.scripts/1-$launch-1/train.sh two words 2 $T/jobs"
done >wanted
diff wanted elsewhere/out >&2 || fail "not twice the script that was submitted"
[ -z "$(ls "$CARMA_SOCKET.scripts")" ] || fail "copies stay: $(ls "$CARMA_SOCKET.scripts")"

expect_ok show --script 1
cmp -s "$T/out" original.sh || fail "$said: printed $(cat "$T/out")"
shows "^Command    jobs/train.sh 'two words' 2\$" show 1
expect_out '^Script     a copy of that time: carma show --script 1$'

# By a pipe; removed at once; by an interpreter that looks beside the script for its imports.
printf '#!/bin/sh\necho "piped $1"\n' | "$CARMA" submit --parsable -o piped - -- yes >/dev/null || fail "submit -"
expect_ok wait 2
[ "$(cat piped)" = "piped yes" ] || fail "by a pipe: $(cat piped)"
printf 'value = 7\n' >jobs/neighbour.py
printf '#!/usr/bin/env python3\nimport neighbour\nprint(neighbour.value)\n' >jobs/train.py
run submit --parsable -o python jobs/train.py
rm jobs/train.py
run wait 3
[ "$(cat python)" = 7 ] || fail "the module beside a Python script is not found: $(cat python)"

# A shepherd that is killed leaves nothing either.
printf '#!/bin/sh\nexec sleep 1000\n' >sleep.sh
runs 4 sleep.sh
[ -n "$(ls "$CARMA_SOCKET.scripts")" ] || fail "no copy of a script that runs"
kill -KILL "$(sed -n 's/^shepherd \([0-9]*\).*/\1/p' "$STATE/runs/4-1-1/status")"
until_field 4 state LOST
[ -z "$(ls "$CARMA_SOCKET.scripts")" ] || fail "of a lost job the copy stays"
run submit --parsable -- true
expect_error 1 "job 5 runs a command and no script: carma show 5 has it" show --script 5
expect_error 1 "there is no job '9'" show --script 9
run wait 5
run show 5
grep -q '^Script' "$T/out" && fail "a command is shown as a script"
# Runs of the same script are of one workload, wherever the file is; with other contents or arguments they are not.
printf '#!/bin/sh\n:\n' >same.sh
cp same.sh jobs/other.sh
run submit --parsable same.sh -- 1
run submit --parsable jobs/other.sh -- 1
run submit --parsable same.sh -- 2
printf '#!/bin/sh\n: edited\n' >same.sh
run submit --parsable same.sh -- 1
expect_ok wait 6-9
stop_daemon
python3 -c 'import sqlite3, sys
keys = [key for key, in sqlite3.connect(sys.argv[1]).execute("SELECT workload FROM history WHERE job > 5 ORDER BY job")]
assert len(keys) == 4 and keys[0] == keys[1] and len(set(keys)) == 3, keys' "$STATE/store.db" || fail "the workloads of scripts"
start_daemon
tells 'said == {"id": 1, "script": open("original.sh").read()}' show --json --script 1 # of a job that had ended before
expect_field 1 script true
expect_field 5 script false
stop_daemon
