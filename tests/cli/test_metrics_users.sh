#!/bin/sh
# More users than /metrics has series for: the others' sum does not fall when one with a series comes. Needs root.
if [ "$(id -u)" -ne 0 ]; then
    echo "skipped: only root can act as other users"
    exit 77
fi
. "$(dirname "$0")/node.sh"
chmod 711 "$T"
start_all h200x1 100
export PYTHONPATH="$SOURCE/tests/cli" PYTHONDONTWRITEBYTECODE=1

# submit_as FROM TO: a held job of each uid.
submit_as() {
    python3 - "$CARMA_SOCKET" "$1" "$2" <<'PYTHON' || fail "jobs of uids $1 to $2"
import json, os, sys
from unix_http import Connection

def submit(path, uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    connection = Connection(path, 120)
    connection.request("POST", "/v1/jobs", json.dumps({"jobs": [{
        "name": "n", "command": ["true"], "directory": "/", "output": "/dev/null", "held": True, "gpu_memory_bytes": 1 << 30}]}))
    return connection.getresponse().status == 201

uids = range(int(sys.argv[2]), int(sys.argv[3]) + 1)
for first in uids[::100]:  # at once, as the store commits them
    children = []
    for uid in uids[first - uids[0]:first - uids[0] + 100]:
        children.append(os.fork())
        if children[-1] == 0:
            os._exit(0 if submit(sys.argv[1], uid) else 1)
    assert not any([os.waitpid(child, 0)[1] for child in children]), first
PYTHON
}

# expect SERIES OTHERS: SERIES users have series, and OTHERS jobs of the others have ended.
expect() {
    python3 "$SOURCE/tests/cli/exposition.py" fetch "$CARMA_SOCKET" >"$T/metrics"
    python3 "$SOURCE/tests/cli/exposition.py" check "$T/metrics" || fail "not the format"
    series=$(grep -c '^carma_user_job_ends_total' "$T/metrics")
    others=$(sed -n 's/^carma_user_job_ends_total{user="(others)"} //p' "$T/metrics")
    [ "$series" -eq "$1" ] && [ "${others:-none}" = "$2" ] || fail "$series series, others $others; not $1 and $2"
}

submit_as 20001 21000
run cancel 1-1000
expect 1000 none
submit_as 21001 21003
run cancel 1001-1003
expect 1001 3
submit_as 15000 15000
expect 1001 4
run cancel 1004
expect 1001 4
found=$(python3 "$SOURCE/tests/cli/exposition.py" value "$T/metrics" carma_job_ends_total state=CANCELLED)
[ "$found" = 1004 ] || fail "of 1004 jobs $found have ended"
stop_daemon
