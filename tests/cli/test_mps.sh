#!/bin/sh
# Usage: test_mps.sh CARMA SOURCE BUILD [VERSION]
# Jobs under MPS with domains of carma's own on a virtual node, whose control program speaks the protocol VERSION (2): they
# come up when jobs need them, survive the daemon, are adopted, fault and recover, and go when nobody needs them.
# shellcheck source-path=SCRIPTDIR disable=SC1091
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/node.sh"
cd "$T" || exit 99
start_node a100x4-40g 100
ln -s "$BUILD/src/vnode/nvidia-cuda-mps-control" "$PREFIX/lib/carma/vnode"
CONTROL=$PREFIX/lib/carma/vnode/nvidia-cuda-mps-control
CUDA_MPS_PROTOCOL_VERSION=${4-2}
export CUDA_MPS_PROTOCOL_VERSION
DOMAINS=$T/mps

# start ARGUMENT...: with domains of carma's own.
start() {
    start_daemon --set mps_pipe_directory= --set mps_control="$CONTROL" --set share=mps --set memory_view=monitor \
        --set policy=round-robin --set settle=0s "$@"
}

# The control daemons and servers of this test that run.
controls() {
    for environment in /proc/[0-9]*/environ; do
        pid=${environment#/proc/}
        pid=${pid%/environ}
        case $(cat "/proc/$pid/comm" 2>/dev/null) in
        nvidia-cuda-mps*) grep -qF "CARMA_VNODE=$CARMA_VNODE" "$environment" 2>/dev/null && echo "$pid" ;;
        esac
    done
}

# until_controls COUNT: waits for so many of them, at most 20 s.
until_controls() {
    tries=0
    while count=$(controls | wc -l) && [ "$count" -ne "$1" ]; do
        tries=$((tries + 1))
        if [ "$tries" -gt 200 ]; then
            fail "$count control daemons and servers, not $1: $(controls | xargs -r ps -o pid,args -p)"
            return 1
        fi
        sleep 0.1
    done
}

start
# shellcheck disable=SC2016 # for the job's shell
run submit --parsable -W --mps-threads 50 --mps-memory-limit 12G -- sh -c \
    'echo "$CUDA_MPS_PIPE_DIRECTORY"; echo "$CUDA_MPS_LOG_DIRECTORY"; stat -c %a "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
     echo "$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT $CUDA_VISIBLE_DEVICES"'
expect_status 0
gpu=$(sed -n 5p carma-1.out | cut -d' ' -f3)
printf '%s\n' "$DOMAINS/$gpu/pipe" "$DOMAINS/$gpu/log" 755 755 "50 0=12288M $gpu" | diff - carma-1.out >&2 ||
    fail "the environment of a job under MPS"

finish_node
