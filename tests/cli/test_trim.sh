#!/bin/sh
# Usage: test_trim.sh CARMA SOURCE BUILD
# A job of which nobody knew what it needs: once it was seen, that is what it claims, and what people are told.
# shellcheck source-path=SCRIPTDIR disable=SC1091
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/node.sh"
cd "$T" || exit 99
start_node h200x1 300
start_daemon --config /dev/null

run submit -- "$TRAIN" --memory 4G --seconds 100000
expect_field 1 claim_source unknown
expect_field 1 claim_bytes None
until_field 1 claim_source seen
expect_field 1 claim_bytes 5368709120 # a quarter more than it holds
run explain 1
grep -q "5.0 GiB on each GPU, as it was seen to need" "$T/out" || fail "explain says: $(cat "$T/out")"
stop_daemon
start_daemon --config /dev/null
expect_field 1 claim_source seen
run cancel 1
run wait 1
finish_node
