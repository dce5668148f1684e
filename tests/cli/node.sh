# For tests of the whole system on a virtual node: sourced with lib.sh's arguments and BUILD (the meson tree) as $3. It brings
# lib.sh, and changes to the directory $T.
# shellcheck shell=sh
. "$2/tests/cli/lib.sh"
cd "$T" || exit 99
BUILD=$3
PREFIX=$T/prefix
mkdir -p "$PREFIX/bin" "$PREFIX/lib/carma/vnode" "$PREFIX/share/carma"
ln -s "$BUILD/src/cli/carma" "$BUILD/src/daemon/carmad" "$BUILD/src/vnode/carma-train" "$BUILD/src/vnode/carma-vnode" \
    "$PREFIX/bin"
ln -s "$BUILD/src/cli/carma-tools" "$BUILD/src/dashboard/carma-dashboard" "$BUILD/src/gpu/carma-monitor" "$BUILD/src/launch/carma-shepherd" "$BUILD/src/notify/carma-notify" "$BUILD/src/sandbox/carma-sandbox" "$PREFIX/lib/carma"
ln -s "$BUILD/python/carma_bench" "$PREFIX/lib/carma/bench"
ln -s "$BUILD/src/vnode/libnvidia-ml.so.1" "$PREFIX/lib/carma/vnode"
ln -s "$SOURCE/data/nodes" "$SOURCE/data/workloads.csv" "$SOURCE/data/summaries" \
    "$SOURCE/data/traces" "$PREFIX/share/carma"
CARMA_PREFIX=$PREFIX
CARMA_VNODE=$T/node
STATE=$T/state
TRAIN=$PREFIX/bin/carma-train
export CARMA_PREFIX CARMA_VNODE
daemon=
listener=
at_end=end_node

# expect_picture RESULTS TEXT...: integrations/bench_plot.py draws the results, with these texts, where there is matplotlib.
expect_picture() {
    results=$1
    shift
    draws_pictures || return 0
    /usr/bin/python3 -W error::UserWarning "$SOURCE/integrations/bench_plot.py" "$results" "$T/picture.svg" ||
        fail "$said: bench_plot.py draws no picture of $results"
    for text; do
        grep -qF "$text" "$T/picture.svg" || fail "$said: its picture has no text '$text'"
    done
}

# start_node PROFILE TIME_SCALE
start_node() {
    CARMA_TIME_SCALE=$2
    export CARMA_TIME_SCALE
    "$PREFIX/bin/carma-vnode" create "$CARMA_VNODE" --profile "$1" >/dev/null || exit 99
    mkdir -p "$T/mps"
    [ -n "$listener" ] || listen_for_mps "$T/mps"
}

# profile_of DRIVER: the file of a profile with a node that claims to have it.
profile_of() {
    sed "s/^driver_version = .*/driver_version = $1/" "$SOURCE/data/nodes/a100x4-40g.ini" >"$T/driver-$1.ini"
    echo "$T/driver-$1.ini"
}

# listen_for_mps DIRECTORY: as an MPS control daemon there does.
listen_for_mps() {
    python3 "$SOURCE/tests/fakes/mps_listener.py" "$1/control" >/dev/null 2>&1 &
    listener="$listener $!"
    until [ -S "$1/control" ]; do sleep 0.02; done
}

# start_daemon [ARGUMENT...]: and waits until it answers and sees its GPUs.
start_daemon() {
    "$PREFIX/bin/carmad" --state "$STATE" --socket "$CARMA_SOCKET" --set mps_pipe_directory="$T/mps" --set grace=500ms \
        --set share=time-slice \
        --set nvml_library="$PREFIX/lib/carma/vnode/libnvidia-ml.so.1" "$@" 2>>"$T/daemon.log" &
    daemon=$!
    patience
    until "$CARMA" gpus --json 2>/dev/null | grep -q '"observed_ns": [0-9]'; do
        kill -0 "$daemon" 2>/dev/null && patient || {
            fail "carmad does not answer: $(cat "$T/daemon.log")"
            exit 1
        }
    done
}

