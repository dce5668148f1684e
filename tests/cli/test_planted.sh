#!/bin/sh
# Names that bob planted where alice's jobs, daemon and commands will open something: planted.py has the kinds. The kernel's
# own protection (fs.protected_*) may be on or off.
. "$(dirname "$0")/users.sh"
. "$(dirname "$0")/node.sh"
homes
start_node a100x4-40g 1000
start_daemon
python3 -B "$SOURCE/tests/cli/planted.py" "$T" "$CARMA" "$PREFIX/bin/carmad" || fail "see above"
