#!/bin/sh
# carma dashboard: accepted and refused requests. Usage: test_dashboard.sh CARMA SOURCE
. "$(dirname "$0")/lib.sh"

expect_error 1 'no daemon listens there' dashboard
expect_error 2 'not a port from 1024 to 65535' dashboard --port 80
expect_error 2 'not a port from 1024 to 65535' dashboard --port 99999
expect_error 2 'not a port from 1024 to 65535' dashboard --port x
expect_error 2 'takes no arguments' dashboard now
python3 "$SOURCE/tests/cli/dashboard.py" "$CARMA" "$T" || fail "carma dashboard"
