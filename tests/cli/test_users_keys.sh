#!/bin/sh
# A daemon in a session keyring, as systemd starts it: other users cannot read a job's keys there.
if [ -z "${CARMA_TEST_KEYS-}" ] && [ "$(id -u)" -eq 0 ]; then
    python3 "$2/tests/fakes/keys.py" join true 2>/dev/null || {
        echo "skipped: no session keyring can be made here"
        exit 77
    }
    export CARMA_TEST_KEYS=joined
    exec python3 "$2/tests/fakes/keys.py" join sh "$0" "$@"
fi
. "$(dirname "$0")/users.sh"
homes
cp "$SOURCE/tests/fakes/keys.py" "$T/keys.py"
chmod 644 "$T/keys.py"
start_all a100x4-40g 100

# Alice's job lives while bob's looks: her keyring with it.
run_as alice submit --parsable -o key -- sh -c 'python3 -B "$1" add secret "that of alice"; python3 -B "$1" read "$(cat key)"; sleep 1000' sh "$T/keys.py"
until_field 1 state RUNNING
wait_for 'grep -qs "that of alice" "$T/alice/key"' || fail "alice does not have her own key: $(cat "$T/alice/key")"
key=$(head -n 1 "$T/alice/key")
run_as bob submit --parsable -o look -- sh -c 'python3 -B "$1" read "$2"; echo "status $?"' sh "$T/keys.py" "$key"
until_field 2 state COMPLETED
grep -q '^status 1$' "$T/bob/look" || fail "bob looks for alice's key and gets: $(cat "$T/bob/look")"
! grep -q 'that of alice' "$T/bob/look" || fail "bob has read alice's key"
