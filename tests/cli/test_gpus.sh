#!/bin/sh
# What the daemon makes of readings: energy by job sums up to the counters through a kill. And a log without a daemon.
. "$(dirname "$0")/node.sh"
start_all h100x8-80g 60 --set share=time-slice,3=time-slice,9=exclusive
[ "$(grep 'share: ' daemon.log)" = "$(grep 'share: 9=exclusive is for no GPU of this machine' daemon.log)" ] &&
    grep -q 'share: 9=' daemon.log || fail "the log does not say that there is no GPU 9: $(cat daemon.log)"

# ledger FILE: the stored energy of each GPU: the part shared out, and the counter that it goes with.
ledger() {
    sql "SELECT meter.gpu, meter.counter_mj, (SELECT sum(mj) FROM energy WHERE energy.gpu = meter.gpu)
        FROM meter ORDER BY meter.gpu" >"$1"
}

# Two jobs side by side, one of them twice as active: both have energy, and that it is modelled is said.
run submit --parsable -- "$TRAIN" --memory 4G --sm-activity 0.6 --seconds 100
expect_ok wait 1
[ "$(field 1 modelled_energy_mj)" -gt 1000000 ] || fail "job 1 has used $(field 1 modelled_energy_mj) mJ"
shows '^Energy .*J (modelled)$' show 1
run stats --json
check 'len(said["users"]) == 1 and (user := said["users"][0])["jobs"] == user["ended"] == 1' \
    "user['modelled_energy_mj'] == $(field 1 modelled_energy_mj) and said['modelled_idle_mj'] > 0" \
    '100e9 <= user["gpu_ns"] < 200e9 and 0.7 * 4096 * 100e3 <= user["memory_mib_ms"] <= 4096 * user["gpu_ns"] / 1e6' \
    'user["states"]["COMPLETED"] == user["launched"] == 1 and 0 <= user["wait_ns"] < user["gpu_ns"]'

# A job's energy is in the store as soon as it has ended; a daemon that is killed counts nothing twice and loses nothing.
runs 2 -- "$TRAIN" --memory 4G --sm-activity 0.6 --seconds 300
wait_for 'ledger first && grep -q . first'
before=$(field 1 modelled_energy_mj)
stop_daemon KILL
sleep 0.5 # half a minute on the node, in which job 2 goes on
start_daemon
expect_field 1 modelled_energy_mj "$before"
expect_ok wait 2
wait_for 'ledger second; ! cmp -s first second'
stop_daemon
ledger second
python3 - first second <<'PYTHON' || fail "energy was lost or counted twice"
import sys
first, second = ({gpu: (int(counter), int(shared)) for gpu, counter, shared in map(str.split, open(name))}
                 for name in sys.argv[1:])
assert len(first) == len(second) == 8, (first, second)
for gpu, (counter, shared) in second.items():
    assert counter > first[gpu][0]
    assert shared - first[gpu][1] == counter - first[gpu][0], (gpu, first[gpu], (counter, shared))
PYTHON
start_daemon
[ "$(field 2 modelled_energy_mj)" -gt $((2 * before)) ] || fail "job 2 has $(field 2 modelled_energy_mj) mJ of 3 times job 1's time"

# Without a daemon.
stop_daemon
CARMA_NVML_LIBRARY=$PREFIX/lib/carma/vnode/libnvidia-ml.so.1
export CARMA_NVML_LIBRARY
expect_ok monitor --csv "$T/log.csv" --period 6 --for 60
[ "$(grep -c gpm "$T/log.csv")" -ge 16 ] || fail "the log: $(cat "$T/log.csv")"
CARMA_NVML_LIBRARY=$T/nothing.so
expect_error 1 "GPUs cannot be read" monitor --csv "$T/log.csv"
[ -s "$T/log.csv" ] || fail "a log was emptied though there is nothing to write"
expect_error 2 "not a number of seconds" monitor --period 0
expect_error 2 "one file" monitor a b
