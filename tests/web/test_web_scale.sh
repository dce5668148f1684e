#!/bin/sh
# Usage: test_web_scale.sh CARMA SOURCE BUILD
# The dashboard at 64 GPUs and 5,000 jobs, and at one GPU without a job.
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/prepare.sh"
node "$SOURCE/tests/web/scale.mjs" "$SOURCE" || fail "see above"
