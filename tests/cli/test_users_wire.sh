#!/bin/sh
# Another user's requests to the daemon's socket: none of them changes or shows other users' data, or keeps others out.
. "$(dirname "$0")/users.sh"
homes
start_all a100x4-40g 100

# wire USER CHECK [ARGUMENT...]
wire() {
    wire_uid=$(uid_of "$1")
    shift
    python3 "$SOURCE/tests/cli/wire.py" "$wire_uid" "$CARMA_SOCKET" "$@"
}

run_as alice submit --parsable --hold -- true
expect_output 1
wire bob requests 1 || fail "bob's requests"
expect_field 1 state HELD
[ "$(field 2 uid)" = 12002 ] || fail "bob's job is not his: $(field 2 uid)"

# bob holds all the connections that he gets. Nobody else notices.
mkfifo "$T/hold"
wire bob hold "$T/bob/held" <"$T/hold" &
holder=$!
exec 8>"$T/hold"
wait_for '[ -s "$T/bob/held" ]'
[ "$(cat "$T/bob/held")" = 128 ] || fail "bob holds $(cat "$T/bob/held") connections, not 128"
allowed alice queue
allowed alice submit --parsable --hold -- true
expect_ok queue
as bob timeout 4 "$CARMA" queue >"$T/out" 2>"$T/err" </dev/null
[ $? -eq 124 ] || fail "bob's next client does not wait for a turn"
grep -qF 'you have too many connections open: close some: waiting for a turn' "$T/err" || fail "bob is told: $(cat "$T/err")"
exec 8>&-
wait "$holder" || fail "bob's connections"
allowed bob queue
end_daemon
