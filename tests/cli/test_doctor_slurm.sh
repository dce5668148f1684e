#!/bin/sh
# carma doctor --slurm beside a Slurm that is files below a root of the test's own, and a scontrol that prints others.
. "$(dirname "$0")/node.sh"
ROOT=$T/root
host=$(hostname)
host=${host%%.*}

# As it is when all hosts have the plugin.
name_plugin() {
    sed 's/^optional/required/' "$SOURCE/integrations/slurm/plugstack.conf.d/carma.conf" >"$ROOT/etc/slurm/plugstack.conf.d/carma.conf"
}

# A Slurm on which all is well.
sane_slurm() {
    rm -rf "$ROOT"
    mkdir -p "$ROOT/proc/70" "$ROOT/etc/slurm/plugstack.conf.d" "$ROOT/lib/slurm" "$T/fake"
    echo carma-slurm-age >"$ROOT/proc/70/comm"
    echo 'include /etc/slurm/plugstack.conf.d/*.conf' >"$ROOT/etc/slurm/plugstack.conf"
    echo 'optional other.so' >"$ROOT/etc/slurm/plugstack.conf.d/a.conf"
    name_plugin
    printf 'code carma_spank_for\0\10\5\26\0 code' >"$ROOT/lib/slurm/libcarma_spank.so" # 22.05.8, as slurm_version.h has it
    program "$ROOT/lib/carma-slurm-step" </dev/null
    cp "$SOURCE/integrations/slurm/gres.conf" "$ROOT/etc/slurm/"
    echo 'ConstrainDevices=yes' >"$ROOT/etc/slurm/cgroup.conf"
    cat >"$T/fake/config" <<END
Configuration data as of 2026-01-01T00:00:00
CliFilterPlugins        = lua
JobRequeue              = 1
JobSubmitPlugins        = lua
PluginDir               = /no/such:/lib/slurm
PlugStackConfig         = /etc/slurm/plugstack.conf
SLURM_CONF              = /etc/slurm/slurm.conf
SLURM_VERSION           = 22.05.8
TaskPlugin              = task/affinity,task/cgroup
END
    echo "NodeName=$host Arch=x86_64 Gres=gpumem:160G,gpubig:4(S:0-1) NodeAddr=$host State=IDLE Partitions=main,big" >"$T/fake/node"
    echo gres:gpumem:40960M,gres:gpubig:1,gres:gpuslot:2 >"$T/fake/gres"
    printf '%s\n' "$host" n2 n3 >"$T/fake/nodes"
    printf 'here\n' >"$T/fake/n2"
    printf 'here\n' >"$T/fake/n3"
    rm -f "$T/fake/jobs" "$T/fake/refusal"
}
mkdir -p "$T/fake/bin"
cat >"$T/fake/bin/scontrol" <<END
#!/bin/sh
[ -f "$T/fake/\$2" ] && { [ "\$2" = config ] || grep -q "^NodeName=\$3 " "$T/fake/\$2"; } && exec cat "$T/fake/\$2"
echo "slurm_load error: none of that" >&2
exit 1
END
cat >"$T/fake/bin/sbatch" <<END
#!/bin/sh
[ ! -f "$T/fake/refusal" ] || { cat "$T/fake/refusal" >&2; exit 1; }
echo "\$*" >>"$T/fake/jobs"
echo 77
END
cat >"$T/fake/bin/squeue" <<END
#!/bin/sh
[ "\$5" = 77 ] && cat "$T/fake/gres"
END
cat >"$T/fake/bin/scancel" <<END
#!/bin/sh
[ "\$*" = 77 ] && echo cancelled >>"$T/fake/jobs"
END
printf '#!/bin/sh\ncat "%s"\n' "$T/fake/nodes" >"$T/fake/bin/sinfo"
cat >"$T/fake/bin/ssh" <<END
#!/bin/sh
[ "\$5" = -- ] && exec cat "$T/fake/\$6"
END
chmod 755 "$T"/fake/bin/*
PATH=$T/fake/bin:$PATH

settings() {
    printf '%s\n' "state_directory = $STATE" "socket = $CARMA_SOCKET" "nvml_library = $PREFIX/lib/carma/vnode/libnvidia-ml.so.1" "$@" >carma.conf
}

# doctor: what it finds of Slurm, on this host or the node $named, one finding a line: "MARK CHECK: FOUND -> REMEDY".
named=
doctor() {
    run doctor --root "$ROOT" --config carma.conf --json "--slurm${named:+=$named}"
    python3 -c 'import json, sys
for one in json.load(sys.stdin)["checks"]:
    print(one["mark"], one["check"] + ":", one["found"], "->", one["remedy"])' <"$T/out" |
        grep -E '^[a-z]+ (Slurm|plugstack|job_submit|cli_filter|gpumem|gpubig)' >"$T/findings" || fail "$said: $(cat "$T/out" "$T/err")"
}
found() {
    for text in "$@"; do
        grep -qF -- "$text" "$T/findings" || fail "not found: '$text' in: $(cat "$T/findings")"
    done
}
# only TEXT...: doctor finds these, and all else is well.
only() {
    doctor
    found "$@"
    [ "$(grep -cv '^ok ' "$T/findings")" -eq $# ] || fail "more than $*: $(cat "$T/findings")"
}

start_node a100x4-40g 20
sane_slurm
settings 'engine = slurm'
start_daemon --config carma.conf
run doctor --root "$ROOT" --config carma.conf
grep -qE 'plugstack|gpumem' "$T/out" && fail "without --slurm it looks at Slurm: $(cat "$T/out")"
only
found 'ok Slurm engine: engine = slurm' 'ok Slurm gate: ' 'ok plugstack: /etc/slurm/plugstack.conf names libcarma_spank.so' \
    'ok Slurm plugin: /lib/slurm/libcarma_spank.so, for Slurm 22.05' 'ok job_submit: ' 'ok Slurm devices: ' 'ok Slurm agent: ' \
    "ok gpumem: Slurm counts 160.0 GiB on $host" 'ok gpubig: Slurm counts 4'

found "ok Slurm counts: partition main: a job with a GPU of its own is counted gres:gpumem:40960M" 'ok Slurm counts: partition big: ' \
    'ok Slurm hosts: 2 other nodes, all with' 'ok Slurm requeue: ' 'ok cli_filter: '
# A held job in each partition, taken back.
[ "$(grep -c cancelled "$T/fake/jobs")" = 2 ] || fail "jobs of doctor's: $(cat "$T/fake/jobs")"
grep -qE -- "--hold .*-p big -w $host --carma-exclusive" "$T/fake/jobs" || fail "$(cat "$T/fake/jobs")"

# ---- What is tried ----
echo gres:gpu:1 >"$T/fake/gres"
only 'fail Slurm counts: partition main: a job with --carma-exclusive is counted no gpumem (its GRES: gres:gpu:1)' \
    'fail Slurm counts: partition big: '
echo gres:gpumem:40960M >"$T/fake/gres"
only 'fail Slurm counts: partition main: a job with --carma-exclusive is counted no gpuslot' 'fail Slurm counts: partition big: '
echo gres:gpumem:80G,gres:gpuslot:2 >"$T/fake/gres"
only 'warn Slurm counts: partition main: job_submit.lua takes a GPU for 80.0 GiB; one of this node has 39.6 GiB -> correct GPU_GIB' \
    'warn Slurm counts: partition big: '
sane_slurm
echo 'sbatch: error: Invalid account' >"$T/fake/refusal"
only 'warn Slurm counts: partition main: not tried: sbatch --carma-exclusive: sbatch: error: Invalid account' 'warn Slurm counts: partition big'
sane_slurm
: >"$T/fake/n3"
only 'fail Slurm hosts: n3: no libcarma_spank.so there, and plugstack.conf says required'
sed -i 's/^required/optional/' "$ROOT/etc/slurm/plugstack.conf.d/carma.conf"
only 'warn Slurm hosts: n3: no libcarma_spank.so there -> '
echo here >"$T/fake/n3"
only 'warn Slurm hosts: 2 other nodes, all with libcarma_spank.so, and plugstack.conf says optional'
rm "$T/fake/n2"
only 'skip Slurm hosts: n2: not reached by ssh'

# ---- Settings, the agent ----
sane_slurm
settings 'engine = local' 'gate = memory'
only 'fail Slurm engine: engine = local' 'warn Slurm gate: gate = memory'
found '-> write engine = slurm into carma.conf' '-> write max_slowdown = 3 into carma.conf'
expect_status 1
settings 'engine = slurm'
echo carma-slurmd >"$ROOT/proc/70/comm"
only 'fail Slurm agent: carma-slurm-agent does not run'

# ---- The plugin ----
sane_slurm
sed -i 's/^required/# required/' "$ROOT/etc/slurm/plugstack.conf.d/carma.conf"
only 'fail plugstack: /etc/slurm/plugstack.conf does not name libcarma_spank.so'
echo 'required /opt/carma/libcarma_spank.so wait=8' >"$ROOT/etc/slurm/plugstack.conf"
only 'fail Slurm plugin: /opt/carma/libcarma_spank.so is not in '
sane_slurm
chmod 775 "$ROOT/lib/carma-slurm-step"
only "fail Slurm step: $ROOT/lib/carma-slurm-step is not root's alone"
chmod 644 "$ROOT/lib/carma-slurm-step"
only "fail Slurm step: $ROOT/lib/carma-slurm-step, which the plugin starts, is not executable"
found "-> chown root:root $ROOT/lib/carma-slurm-step && chmod 755 "
rm "$ROOT/lib/carma-slurm-step"
only "fail Slurm step: $ROOT/lib/carma-slurm-step, which the plugin starts, is missing"
sane_slurm
# One that includes itself ends.
echo 'include plugstack.conf' >"$ROOT/etc/slurm/plugstack.conf"
only 'fail plugstack: '
echo 'include plugstack.conf.d/c*.conf' >"$ROOT/etc/slurm/plugstack.conf" # beside the file that names it
name_plugin
only
for version in 23.02.1 22.11.0; do
    sed -i "s/^SLURM_VERSION .*/SLURM_VERSION           = $version/" "$T/fake/config"
    only "fail Slurm plugin: /lib/slurm/libcarma_spank.so was built with Slurm 22.05; $version is installed"
