#!/bin/sh
# What users write is shown nowhere raw: raw_text.py walks the kinds of characters and the outlets.
. "$(dirname "$0")/node.sh"
start_all a100x4-40g 1000
LC_ALL=C.UTF-8 python3 -B "$SOURCE/tests/cli/raw_text.py" "$CARMA" "$CARMA_SOCKET" "$T/daemon.log" || fail "see above"
