# For system tests of MPS domains of carma's own: sourced after node.sh, on a node that was started.
# shellcheck shell=sh
ln -s "$BUILD/src/vnode/nvidia-cuda-mps-control" "$PREFIX/lib/carma/vnode"
CONTROL=$PREFIX/lib/carma/vnode/nvidia-cuda-mps-control
DOMAINS=$T/mps

# start ARGUMENT...: with domains of carma's own, for each user or as $SHARE says.
start() {
    start_daemon --set policy=first-fit --set memory_view=monitor --set memory_floor=1G --set settle=0s \
        --set mps_pipe_directory= --set mps_control="$CONTROL" --set share="${SHARE-mps}" "$@"
}

# The control daemons and servers of this test that run.
controls() {
    grep -ls '^nvidia-cuda-mps' /proc/[0-9]*/comm | while read -r name; do
        pid=${name#/proc/}
        pid=${pid%/comm}
        ! grep -qF "CARMA_VNODE=$CARMA_VNODE" "/proc/$pid/environ" 2>/dev/null || echo "$pid"
    done
}

# until_controls COUNT: waits for COUNT of them.
until_controls() {
    wait_for '[ "$(controls | wc -l)" -eq "$1" ]' "$@" ||
        fail "not $1 control daemons and servers: $(controls | xargs -r ps -o pid,args -p)"
}

# The table of clients of the domain $domain.
client_table() {
    echo ps | CUDA_MPS_PIPE_DIRECTORY=$DOMAINS/$domain/pipe "$CONTROL"
}

# until_clients COUNT: waits for COUNT of them.
until_clients() {
    wait_for '[ "$(client_table | sed 1d | wc -l)" -eq "$1" ]' "$@" || fail "not $1 clients of $domain: $(client_table)"
}
