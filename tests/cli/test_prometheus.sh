#!/bin/sh
# Usage: test_prometheus.sh CARMA SOURCE BUILD [HOURS [SCALE]]
# A real Prometheus scrapes a virtual node each second, by TCP with a token. It does so for HOURS (3) of node time at
# SCALE (720) times the clock's pace. Meanwhile two users' training jobs run, crash and are retried, and carmad is
# stopped and killed. By its counters the GPU hours and the energy are those of carma stats, and the dashboard has
# something to draw.
hours=${4:-3}
scale=${5:-720}
if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
    . "$(dirname "$0")/users.sh"
else
    . "$(dirname "$0")/node.sh"
fi
. "$SOURCE/tests/cli/prometheus.sh"
[ -z "${CARMA_TEST_ACCOUNTS-}" ] || homes

# shellcheck disable=SC2046 # two words
set -- $(python3 -c 'import socket
sockets = [socket.socket() for _ in range(2)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))')
port=$1
prometheus_port=$2
(umask 077 && python3 -c 'import secrets; print(secrets.token_hex(32))' >"$T/token")
start_node a100x4-40g "$scale"
serve() {
    start_daemon --set listen="127.0.0.1:$port" --set token_file="$T/token" --set sample_period=20s --set window=3m
}
serve

sed -e "s|/etc/prometheus/carma.token|$T/token|; s|127.0.0.1:8471|127.0.0.1:$port|; s|scrape_interval: .*|scrape_interval: 1s|" \
    -e '/^rule_files/,/^$/d' "$SOURCE/integrations/prometheus/prometheus.yml" >"$T/prometheus.yml"
"$PROMETHEUS" --config.file="$T/prometheus.yml" --storage.tsdb.path="$T/tsdb" \
    --web.listen-address="127.0.0.1:$prometheus_port" >"$T/prometheus.log" 2>&1 &
prometheus=$!
stop_prometheus() {
    [ -z "$prometheus" ] || kill "$prometheus"
    wait "$prometheus" 2>/dev/null
    prometheus=
}
at_end='stop_prometheus; end_node'
query="python3 $SOURCE/tests/cli/prometheus_query.py http://127.0.0.1:$prometheus_port"

patience
until $query up 'up{job="carma"} == 1'; do
    kill -0 "$prometheus" && patient || {
        fail "Prometheus does not see carmad: $(tail -n 3 "$T/prometheus.log")"
        exit 1
    }
done

python3 - "$port" <<'PYTHON' || fail "/metrics is shown without a token"
import sys, urllib.error, urllib.request
try:
    urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics", timeout=10)
except urllib.error.HTTPError as refused:
    sys.exit(refused.code != 401)
sys.exit(1)
PYTHON

now() {
    "$CARMA" stats --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["now_ns"] // 10**9)'
}

# submit USER ARGUMENT...: that user's job, where there are users.
submit() {
    submit_user=$1
    shift
    if [ -n "${CARMA_TEST_ACCOUNTS-}" ]; then
        as "$submit_user" "$CARMA" submit -o output-%j "$@"
    else
        "$CARMA" submit -o output-%j "$@"
    fi >/dev/null || fail "$submit_user's job is not taken"
}

# A job of each user every ten minutes of node time, alice's twice as long as bob's. Each third takes more than it requests, and
# one more than there is. carmad is stopped and killed on the way.
started=$(now)
end=$((started + hours * 3600))
number=0
restarts=0

# train USER SECONDS: the user's next job.
train() {
    number=$((number + 1))
    if [ $((number % 3)) -eq 0 ]; then
        submit "$1" --gpu-memory 4G -- "$TRAIN" --memory 8G --peak 36G --sm-activity 0.3 --seconds "$2"
    else
        submit "$1" --gpu-memory 12G -- "$TRAIN" --memory 10G --sm-activity 0.$((3 + number % 5)) --seconds "$2"
    fi
}

number=$((number + 1))
submit bob --gpu-memory 4G -- "$TRAIN" --memory 8G --peak 60G --seconds 600
while
    time=$(now)
    [ "$time" -lt $((end - 3600)) ] || [ "$restarts" -lt 2 ]
do
    train alice 3000
    train bob 1500
    if [ "$restarts" -eq 0 ] && [ "$time" -gt $((started + hours * 1200)) ]; then
        restarts=1
        stop_daemon
        serve
    elif [ "$restarts" -eq 1 ] && [ "$time" -gt $((started + hours * 2000)) ]; then
        restarts=2
        stop_daemon KILL
        serve
    fi
    # Only the pace of the node's time matters here; nothing waits for it.
    sleep "$(python3 -c "print(max(0, $time + 600 - $(now)) / $scale)")"
done
wait_for '$query up "sum(carma_jobs{state=\"RUNNING\"}) > 0"' || fail "Prometheus sees no job run"
busy=$(date +%s)
# shellcheck disable=SC2046 # numbers
run wait $(seq "$number")
while [ "$(now)" -lt "$end" ]; do
    sleep 0.2
done

# Prometheus's values, once it has scraped those after the last job's end.
wait_for '"$CARMA" stats --by user --json >"$T/stats.json"
    $query compare "$T/stats.json" "$hours" >"$T/figures" 2>"$T/differences"' ||
    fail "by Prometheus's counters it is other than by carma stats: $(cat "$T/differences" "$T/stats.json")"
cat "$T/figures"
$query draw "$SOURCE/integrations/grafana/carma.json" "$busy" 2>"$T/differences" || fail "$(cat "$T/differences")"
