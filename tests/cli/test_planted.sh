#!/bin/sh
# Names that bob planted where alice's jobs, daemon and commands open something (planted.py), with any fs.protected_*.
. "$(dirname "$0")/users.sh"
homes
start_all a100x4-40g 1000
python3 -B "$SOURCE/tests/cli/planted.py" "$T" "$CARMA" "$PREFIX/bin/carmad" || fail "see above"
