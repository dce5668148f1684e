# For tests of leases: sourced after node.sh. Slurm's plugin is played by requests over the socket.
# shellcheck shell=sh disable=SC2034 # its variables are for the tests

# ask METHOD PATH [BODY]: status and answer into $status and $answer.
ask() {
    answer=$(python3 -B "$SOURCE/tests/cli/leases.py" "$CARMA_SOCKET" "$@")
    status=${answer%% *}
    answer=${answer#* }
}

# said MEMBER [TEXT]: of the last answer, or of the text.
said() {
    printf '%s' "${2-$answer}" | python3 -c 'import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1].split("."):
    value = value[int(key)] if key.isdigit() else value[key]
print(value)' "$1"
}

# expect STATUS WHAT
expect() {
    [ "$status" = "$1" ] || fail "$2: $status $answer"
}

# expect_ask STATUS WHAT METHOD PATH [BODY]
expect_ask() {
    asked_status=$1
    asked_what=$2
    shift 2
    ask "$@"
    expect "$asked_status" "$asked_what"
}

# end_task: the process $pid.
end_task() {
    kill "$pid"
    wait "$pid" 2>/dev/null
}

# lease JOB RESTART MEMORY_GIB [MORE]: asks for one; its id in $id.
lease() {
    ask POST /v1/leases "{\"engine\": \"slurm\", \"cluster\": \"c\", \"job\": $1, \"restart\": $2, \"node\": \"n1\",
        \"uid\": $(id -u), \"command\": \"python train.py --batch $1\", \"gpu_memory\": $(($3 << 30))${4-}}"
    id=none
    [ "$status" != 201 ] || id=$(said id)
}

# task ID STEP MEMORY_GIB [OPTION...]: a process that began before anybody knows of its lease comes to its step, and then
# uses the GPU; its pid in $pid. It leaves for good when the file is written.
task() {
    task_id=$1 task_step=$2 task_memory=$3
    shift 3
    gpu=$(said gpus.0)
    rm -f "$T/go-$task_id-$task_step"
    CUDA_VISIBLE_DEVICES=$gpu sh -c 'until [ -e "$1" ]; do sleep 0.02; done; shift; exec "$@"' sh \
        "$T/go-$task_id-$task_step" "$TRAIN" --memory "${task_memory}G" --seconds 100000 "$@" >"$T/task-$task_id-$task_step" 2>&1 &
    pid=$!
    ask PUT "/v1/leases/$task_id/steps/$task_step" "{\"pids\": [$pid]}"
    expect 204 "step $task_step of lease $task_id"
    : >"$T/go-$task_id-$task_step"
}
