#!/bin/sh
# Counters of /metrics that could fall: energy not stored yet, and the time of a run whose end is learned late.
. "$(dirname "$0")/node.sh"
start_all a100x4-40g 300
exposition="python3 $SOURCE/tests/cli/exposition.py"

scrape() {
    $exposition fetch "$CARMA_SOCKET" >"$T/$1" || fail "no metrics"
}

grows() {
    $exposition grows "$T/$1" "$T/$2" || fail "from $1 to $2 a counter falls"
}

# Energy is stored every 30 s: a carmad that is killed before has shared out energy that the next knows nothing of.
runs 1 -- "$TRAIN" --memory 3G --sm-activity 0.9 --seconds 1000000
wait_for '[ "$(field 1 modelled_energy_mj)" -gt 100000000 ]'
scrape before
again_after_kill
scrape after
grows before after

# While no GPU is read, a failure waits 3 s for readings. Its user has no other job, the time of which would grow.
cancel 1
stopped=
# shellcheck disable=SC2013 # the children are words of one line
for child in $(cat /proc/"$daemon"/task/*/children); do
    [ "$(cat /proc/"$child"/comm)" != carma-monitor ] || stopped=$child
done
kill -STOP "$stopped" || fail "carma-monitor is not found"
run submit --parsable -- sh -c 'touch over; exit 3'
wait_for '[ -e over ]' || fail "job 2 does not run"
scrape waited
until_field 2 state FAILED
[ "$($exposition value "$T/waited" carma_user_gpu_seconds_total)" != 0 ] || fail "job 1 has not run"
scrape ended
grows waited ended
restart_daemon
scrape again
grows ended again
stop_daemon
