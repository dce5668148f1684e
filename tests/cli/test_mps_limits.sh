#!/bin/sh
# The memory limit of a job of several GPUs under MPS, on drivers of both kinds: for processes that see all its GPUs.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/mps.sh"

# What launchers do with CUDA_VISIBLE_DEVICES before they start processes, and how many GPUs these then see.
program narrow <<'EOF'
#!/bin/sh
# narrow HOW: a process of a job that takes 10 GiB on the GPUs that it sees, of which its limit is 6.
all=$CUDA_VISIBLE_DEVICES
case $1 in
all) ;;
reversed) CUDA_VISIBLE_DEVICES=$(echo "$all" | tr , '\n' | tac | paste -sd,) ;;
one) CUDA_VISIBLE_DEVICES=${all##*,} ;;
half) CUDA_VISIBLE_DEVICES=$(echo "$all" | cut -d, -f"1-$(($(echo "$all" | tr , '\n' | wc -l) / 2))") ;;
none) CUDA_VISIBLE_DEVICES= ;;
esac
export CUDA_VISIBLE_DEVICES
count=$(echo "$CUDA_VISIBLE_DEVICES" | tr , '\n' | grep -c .)
"$TRAIN" --gpus "$((count ? count : 1))" --memory 10G --sm-activity 0.1 --seconds 30 >said 2>&1
case $?,$(cat said) in
0,*) echo unlimited ;;
*"out of memory"*) echo limited ;;
*" 0 visible"*) echo blind ;;
*) cat said ;;
esac
EOF
export TRAIN

for driver in 555.58.02 615.71.09; do
    CARMA_VNODE=$T/node-$driver
    STATE=$T/state-$driver
    start_node "$(profile_of "$driver")" 100
    start
    job=0
    for gpus in 1 2 4; do
        for how in all reversed one half none; do
            [ "$gpus,$how" != 1,half ] || continue
            job=$((job + 1))
            run submit --parsable -W -G "$gpus" --gpu-memory 12G --mps-memory-limit 6G -- ./narrow "$how"
            case $gpus,$how in
            *,none) wanted=blind ;;
            1,* | *,all | *,reversed) wanted=limited ;;
            *) wanted=unlimited ;;
            esac
            [ "$(cat carma-$job.out)" = $wanted ] ||
                fail "driver $driver, $gpus GPUs, $how: $(cat carma-$job.out), not $wanted"
            shows '^Memory limit  *6.0 GiB per GPU, for each process (enforced by MPS; set by ' show $job
            said=$(grep -c "^  *not in force for a process that narrows .* for those that see all $gpus GPUs" "$T/out")
            [ "$said" = $((gpus > 1)) ] || fail "driver $driver, $gpus GPUs: $(cat "$T/out")"
        done
    done
    stop_daemon
    until_controls 0
done