# start_all PROFILE TIME_SCALE [ARGUMENT...]: the node, and the daemon with these arguments.
start_all() {
    start_node "$1" "$2"
    shift 2
    start_daemon "$@"
}

# stop_daemon [SIGNAL]
stop_daemon() {
    kill -"${1:-TERM}" "$daemon"
    wait "$daemon" 2>/dev/null
    daemon_status=$?
    daemon=
}

# end_daemon: stops it, and it ends in order.
end_daemon() {
    stop_daemon
    [ "$daemon_status" -eq 0 ] || fail "carmad ended with status $daemon_status"
}

# restart_daemon [ARGUMENT...]: after an orderly end; again_after_kill [ARGUMENT...]: after none.
restart_daemon() {
    stop_daemon
    start_daemon "$@"
}

again_after_kill() {
    stop_daemon KILL
    start_daemon "$@"
}

# Python's field(NAME) of a job's JSON.
FIELD='import json, sys
job = json.load(sys.stdin)
def field(name):
    value = job
    for key in name.split("."):
        value = value[int(key)] if key.isdigit() else value[key]
    return value if isinstance(value, str) else json.dumps(value)
'

# field ID NAME: of a job, in the words of `carma wait --until`.
field() {
    "$CARMA" show --json "$1" | python3 -S -E -c "${FIELD}print(field(sys.argv[1]))" "$2"
}

# expect_field ID NAME VALUE [NAME VALUE]...: each of these fields has its value.
expect_field() {
    differing=$("$CARMA" show --json "$1" | python3 -S -E -c "$FIELD
for name, value in zip(sys.argv[2::2], sys.argv[3::2]):
    if field(name) != value:
        print(f\"{name} is '{field(name)}', not '{value}'\")" "$@") && [ -z "$differing" ] || fail "job $1: $differing"
}

# expect_id ID ARGUMENT...: carma submit takes the job, which has this ID.
expect_id() {
    submitted=$1
    shift
    run submit --parsable "$@"
    expect_output "$submitted"
}

# sql STATEMENT...: prints the rows of the store $STATE; fails where one that changes rows changes none.
sql() {
    python3 -c 'import sqlite3, sys
with sqlite3.connect(sys.argv[1] + "/store.db") as db:
    for statement in sys.argv[2:]:
        done = db.execute(statement)
        for row in done:
            print(*row)
        assert done.rowcount, "nothing is changed by: " + statement' "$STATE" "$@"
}

# submitted ARGUMENT...: carma submit; prints the job's ID.
submitted() {
    "$CARMA" submit --parsable "$@" 2>"$T/err" </dev/null
}

# runs ID ARGUMENT...: as expect_id, and the job starts.
runs() {
    expect_id "$@"
    until_field "$1" state RUNNING
}

# cancel JOB...: cancels them and waits for their ends.
cancel() {
    run cancel "$@"
    run wait "$@"
}

# until_field ID NAME VALUE: waits for it. The job may not be there yet, and the daemon may be started again meanwhile.
until_field() {
    wait_for 'timeout "$PATIENCE_S" "$CARMA" wait --until "$2=$3" "$1" 2>"$T/until.err"' "$@" ||
        fail "job $1: $2 never is '$3': $(cat "$T/until.err")"
}

# until_crashed ID: waits for its first crash; by then it may have begun again and crashed more often.
until_crashed() {
    wait_for '[ "$(field "$1" crashes)" -gt 0 ]' "$@" || fail "job $1 does not crash"
}

# Nothing of this node may be left running after the test.
end_node() {
    [ -z "$daemon" ] || stop_daemon KILL
    for pid in $listener; do
        kill "$pid" 2>/dev/null
    done
    for _ in 1 2; do # what is killed may have started others meanwhile
        for pid in $(own_processes); do
            if [ "$pid" != $$ ] && grep -qF "CARMA_VNODE=$CARMA_VNODE" "/proc/$pid/environ" 2>/dev/null; then
                kill -KILL "$pid" 2>/dev/null
            fi
        done
    done
    [ "$failures" -eq 0 ] || cat "$T/daemon.log" >&2
}
