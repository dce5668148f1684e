#!/bin/sh
# A capture that never ends delays its own user's alone: others' jobs start, and are captured. Two at a time in all.
. "$(dirname "$0")/users.sh"
homes
. "$SOURCE/tests/cli/auto_capture.sh"
start_all a100x4-40g 100

# One without an account is in no group, also not in the one with his number.
install -d -m 700 -o 12050 "$T/nobody"
(cd "$T/nobody" && exec setpriv --reuid=12050 --regid=12003 --clear-groups "$CARMA" submit --hold -- python3 train.py) >"$T/out"
until_field 1 reservation_source estimated

# Of alice's three one runs. Bob's job is captured, and another of his starts and ends meanwhile.
for number in 1 2 3; do
    run_as alice submit --parsable --hold -- python3 loop.py $number loop.py
done
until_requests 2
run_as bob submit --parsable --hold -- python3 train.py
until_field 5 reservation_source estimated
run_as bob submit --parsable -- true
until_field 6 state COMPLETED
[ "$(runs_now)" -eq 1 ] || fail "$(runs_now) captures of alice's run"
python3 - "$FAKE"/request-* <<'PYTHON' || fail "they are not asked for as their users"
import json, sys
asked = [json.load(open(name)) for name in sys.argv[1:]]
assert sorted((one["uid"], one["gid"], one["user"]) for one in asked) == [(12001, 12001, "alice"), (12002, 12002, "bob"), (12050, 65534, None)], asked
PYTHON

# Both places are taken: carol's wait. The first has its turn before alice's second, which has its turn before carol's.
run_as bob submit --parsable --hold -- python3 loop.py
until_requests 4
run_as carol submit --parsable --hold -- python3 train.py
run_as carol submit --parsable --hold -- python3 train.py --again
until_field 7 estimating true
[ "$(runs_now)" -eq 2 ] || fail "$(runs_now) captures run at a time"
run_as alice cancel 2
until_field 8 reservation_source estimated
until_requests 6
until_field 3 estimating true
# A third place would have been her second's as soon as her first had its estimate.
expect_field 9 estimating false reservation_source prior
python3 - "$FAKE"/request-* <<'PYTHON' || fail "carol did not have her turn first"
import json, os, sys
asked = [json.load(open(name))["user"] for name in sorted(sys.argv[1:], key=os.path.getmtime)]
assert asked[4:] == ["carol", "alice"], asked
PYTHON
stop_daemon
until_runs 0
