#!/bin/sh
# What if: a node's own past under other policies, asked of the daemon.
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 400

# The child of carmad: it notes its arguments, and does as $T/how says.
rm "$PREFIX/bin/carma"
program "$PREFIX/bin/carma" <<EOF2
#!/bin/sh
how=\$(cat "$T/how" 2>/dev/null) # before the call is seen: the test then says how the next one goes
echo "\$*" >>"$T/calls"
case \$how in
hold) exec sleep 1000 ;;
babble) echo words ;;
flood) exec yes ;;
*) exec "$CARMA" "\$@" ;;
esac
EOF2
start_daemon --set max_gpus_per_user=7 --set settle=20s

whatif() {
    python3 "$SOURCE/tests/cli/whatif.py" "$CARMA_SOCKET" "$@" || fail "what if: $*"
}

whatif fails 'none of its jobs has run to an end'
whatif refused
head -13 "$SOURCE/data/traces/thesis_60.csv" >trace.csv
expect_ok play trace.csv --output-dir "$T/played"
jobs=$(($(grep -c '^[0-9]' trace.csv)))
: >"$T/calls"
whatif saved "$jobs" # after that no job ends, so that carmad asks nothing of its own
grep -q -- '--last=7d --set' "$T/calls" || fail "it is not the last days: $(cat "$T/calls")"
whatif answers "$jobs"
grep -q -- '--set=max_gpus_per_user=7' "$T/calls" || fail "the setting is not kept: $(cat "$T/calls")"
grep -q -- '--set=settle=20' "$T/calls" || fail "the setting is not kept: $(cat "$T/calls")"

# While one is simulated, the next wait, up to a number; everything else goes on.
echo hold >"$T/how"
: >"$T/calls"
whatif waits
until_called() {
    wait_for '[ "$(wc -l <"$T/calls")" -ge "$1" ]' "$@" ||
        fail "carmad has simulated $(wc -l <"$T/calls") times, not $1"
}
until_called 3 # two were killed, which the next do not notice
echo babble >"$T/how"
whatif kills 'ended by signal 9'
whatif fails 'is no answer'
echo flood >"$T/how"
whatif fails 'says more than'
rm "$T/how"
whatif answers "$jobs"

# It ends with the daemon.
echo hold >"$T/how"
: >"$T/calls"
whatif begins
until_called 1
whatif ends_with "$daemon"
wait "$daemon"
daemon=
