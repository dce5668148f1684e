#!/bin/sh
# Every path that carma has made is removed in turn while jobs run and wait: removed.py has the table.
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 100
. "$SOURCE/tests/cli/mps.sh"
mkdir work
python3 -B "$SOURCE/tests/cli/removed.py" "$T" "$CARMA" "$PREFIX/bin/carmad" "$CONTROL" || fail "see above"
