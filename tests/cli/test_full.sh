#!/bin/sh
# A store that may not grow: new jobs are refused, running ones go on, and requests made meanwhile are done after.
. "$(dirname "$0")/node.sh"
start_all a100x4-40g 600 --set settle=0s

# may_grow YES|BYTES|'': carmad's files may grow, or to so many bytes, or to a few pages.
may_grow() {
    python3 -c 'import resource, sys
hard = resource.prlimit(int(sys.argv[1]), resource.RLIMIT_FSIZE)[1]
soft = {"": 8192, "yes": hard}.get(sys.argv[2])
resource.prlimit(int(sys.argv[1]), resource.RLIMIT_FSIZE, (soft or int(sys.argv[2]), hard))' "$daemon" "$1"
}

# none_but LAST WHEN: nothing shows that more jobs than those up to LAST were submitted.
none_but() {
    tells "[job['id'] for job in said['jobs']] == list(range(1, $1 + 1))" queue --all --json
    "$CARMA" history --json | grep -q "\"id\": $(($1 + 1))\b" && fail "$2: the history has a refused job"
    for command in show explain cancel; do
        expect_error 1 "there is no job '$(($1 + 1))'" $command $(($1 + 1))
    done
}

expect_id 1 -- "$TRAIN" --memory 2G --seconds 1800
expect_id 2 --hold -- true
expect_id 3 --hold -- true
until_field 1 state RUNNING
may_grow '' # at once: what is left of a disk may be room enough for a smaller change
expect_error 1 "try again later" submit --hold -- true
none_but 3 "while the disk is full"
expect_error 1 "it takes effect once that works" release 2
expect_error 1 "try again later" submit -- true
kill -0 "$daemon" || fail "carmad has ended: $(cat "$T/daemon.log")"

# Running jobs do not notice, and their end is not lost.
wait_for 'grep -q done carma-1.out' || fail "job 1 is not done"
may_grow yes
expect_ok wait 1,2
expect_field 1 attempts 1

# Refused jobs have not come back.
expect_ok submit --parsable -W -- true
[ "$("$CARMA" queue --json | grep '"id":' | tr -dc 0-9)" = 3 ] || fail "not the jobs that were accepted: $("$CARMA" queue)"

# A refused job leaves nothing, also where it was placed at once; its number is not given to another.
stop_daemon
rm -rf "$STATE"
start_daemon --set settle=0s
expect_id 1 -W -- true
may_grow ''
expect_error 1 "cannot store it now" submit -- true
none_but 1 "a placed job, while the disk is full"
may_grow yes
wait_for '[ "$(grep -c "storing works again" "$T/daemon.log")" -eq 2 ]' || fail "it is not stored later"
expect_id 3 --hold -- true
run cancel 3
for when in "once the disk has space" "after a restart"; do
    tells '[job["id"] for job in said["jobs"]] == [1, 3]' queue --all --json
    expect_error 1 "there is no job '2'" show 2
    "$CARMA" stats --csv | python3 -c 'import csv, sys
assert next(csv.DictReader(sys.stdin))["ended"] == "2"' || fail "$when: $("$CARMA" stats --csv)"
    [ "$when" = "after a restart" ] || { stop_daemon && start_daemon; }
done
stop_daemon
"$CARMA" admin verify --state "$STATE" >"$T/out" 2>&1 || fail "the store: $(cat "$T/out")"

# The disk has space again for a refused job's records, not for its end, and then the machine loses power.
rm -rf "$STATE"
start_daemon --set settle=0s
expect_id 1 -W -- true
while read -r options; do
    frames=$(sed 's/.* frames 0*\([0-9]*\) .*/\1/' "$STATE/store.mark") again=$(grep -c "storing works again" "$T/daemon.log")
    may_grow $((32 + 4120 * frames))
    # shellcheck disable=SC2086
    expect_error 1 "cannot store it now" submit $options -- true
    until [ "$(grep -c "storing works again" "$T/daemon.log")" -gt "$again" ]; do
        frames=$((frames + 1))
        may_grow $((32 + 4120 * frames))
        sleep 1.1 # it tries once a second
    done
    stop_daemon KILL
    "$CARMA" admin verify --state "$STATE" >"$T/out" 2>&1 || fail "$options: the store: $(cat "$T/out")"
    grep -q ", 1 submissions," "$T/out" && fail "$options: its records were not stored: $(cat "$T/out")"
    start_daemon --set settle=0s
    none_but 1 "$options, after a kill"
done <<END

--hold
--gpus 0
--array 0-2
END
restart_daemon --set settle=0s
none_but 1 "after a restart"
grep "set aside" "$T/daemon.log" && fail "a refused job is told of"
stop_daemon
"$CARMA" admin verify --state "$STATE" | grep -q ", 1 submissions," || fail "something is left of refused jobs"
