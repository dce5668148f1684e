#!/bin/sh
# Every path that carma has made is removed in turn while jobs run and wait: removed.py has the table.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/mps.sh"
start_node a100x4-40g 100
CARMA_SOCKET=$T/run/socket
python3 -B "$SOURCE/tests/cli/removed.py" "$T" "$CARMA" "$PREFIX/bin/carmad" "$CONTROL" ${ROWS-} || fail "see above"
finish_node
