#!/bin/sh
# Parts of the list of jobs, as the API gives them: by state, and up to a number. And all requests against the API's description.
. "$(dirname "$0")/node.sh"
start_all h200x1 60 --config /dev/null
export PYTHONPATH="$SOURCE/tests/cli" PYTHONDONTWRITEBYTECODE=1

for _ in 1 2 3; do expect_ok submit --exclusive -- true; done
run wait 1-3
run submit --exclusive --gpu-memory 1G -- "$TRAIN" --memory 100M --seconds 100000
run submit --hold -- true
run submit --exclusive -- true
run submit --exclusive -- true
until_field 4 state RUNNING
expect_field 4 slowdown_permille 1000 # alone
expect_field 4 submitted null # this node's time is no date
expect_field 5 slowdown_permille null
expect_field 1 slowdown_permille null # it has ended

python3 - "$CARMA_SOCKET" <<'PYTHON' || fail "the lists are wrong"
import json, os, sys
from unix_http import Connection

def get(query):
    connection = Connection(sys.argv[1])
    connection.request("GET", "/v1/jobs" + query)
    answer = connection.getresponse()
    body = json.load(answer)
    if answer.status != 200:
        return answer.status, body["error"]
    return [job["id"] for job in body["jobs"]], body["left_out"]

for query, expected in {
    "": ([4, 5, 6, 7], 0),
    "?state=all": ([1, 2, 3, 4, 5, 6, 7], 0),
    "?state=running": ([4], 0),
    "?state=waiting": ([5, 6, 7], 0),
    "?state=waiting&limit=2": ([5, 6], 1),
    "?state=ended": ([1, 2, 3], 0),
    "?state=ended&limit=2": ([2, 3], 1),  # the latest
    "?state=ended&limit=9": ([1, 2, 3], 0),
    "?limit=0": ([], 4),
    f"?state=running&uid={os.getuid()}": ([4], 0),
    f"?state=waiting&uid={os.getuid()}&limit=1": ([5], 2),
    f"?state=all&uid={os.getuid() + 1}": ([], 0),
    "?state=all&limit=1": ([1], 6),
}.items():
    assert get(query) == expected, (query, get(query), expected)
for query, said in {"?state=asleep": "state 'asleep'", "?limit=": "limit ''", "?limit=-1": "limit '-1'",
                    "?limit=9999999999": "limit '9999999999'", "?limit=2x": "limit '2x'", "?uid=me": "uid 'me'", "?uid=": "uid ''"}.items():
    status, error = get(query)
    assert status == 400 and said in error, (query, status, error)
PYTHON

# All requests are as GET /v1/openapi.json says.
python3 "$SOURCE/tests/cli/openapi.py" "$CARMA_SOCKET" "$SOURCE/docs/formats/http.md" || fail "the API is another than its description"
run cancel 4-7 9

# A long list is made in pieces, and others are answered in between.
python3 - "$CARMA_SOCKET" <<'PYTHON' || fail "nobody else is answered while jobs are listed"
import gzip, json, select, sys
from unix_http import Connection

JOBS = 5000

def ask(connection, method, path, body=None):
    connection.request(method, path, body)
    return json.load(connection.getresponse())

lister, other = Connection(sys.argv[1]), Connection(sys.argv[1])
job = {"name": "many", "command": ["true"], "directory": "/", "output": "/dev/null", "held": True}
for _ in range(JOBS // 1000):
    made = ask(lister, "POST", "/v1/jobs", json.dumps({"jobs": [job] * 1000}))
    assert len(made["jobs"]) == 1000, made
ask(other, "GET", "/v1/status")
lister.request("GET", "/v1/jobs", headers={"Accept-Encoding": "gzip"})
answered = 0
while not select.select([lister.sock], [], [], 0)[0]:
    ask(other, "GET", "/v1/status")
    answered += 1
assert len(json.loads(gzip.decompress(lister.getresponse().read()))["jobs"]) == JOBS
assert answered >= 5, answered
PYTHON