done
sed -i "s/^SLURM_VERSION .*/SLURM_VERSION           = 22.05.11/" "$T/fake/config"
only
printf 'carma_spank_for\0\10\5' >"$ROOT/lib/slurm/libcarma_spank.so"
only 'fail Slurm plugin: /lib/slurm/libcarma_spank.so does not say which Slurm'
rm "$ROOT/lib/slurm/libcarma_spank.so"
only 'fail Slurm plugin: libcarma_spank.so is not in /no/such:/lib/slurm'

# ---- The configuration ----
sane_slurm
sed -i 's/^JobRequeue .*/JobRequeue              = 0/; s/^CliFilterPlugins .*/CliFilterPlugins        = (null)/' "$T/fake/config"
only 'warn Slurm requeue: JobRequeue=0' 'warn cli_filter: CliFilterPlugins has no lua'
sane_slurm
sed -i 's/^JobSubmitPlugins .*/JobSubmitPlugins        = (null)/' "$T/fake/config"
only 'warn job_submit: JobSubmitPlugins has no lua'
sane_slurm
echo 'NodeName=x Name=gpu Type=a100 File=/dev/nvidia[0-3]' >>"$ROOT/etc/slurm/gres.conf"
only 'warn Slurm devices: ConstrainDevices=yes, and /etc/slurm/gres.conf gives gres/gpu files'
for file in 'ConstrainDevices=no' '# ConstrainDevices=yes'; do
    echo "$file" >"$ROOT/etc/slurm/cgroup.conf"
    only
