#!/bin/sh
# GET /v1/series and /v1/jobs/ID/series: the history of GPUs and jobs, for charts.
. "$2/tests/cli/node.sh"

# holds PATH CONDITION: of the answer, as Python's `a`; the answer is in $T/answer.
holds() {
    PYTHONPATH=$SOURCE/tests/cli PYTHONDONTWRITEBYTECODE=1 python3 - "$CARMA_SOCKET" "$1" "$2" 3>"$T/answer" <<'PYTHON'
import json, os, sys
from unix_http import Connection
connection = Connection(sys.argv[1])
connection.request("GET", sys.argv[2])
text = connection.getresponse().read()
os.write(3, text)
a = json.loads(text)
GIB = 1 << 30
def seen(values):
    return [value for value in values if value is not None]
sys.exit(not eval(sys.argv[3]))
PYTHON
}

expect() {
    holds "$@" || fail "$1: not $2: $(cut -c1-1200 "$T/answer")"
}

# until_holds PATH CONDITION: waits for it.
until_holds() {
    wait_for 'holds "$@"' "$@" || fail "$1: never $2: $(cut -c1-1200 "$T/answer")"
}

start_node h100x8-80g 60
start_daemon --set policy=round-robin --set memory_view=monitor --set settle=0s --set decide_period=0s --set sm_activity_cap=100%
run submit --gpu-memory 12G -- "$TRAIN" --memory 8G --sm-activity 0.5 --seconds 36000
run submit --hold -- true
until_holds /v1/jobs/1/series 'max(seen(a["used_bytes"]), default=0) >= 8 * GIB and max(seen(a["sm_activity_permille"])) > 300'
expect /v1/jobs/1/series 'a["id"] == 1 and 0 < len(a["used_bytes"]) <= 256 and len({len(a[n]) for n in a if isinstance(a[n], list)}) == 1'
expect /v1/jobs/1/series 'set(a["reserved_bytes"]) <= {12 * GIB, None} and max(seen(a["gpu_used_bytes"])) >= max(seen(a["used_bytes"]))'
until_holds /v1/series 'max(seen(a["gpus"][0]["used_bytes"])) >= 8 * GIB and 12 * GIB in a["gpus"][0]["reserved_bytes"]'
expect /v1/series 'a["step_ns"] == 6 * 10**9 and a["from_ns"] % a["step_ns"] == 0 and a["from_ns"] <= a["now_ns"]'
expect /v1/series '[gpu["index"] for gpu in a["gpus"]] == list(range(8))'
expect /v1/series 'a["from_ns"] + len(a["gpus"][0]["used_bytes"]) * a["step_ns"] > a["now_ns"]'
expect /v1/series 'all(len(gpu[n]) == len(a["gpus"][0]["used_bytes"]) <= 600 for gpu in a["gpus"] for n in gpu if isinstance(gpu[n], list))'
expect /v1/series 'max(seen(a["gpus"][1]["reserved_bytes"])) == 0 and max(seen(a["gpus"][0]["power_mw"])) > max(seen(a["gpus"][1]["power_mw"]))'
expect '/v1/series?span=60' 'len(a["gpus"][0]["used_bytes"]) == 10'
expect '/v1/series?span=100000000' 'a["step_ns"] == 144 * 10**9 and 0 < len(a["gpus"][0]["used_bytes"]) <= 600'
expect '/v1/series?points=150' 'a["step_ns"] == 24 * 10**9 and a["from_ns"] % a["step_ns"] == 0'
expect '/v1/series?points=150' '0 < len(a["gpus"][0]["used_bytes"]) <= 150 and max(seen(a["gpus"][0]["used_bytes"])) >= 8 * GIB'
expect '/v1/series?points=7' 'a["from_ns"] + len(a["gpus"][0]["used_bytes"]) * a["step_ns"] > a["now_ns"]'
expect '/v1/series?points=0' '"is not a number of steps" in a["error"]'
expect '/v1/series?span=x' '"is not a number of seconds" in a["error"]'
expect '/v1/series?span=0' '"is not a number of seconds" in a["error"]'

# A job that never ran has none, one that has ended has its own still.
expect /v1/jobs/2/series 'a["from_ns"] is None and a["used_bytes"] == []'
expect /v1/jobs/3/series '"there is no job" in a["error"]'
run cancel 1
until_field 1 state CANCELLED
expect /v1/jobs/1/series 'max(seen(a["used_bytes"])) >= 8 * GIB'
until_holds '/v1/series?span=12' 'a["gpus"][0]["reserved_bytes"][-1] == 0'
end_daemon
