#!/bin/sh
# The page has its user's rights: bob's cannot cancel alice's job nor show her output; by TCP, with her token, hers can.
. "$(dirname "$0")/../cli/users.sh"
. "$SOURCE/tests/web/prepare.sh"
homes
start_node a100x4-40g 100
install -m 600 -o 12001 /dev/null "$T/token"
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$T/token"
port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
start_daemon --set listen="127.0.0.1:$port" --set token_file="$T/token"
allowed alice submit --parsable -J hers -o out -- sh -c 'echo secret; sleep 100000'
allowed alice submit --parsable -J hers-too -o out --hold -- true
until_field 1 state RUNNING
for user in bob carol; do
    allowed "$user" submit --parsable --gpu-memory 1G -o /dev/null -- "$TRAIN" --memory 512M --seconds 100000
    until_field "$(cat "$T/out")" state RUNNING
done

# by USER ARGUMENT...: carma, by that user.
# shellcheck disable=SC2317 # open_dashboard calls it
by() {
    by_user=$1
    shift
    as "$by_user" "$CARMA" "$@"
}
open_dashboard "$T/bob.address" by bob && bobs=$address
open_dashboard "$T/alice.address" by alice && alices=$address
node "$SOURCE/tests/web/users.mjs" "$bobs" "$alices" "http://127.0.0.1:$port/" "$(cat "$T/token")" || fail "two users' dashboards: see above"
expect_field 1 state CANCELLED
expect_field 2 state CANCELLED
