#!/bin/sh
# Usage: test_nvml_errors.sh CARMA SOURCE BUILD whole|sample
# Any NVML call answers any error, at the start, later, for a minute: nvml_errors.py says what has to hold.
. "$(dirname "$0")/node.sh"
sed 's/^gpus = .*/gpus = 8/; s/^name = h100x8-80g/name = pairs/' "$SOURCE/data/nodes/h100x8-80g.ini" >"$T/pairs.ini"
printf '\n[mig]\ngpus = 4\ninstances = 3g.40gb\n' >>"$T/pairs.ini"
start_node "$T/pairs.ini" 240
python3 -B "$SOURCE/tests/cli/nvml_errors.py" "$4" "$PREFIX" "$T" || fail "see the table above"
