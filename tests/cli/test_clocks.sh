#!/bin/sh
# Usage: test_clocks.sh CARMA SOURCE BUILD SHIFTED_CLOCKS
# The wall clock is set back by two days and ahead by a year while a job runs, the machine sleeps for an hour, and
# carmad is started anew in between: durations, limits, usage and energy are true, and times are shown by the wall clock.
shifted=$(realpath "$4") || exit 99
. "$(dirname "$0")/node.sh"
export TZ=IST-5:30 # what is told by UTC differs from local time
SHIFTED_CLOCKS=$T/shifts
export SHIFTED_CLOCKS
# shift_clocks WALL BOOT: by so many seconds, for carma's programs and for jobs. The test's own clocks go on.
wall=0
shift_clocks() {
    wall=$1
    python3 -c 'import struct, sys; open(sys.argv[1], "r+b").write(struct.pack("qq", *(int(s) * 10**9 for s in sys.argv[2:])))' \
        "$SHIFTED_CLOCKS" "$1" "$2"
}
printf '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >"$SHIFTED_CLOCKS"
printf '#!/bin/sh\nLD_PRELOAD=%s exec %s "$@"\n' "$shifted" "$CARMA" | program "$T/carma"
CARMA=$T/carma
DAY=86400
YEAR=31536000
start() {
    LD_PRELOAD=$shifted
    export LD_PRELOAD
    start_daemon
    unset LD_PRELOAD
}
node_time() {
    python3 "$SOURCE/tests/cli/exposition.py" fetch "$CARMA_SOCKET" | sed -n 's/^carma_node_time_seconds \([0-9]*\).*/\1/p'
}
# counter: of all GPUs, in mJ
counter() {
    "$CARMA" gpus --json | python3 -c 'import json, sys; print(sum(gpu["energy_mj"] for gpu in json.load(sys.stdin)["gpus"]))'
}
# expect_true JOB LEAST MOST: it ran for so many seconds, and says so everywhere; its times are those of the wall clock.
expect_true() {
    "$CARMA" show --json "$1" >show.json
    "$CARMA" history --json --since 1h >history.json
    python3 - "$@" "$wall" "$rise" <<'P' || fail "job $1 with the wall clock shifted by $wall s: $(cat show.json history.json)"
import datetime, json, sys, time
number, least, most, wall, rise = map(int, sys.argv[1:])
job = json.load(open("show.json"))
row = next(row for row in json.load(open("history.json"))["jobs"] if row["id"] == number)
now = time.time() + wall
for name in ("started_ns", "ended_ns", "submitted_ns", "gpu_ns", "first_started_ns"):
    assert abs(job[name] - row[name]) < 1e9, name
for name in ("started", "ended", "submitted"):
    for one in (job, row):
        assert abs(datetime.datetime.fromisoformat(one[name].replace("Z", "+00:00")).timestamp() - one[name + "_ns"] / 1e9) < 0.002, one[name]
assert least <= job["gpu_ns"] / 1e9 <= most, job["gpu_ns"]
assert abs(job["ended_ns"] - job["started_ns"] - job["gpu_ns"]) < 2e9
assert job["submitted_ns"] <= job["started_ns"] <= job["ended_ns"]
assert -5 < now - job["ended_ns"] / 1e9 < 300, now
assert 0 <= job["modelled_energy_mj"] <= rise, rise
P
}

start_node "$SOURCE/data/nodes/a100x4-40g.ini" 1
start
before=$(counter)
runs 1 --gpu-memory 4G -- "$TRAIN" --memory 3G --sm-activity 0.9 --seconds 6
shift_clocks -$((2 * DAY)) 0
stop_daemon KILL
start
shift_clocks $YEAR 0
stop_daemon
start
shift_clocks -$((2 * DAY)) 0
until_field 1 state COMPLETED
until [ "$(field 1 modelled_energy_mj)" -gt 600000 ]; do patient || break; done # 6 s of 100 W at least
rise=$(($(counter) - before))
[ "$rise" -lt 1000000000 ] || fail "the counter of a virtual GPU goes by the wall clock: it rose by $rise mJ"
expect_true 1 6 60
[ "$(field 1 modelled_energy_mj)" -gt 600000 ] || fail "the energy of job 1 is $(field 1 modelled_energy_mj) mJ"
grep -q 'the wall clock is -172[78][0-9][0-9] s from the time' daemon.log || fail "the log says nothing of the wall clock"
# The year that was is not shown: usage is that of the jobs.
"$CARMA" stats --json >stats.json
python3 -c 'import json; assert json.load(open("stats.json"))["total"]["gpu_ns"] < 60e9' || fail "usage: $(cat stats.json)"

# An hour of sleep: it counts as time, for a job that was there and for limits.
run submit -- sleep 4
run submit --time 30m -- sleep 1000
until_field 2 state RUNNING
until_field 3 state RUNNING
shift_clocks 3600 3600
wall=3600
until_field 2 state COMPLETED
until_field 3 state TIMEOUT
rise=$(($(counter) - before))
expect_true 2 3600 3700
expect_true 3 3600 3700

# Another boot, by a clock that is two days behind: node time goes on from what is stored. Then one by a clock ahead.
for days in -2 3; do
    stop_daemon
    stored=$(sql 'SELECT max(at_ns) / 1000000000 FROM record')
    sql "UPDATE meta SET value = 'another-boot' || substr(value, instr(value, ' ')) WHERE key = 'clock'"
    shift_clocks $((days * DAY)) 3600
    start
    now=$(node_time)
    [ "$now" -ge "$stored" ] || fail "node time went back by $((stored - now)) s with the wall clock at $days days"
    if [ $days -gt 0 ]; then
        ahead=$((now - $(date +%s) - days * DAY))
        [ "$ahead" -le 1 ] && [ "$ahead" -gt -60 ] || fail "node time is $ahead s from the wall clock after a start"
    fi
done
stop_daemon
