#!/bin/sh
# A job with --visible-devices index, or the setting, uses the GPUs that carma gave it: by time-slicing without and
# behind the device filter, and under MPS. Where an index cannot be right it has UUIDs, and carma show says why.
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 100
. "$SOURCE/tests/cli/mps.sh"

# The GPUs on which a process holds so many MiB, by the node's own word.
used() {
    "$PREFIX/bin/carma-vnode" show |
        awk -v memory=" $1 MiB" '/^GPU/ {uuid = $NF} /^  process/ && index($0, memory) {print uuid}' | sort
}

# The node's UUIDs by its indices, one a line.
on_node() {
    "$PREFIX/bin/carma-vnode" show | awk '/^GPU/ {print $NF}'
}

# indices LIST UUIDS: the places of the UUIDs in the file LIST, with commas.
indices() {
    echo "$2" | tr , '\n' | while read -r uuid; do echo $(($(grep -nxF "$uuid" "$1" | cut -d: -f1) - 1)); done | paste -sd,
}

# gives MIB OPTION...: a job of two GPUs that takes so much on each, in steps of 32 as use is recorded. It uses those
# that it was given. What its CUDA_VISIBLE_DEVICES is goes to $visible, their UUIDs to $uuids, its number to $id.
gives() {
    mib=$1
    shift
    run submit --parsable -G 2 --gpu-memory "${mib}M" -o out.%j "$@" -- sh -c \
        'echo "$CUDA_VISIBLE_DEVICES $CARMA_GPU_UUIDS"; exec "$0" --gpus 2 --memory "$1M" --sm-activity 0.1 --seconds 100000' \
        "$TRAIN" "$mib"
    id=$(cat "$T/out")
    until_field "$id" placements.1.observed_bytes $((mib << 20))
    read -r visible uuids <"out.$id"
    [ "$(used "$mib")" = "$(echo "$uuids" | tr , '\n' | sort)" ] || fail "job $id ($visible) uses $(used "$mib"), not $uuids"
    jobs="$jobs $id"
}

is() {
    [ "$visible" = "$1" ] || fail "job $id, $uuids: CUDA_VISIBLE_DEVICES is '$visible', not '$1'"
}

# begin_daemon ARGUMENT...: with a job that has a GPU of its own, so that the others' first one is not the node's.
begin_daemon() {
    start_daemon "$@"
    jobs=$(submitted --exclusive -- sleep 100000)
    until_field "$jobs" state RUNNING
}

end_daemon() {
    # shellcheck disable=SC2086
    run cancel $jobs
    # shellcheck disable=SC2086
    run wait $jobs
    stop_daemon
}

# Jobs that can open all GPUs count the node's.
begin_daemon --set device_cgroup=off
on_node >list
gives 3008 --visible-devices index
is "$(indices list "$uuids")"
[ "$visible" != 0,1 ] || fail "the test shows nothing: job $id has the node's first GPUs"
gives 3104
is "$uuids"
expect_field "$id" uuids_why null
end_daemon
"$PREFIX/bin/carma-vnode" inject reindex # as after a change of cards: carma's own numbers stay
begin_daemon --set device_cgroup=off --set visible_devices=index
on_node >list
gives 3200
is "$(indices list "$uuids")"
gives 3296 --visible-devices uuid
is "$uuids"
end_daemon

# Behind the device filter they count their own.
if [ "$(id -u)" -eq 0 ]; then
    mkdir "$CARMA_VNODE.dev"
    for minor in 0 1 2 3; do
        mknod -m 666 "$CARMA_VNODE.dev/nvidia$minor" c 195 $minor || exit 99
    done
fi
begin_daemon --set visible_devices=index
if grep -q "jobs can open the device nodes of all GPUs: ." "$T/daemon.log"; then
    sed -n 's/.*carmad: \(jobs can open.*\)/skipped: \1/p' "$T/daemon.log"
else
    gives 3392
    on_node | grep -xF "$(echo "$uuids" | tr , '\n')" >own
    is "$(indices own "$uuids")"
fi
end_daemon

# Under MPS they count in the list of their server.
begin_daemon --set mps_pipe_directory= --set mps_control="$CONTROL" --set share=mps --set visible_devices=index
gives 3488
tr , '\n' <"$(echo "$DOMAINS"/uid-*/gpus)" >list
if grep -qF "$(head -1 list)" "out.$id" && grep -qF "$(sed -n 2p list)" "out.$id"; then # that shows nothing: UUIDs are random
    cancel "$id"
    run submit --parsable --exclusive -- sleep 100000
    jobs="$jobs $(cat "$T/out")"
    gives 3488
fi
is "$(indices list "$uuids")"
end_daemon

# keeps_uuids WHY OPTION...: a job that asks for indices in vain.
keeps_uuids() {
    why=$1
    shift
    id=$(submitted -W -o out.%j "$@" -- sh -c 'echo "$CUDA_VISIBLE_DEVICES $CARMA_GPU_UUIDS"')
    read -r visible uuids <"out.$id"
    is "$uuids"
    shows "^Devices  *by UUID in CUDA_VISIBLE_DEVICES, not by index: $why" show "$id"
}

start_daemon --set share=mps --set visible_devices=index # mps_pipe_directory is the administrator's
keeps_uuids "the GPUs of the administrator's MPS daemon"
stop_daemon
CARMA_VNODE=$T/mig
STATE=$T/mig-state
start_all a100x2-mig 100 --set visible_devices=index --set device_cgroup=off
keeps_uuids "a MIG instance has no index" --gpu-memory 2G --exclude-gpu 3
keeps_uuids "a GPU in MIG mode changes the indices" --gpu-memory 30G
run submit --visible-devices number -- true
grep -q "visible_devices 'number' is not known: uuid or index" "$T/err" || fail "a wrong word: $(cat "$T/err")"
