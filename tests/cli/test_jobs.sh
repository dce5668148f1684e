#!/bin/sh
# Verbs on jobs, waiting and logs, against a fake daemon. Usage: test_jobs.sh CARMA SOURCE
. "$(dirname "$0")/lib.sh"

me=$(id -u)
printf 'written by the job\n' >"$T/carma-1.out"
printf 'complaint\n' >"$T/errors"
mkfifo "$T/pipe"
cat >"$T/answers.json" <<JSON
{"POST /v1/jobs/cancel?ids=1-3": [200, {"jobs": [{"id": 1, "state": "CANCELLED"}, {"id": 3, "state": "STOPPING"}],
    "refused": [{"id": 2, "error": "job 2 has ended"}]}],
 "POST /v1/jobs/release?ids=8": [200, {"jobs": [{"id": 8, "state": "QUEUED"}], "refused": []}],
 "GET /v1/jobs?state=all": [200, {"now_ns": 1, "jobs": [
    {"id": 7, "uid": $me, "state": "COMPLETED"}, {"id": 8, "uid": $me, "state": "QUEUED"},
    {"id": 9, "uid": $((me + 1)), "state": "QUEUED"}]}],
 "GET /v1/jobs/1": [200, {"id": 1, "uid": $me, "state": "COMPLETED", "exit_status": 0, "output": "$T/carma-%j.out",
    "error": "$T/errors", "started_ns": 5}],
 "GET /v1/jobs/2": [200, {"id": 2, "uid": $me, "state": "FAILED", "exit_status": 7, "output": "$T/missing", "first_started_ns": 5, "started_ns": 5}],
 "GET /v1/jobs/3": [200, {"id": 3, "uid": $me, "state": "FAILED", "exit_status": 137, "exit_cause": "signalled", "output": "$T/pipe",
    "started_ns": 5}],
 "GET /v1/jobs/13": [200, {"id": 13, "uid": $me, "state": "FAILED", "exit_status": 137, "exit_cause": "failed", "output": "$T/growing"}],
 "GET /v1/jobs/14": [200, {"id": 14, "uid": $me, "state": "FAILED", "exit_status": 255, "exit_cause": "failed", "output": "$T/growing"}],
 "GET /v1/jobs/4": [200, {"id": 4, "uid": $me, "user": "phd", "state": "CANCELLED", "exit_status": null, "output": null}],
 "GET /v1/jobs/5": [[200, {"id": 5, "uid": $me, "state": "RUNNING", "output": "$T/growing"}],
    [200, {"id": 5, "uid": $me, "state": "RUNNING", "output": "$T/growing"}],
    [200, {"id": 5, "uid": $me, "state": "RUNNING", "output": "$T/growing"}],
    [200, {"id": 5, "uid": $me, "state": "RUNNING", "output": "$T/growing"}],
    [200, {"id": 5, "uid": $me, "state": "COMPLETED", "exit_status": 0, "output": "$T/growing"}]],
 "GET /v1/jobs/12": [[200, {"id": 12, "uid": $me, "state": "QUEUED", "retry": false, "placements": []}],
    [200, {"id": 12, "uid": $me, "state": "RUNNING", "retry": true, "placements": [{"gpu": 2, "why": null}]}]],
 "GET /v1/jobs/6": [[200, {"id": 6, "uid": $me, "state": "QUEUED"}], [200, "close"], [200, {"id": 6, "uid": $me, "state": "GPU_OOM",
    "exit_status": 1}]],
 "GET /v1/jobs/15": [[200, {"id": 15, "uid": $me, "state": "HELD"}], [200, {"id": 15, "uid": $me, "state": "HELD"}],
    [200, {"id": 15, "uid": $me, "state": "COMPLETED", "exit_status": 0}]],
 "GET /v1/jobs/8": [200, {"id": 8, "uid": $me, "state": "QUEUED", "output": "$T/not-yet", "started_ns": null}]}
JSON
start_fake "$T/answers.json"

posts() {
    [ "$(cat "$T/answers.json.posts")" = "$1" ] || fail "$said: asked for $(cat "$T/answers.json.posts")"
    rm -f "$T/answers.json.posts"
}
expect_error 1 "job 2 has ended" cancel 1-3
posts '["/v1/jobs/cancel?ids=1-3", null]'
expect_ok release @ # the last of one's own
posts '["/v1/jobs/release?ids=8", null]'

# As JSON: the result of those that were not refused.
ends 1 cancel --json 1-3
[ "$(tr -d ' \n' <"$T/out")" = '{"jobs":[{"id":1,"state":"CANCELLED"},{"id":3,"state":"STOPPING"}]}' ] ||
    fail "$said: printed $(cat "$T/out")"