done
echo 'constraindevices = Yes' >"$ROOT/etc/slurm/cgroup.conf"
only 'warn Slurm devices: '
sed -i 's/,task.cgroup//' "$T/fake/config"
only

# ---- Counts ----
sane_slurm
sed -i 's/gpumem:160G,gpubig:4/gpumem:320G,gpubig:8/' "$T/fake/node"
only 'warn gpumem: Slurm counts 320.0 GiB' 'warn gpubig: Slurm counts 8'
sed -i 's/gpumem:320G,gpubig:8/gpubig:4,gpumem:163840M/' "$T/fake/node"
only
sed -i 's/gpubig:4,gpumem:163840M/gpubig:4,gpumem:120G/' "$T/fake/node"
only 'warn gpumem: Slurm counts 120.0 GiB'
sed -i 's/Gres=[^ ]*/Gres=gpu:4/' "$T/fake/node"
only 'fail gpumem: Slurm counts no gpumem' 'warn gpubig: Slurm counts 0'
sane_slurm
sed -i "s/NodeName=$host/NodeName=gpu1/" "$T/fake/node"
only "fail Slurm: scontrol show node $host: slurm_load error: none of that -> name the node as Slurm does"
echo gpu1 >"$T/fake/nodes"
named=gpu1
only
# Slurm counts what is left of the GPUs.
"$PREFIX/bin/carma-vnode" inject gpu-lost --gpu 2
wait_for '"$CARMA" gpus | grep -q lost'
doctor
found 'warn gpumem: ' 'warn gpubig: Slurm counts 4 on gpu1, which has 3 GPUs'
sed -i 's/Gres=[^ ]*/Gres=gpumem:120G,gpubig:3/' "$T/fake/node"
only
stop_daemon
only 'skip gpumem: '
rm "$T/fake/config"
only 'fail Slurm: scontrol show config: slurm_load error: none of that -> '
