#!/bin/sh
# Jobs' limits of memory, processors, processes. Without groups of version 2 only messages and refusals are checked.
. "$(dirname "$0")/node.sh"
start_node h200x1 1
start_daemon --set settle=0s --set job_memory_max=256M --set job_pids_max=500 --set job_cpu_weight=20

small=$(submitted --memory 64M --cpus 1 -- sleep 1000)
expect_field "$small" host_memory_bytes $((64 << 20)) cpus 1
shows 'Host limits  *64 MiB of memory, 1 CPU\(, not in force: control group .*\)\{0,1\}$' show "$small"
printf '#!/bin/sh\n#CARMA --memory 65M --cpus 1\nsleep 1000\n' >script.sh
printf 'sleep 1000\nmemory: 66M\ncpus: 1\n' >job.rad
run submit --parsable script.sh job.rad
{ read -r script && read -r rad; } <"$T/out"
expect_field "$script" host_memory_bytes $((65 << 20)) cpus 1
expect_field "$rad" host_memory_bytes $((66 << 20)) cpus 1

# Nonsense, and values beyond the maximum, are refused with one line.
for words in '--memory 16' '--memory 1M' '--memory x' '--cpus 0' '--cpus 1.5' '--cpus 5000'; do
    # shellcheck disable=SC2086
    ends 2 submit $words -- true
    [ "$(grep -c -e "${words%% *}" "$T/err")" = 1 ] || fail "$words: $(cat "$T/err")"
done
ends 1 submit --memory 1G -- true
grep -qF -e '--memory: 1.0 GiB of host memory is more than one job may have here, 256 MiB (job_memory_max): ask for less' \
    "$T/err" || fail "--memory 1G: $(cat "$T/err")"
expect_error 1 "--cpus: 4000 are more processors than this server has, " submit --cpus 4000 -- true
grep -q '^carma: --cpus' "$T/err" || fail "one job is numbered: $(cat "$T/err")"
printf 'true\nmemory: 3\n' >bad.rad
run submit bad.rad
grep -q '^[^:]*: *bad.rad:2: memory: ' "$T/err" || fail "bad.rad: $(cat "$T/err")"

# Where the kernel does not keep to it, one line says so, once.
said=$(grep -c 'limit no job here' "$T/daemon.log")
until_field "$small" state RUNNING
group=$(sed -n 's/^cgroup //p' "$STATE/runs/$small-1-1/status")
mount=$(sed -n 's/.* \([^ ]*\) [^ ]* - cgroup2 .*/\1/p' /proc/self/mountinfo | head -n 1)
if [ "$said" -eq 1 ]; then
    echo "no limits here: $(grep 'limit no job here' "$T/daemon.log")"
elif [ "$said" -ne 0 ] || [ -z "$group" ]; then
    fail "said $said times, group '$group': $(cat "$T/daemon.log")"
else
    for row in "memory.max $((64 << 20))" 'memory.swap.max 0' 'pids.max 500' 'cpu.weight 20' 'cpu.max 100000 100000'; do
        value=$(cat "$mount$group/${row%% *}" 2>&1)
        [ "$value" = "${row#* }" ] || [ "${row%% *}" = memory.swap.max ] || fail "${row%% *} is $value, not ${row#* }"
    done
    run cancel "$small" "$script" "$rad" # the GPU is for the next one
    greedy=$(submitted -- python3 -c 'bytearray(600 << 20)')
    until_field "$greedy" state FAILED
    expect_field "$greedy" exit_cause host_oom message \
        'out of host memory: the kernel killed it, its limit is 256 MiB (--memory, job_memory_max)'
fi
stop_daemon
CARMA_CGROUP_ROOT=$T/no-groups start_daemon
warns 'warning: --memory and --cpus are not in force here: ' submit --memory 64M -- true
run submit -- true
[ ! -s "$T/err" ] || fail "$said: warns of nothing: $(cat "$T/err")"
shows '^Host limits  *64 MiB of memory, 1 CPU, not in force: ' show "$small"

# The host's memory is given out once.
stop_daemon
start_daemon --set max_host_memory=100M
ends 1 submit --memory 1G -- true
grep -qF "1.0 GiB of the host's memory needed (--memory), jobs have 0 B of at most 100 MiB (max_host_memory)" "$T/err" ||
    fail "$said: $(cat "$T/err")"

# A job without a GPU sees none, starts at once beside a full one, and uses none; so many run at a time.
stop_daemon
start_daemon --set max_jobs_without_gpu=1 --set settle=0s
run cancel "$small" "$script" "$rad" # where they were not before
whole=$(submitted --exclusive --gpu-type '>=140G&H200' -- sleep 1000)
none=$(submitted -G 0 -o none.txt -- sh -c 'echo "sees <$CUDA_VISIBLE_DEVICES>"; sleep 1000')
next=$(submitted -G 0 -- true)
until_field "$whole" state RUNNING
until_field "$none" state RUNNING
wait_for 'grep -qx "sees <>" none.txt'
expect_field "$next" reason.text '1 job without a GPU run, the limit (max_jobs_without_gpu)'
shows "^ *$none .* R  *0  .*  no GPU\$" queue
shows '^GPUs  *none: it sees none' show "$none"
cancel "$none"
until_field "$next" state COMPLETED
expect_field "$none" gpu_ns 0
for row in '-G 0 --gpu-memory 4G|--gpu-memory is about GPUs' '--gpu-type a100|its GPUs are 1 x NVIDIA H200 ' '--gpu-type >=40|compares with no size' \
    '--exclude-gpu 0|1 GPU needed of those of --exclude-gpu 0, the node has 0' '--exclude-gpu 0-0|those of --exclude-gpu 0, the node has 0' '--exclude-gpu 0-7|there is no GPU 7 here' '--exclude-gpu x|is no GPU'; do
    # shellcheck disable=SC2086
    run submit ${row%%|*} -- true
    grep -qF -e "${row#*|}" "$T/err" || fail "$said: $(cat "$T/err")"
done
