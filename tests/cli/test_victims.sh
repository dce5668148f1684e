#!/bin/sh
# Jobs under MPS on a virtual node: a fault of one ends all, and its cause is found.
. "$(dirname "$0")/node.sh"
start_node h200x1 100

# says ID TEXT: its message does.
says() {
    field "$1" message | grep -qF -e "$2" || fail "job $1 says '$(field "$1" message)', not '$2'"
}

# Under MPS: the first job that ends with a kernel's fault caused it; the others are its victims, and run again.
ln -s "$BUILD/src/vnode/nvidia-cuda-mps-control" "$PREFIX/lib/carma/vnode"
start_daemon --set mps_pipe_directory= --set mps_control="$PREFIX/lib/carma/vnode/nvidia-cuda-mps-control" --set share=mps \
    --set policy=round-robin --set memory_view=monitor --set settle=0s --set decide_period=0s
one=$(submitted -- "$TRAIN" --memory 2G --sm-activity 0.2 --seconds 400)
two=$(submitted -- "$TRAIN" --memory 2G --sm-activity 0.2 --seconds 400)
until_field "$one" placements.0.observed_bytes $((2 << 30))
until_field "$two" placements.0.observed_bytes $((2 << 30))
culprit=$(submitted -- "$TRAIN" --memory 2G --sm-activity 0.2 --seconds 400 --fail illegal-access)
ends 1 wait "$culprit"
expect_field "$culprit" state FAILED exit_cause failed
says "$culprit" 'CUDA error: '
until_field "$one" exit_cause mps_fault
until_field "$two" exit_cause mps_fault
expect_ok wait "$one" "$two"
for victim in "$one" "$two"; do
    expect_field "$victim" attempts 2 crashes 0
done

# Both say the same, and the server was never seen to have failed: the second is a victim once, and then its own.
fault='echo "RuntimeError: CUDA error: unspecified launch failure"; exit 1'
after() { # FILE: a job that fails once the file is there
    run submit --parsable -- sh -c "until [ -e '$T/$1' ]; do sleep 0.05; done; $fault"
    cat "$T/out"
}
later=$(after first-ended)
first=$(after both-run)
until_field "$later" state RUNNING
until_field "$first" state RUNNING
touch "$T/both-run"
run wait "$first"
touch "$T/first-ended"
run wait "$later"
expect_field "$first" attempts 1 exit_cause failed
expect_field "$later" attempts 2 exit_cause failed
