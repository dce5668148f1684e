#!/bin/sh
# Usage: test_slow_names.sh CARMA SOURCE BUILD SLOW_NAMES
# A user database that takes 4 s for one user. His submission waits for it, once; nobody else does, and his job's start
# does not.
slow_names=$(realpath "$4") || exit 99
. "$(dirname "$0")/node.sh"
chmod 711 "$T" # another user connects
start_node a100x4-40g 1
uid=$(id -u)
[ "$uid" -ne 0 ] || uid=12345
SLOW_UID=$uid
SLOW_LOG=$T/questions
LD_PRELOAD=$slow_names
export SLOW_UID SLOW_LOG LD_PRELOAD
start_daemon
unset LD_PRELOAD
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" slow_user "$uid" || fail "a slow user database"
until_field 1 state COMPLETED
expect_field 1 user slow
[ "$(cat questions)" = q ] || fail "the database was asked about him $(wc -c <questions) times"
# A stored name is not looked up again.
stop_daemon
LD_PRELOAD=$slow_names
export LD_PRELOAD
start_daemon
unset LD_PRELOAD
expect_field 1 user slow
expect_field 2 user slow
[ "$(cat questions)" = q ] || fail "the database was asked about him when carmad started"
expect_ok release 2
until_field 2 state COMPLETED
[ "$(cat questions)" = q ] || fail "the database was asked about him when a stored job began"
stop_daemon