ends 7 wait --json 1-2
python3 -c 'import json, sys
assert [job["id"] for job in json.load(sys.stdin)["jobs"]] == [1, 2]' <"$T/out" || fail "$said: printed $(cat "$T/out")"

# The exit status of wait is the job's.
for pair in 1:0 2:7 3:137 4:1 1,3,2:137 1-2:7 6:1; do
    run wait "${pair%:*}"
    expect_status "${pair#*:}"
done
expect_error 1 "/v1/jobs/99" wait 99

# Why it is that, in one line: how the job ended, and the last line that it wrote. A pipe is not read.
while read -r bytes words; do
    printf %b "$bytes" >"$T/missing"
    expect_error 7 "job 2 has failed: exit status 7$words" wait 2
    [ "$(wc -l <"$T/err")" -eq 1 ] || fail "$said: $(cat "$T/err")"
done <<'LINES'
one\ntwo\n : two
one\r\ntwo\r\n\n : two
50%\r100%\r\n : 100%
no\040end : no end
\033[31mred\033[0m\n\033[0m\n : red
bell\a\n : bell\x07
\n\n
LINES
rm "$T/missing"
expect_error 137 "job 3 has failed: signal 9 (KILL)" wait 3
expect_error 137 "job 13 has failed: exit status 137, as a shell says of signal 9 (KILL)" wait 13
expect_error 255 "job 14 has failed: exit status 255" wait 14 # of no signal

# Nothing but its user's word ends the wait for a held job: that is said, once.
expect_ok wait 15
[ "$(cat "$T/err")" = "carma: job 15 is held: carma release 15 lets it run" ] || fail "$said: $(cat "$T/err")"

# Interrupted, it says that the job goes on, or the jobs.
for row in '8|job 8 goes on: carma cancel 8 ends it, carma wait 8 waits' '8,12-13|3 jobs go on: carma cancel 8,12-13 ends them, carma'; do
    (trap - INT; exec python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' "$CARMA" wait "${row%|*}" 2>"$T/err") &
    waiting=$!
    # SIGINT is the second bit; Python catches it, too, before it becomes carma.
    wait_for '[ "$(readlink "/proc/$waiting/exe")" = "$(readlink -f "$CARMA")" ] && grep -q "SigCgt.*[2367abef]$" "/proc/$waiting/status"' || fail "carma wait does not begin"
    kill -INT $waiting
    wait $waiting
    [ $? -eq 130 ] || fail "interrupted, carma wait ends with another status"
    grep -q "^carma: ${row##*|}" "$T/err" || fail "interrupted: $(cat "$T/err")"
done

# Until a field has a value: of any type, in an array, absent; a job that has ended without it will not have it.
for wish in state=RUNNING retry=true placements.0.gpu=2 placements.0.why=null placements.1.gpu=null; do
    expect_ok wait --until "$wish" 12
done
shows '"id": 1' wait --json --until exit_status=0 1
expect_error 1 "state is 'COMPLETED' at the end of job 1 (COMPLETED), not 'RUNNING'" wait --until state=RUNNING 1,12
expect_error 1 "exit_status is 'null' at the end of job 4 (CANCELLED), not '0'" wait --until exit_status=0 4
expect_error 2 "--until 'RUNNING' is not FIELD=VALUE: write for example state=RUNNING" wait --until RUNNING 1
expect_error 2 "--until '=1' is not FIELD=VALUE" wait --until =1 1

prints 'written by the job' logs 1
prints 'complaint' logs --error 1
expect_error 1 "$T/missing" logs 2
expect_error 1 "not a regular file" logs 3
expect_error 1 "permission denied: job 4 belongs to phd" logs 4
expect_error 1 "has not been started" logs 8

# Following: the file appears and grows while the job runs; all of it is printed once.
{
    sleep 0.1
    printf 'one\n' >"$T/growing"
    sleep 0.2
    printf 'two\n' >>"$T/growing"
} &
writer=$!
run logs -f 5
wait "$writer"
expect_status 0
expect_output 'one
two'
# Its last lines, of one whose last has no end, too.
printf 'three' >>"$T/growing"
for lines in '0:' '1:three' '2:two three' '3:one two three' '4:one two three'; do
    expect_ok logs -n "${lines%%:*}" 5
    expect_output "$(echo "${lines#*:}" | tr ' ' '\n')"
done
seq 50000 >"$T/growing"
prints "$(seq 10001 50000)" logs -fn 40000 5
expect_error 2 "--lines: '-1' is not a number of lines" logs -n -1 5
# Of one that did not complete, how it ended.
warns '^carma: job 14 has failed: exit status 255$' logs -f 14
