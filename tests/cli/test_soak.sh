#!/bin/sh
# The short soak (tests/soak); skips without root.
. "$(dirname "$0")/node.sh"
chmod 755 "$T"
TMPDIR=$T "$SOURCE/tests/soak/soak" "$PREFIX" --jobs 400 --scale 20 >"$T/soak" 2>&1
case $? in
0) ;;
77) skip "$(cat "$T/soak")" ;;
*) fail "$(cat "$T/soak")" ;;
esac
cat "$T/soak"
