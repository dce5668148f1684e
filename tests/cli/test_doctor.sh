#!/bin/sh
# Usage: test_doctor.sh CARMA SOURCE BUILD FAKE_NVML FAKE_DCGM
# carma doctor on a virtual node and below a root of the test's own, with each fault that it is to find.
FAKE_NVML_LIBRARY=$(realpath "$4") || exit 99
FAKE_DCGM_LIBRARY=$(realpath "$5") || exit 99
. "$(dirname "$0")/node.sh"
unset FAKE_NVML FAKE_DCGM

# A system on which all is well. Its files are the test's, its processes those that are put there.
ROOT=$T/root
sane_root() {
    rm -rf "$ROOT"
    mkdir -p "$ROOT/proc/self/ns" "$ROOT/proc/driver/nvidia" "$ROOT/proc/70" "$ROOT/run/systemd/system" "$ROOT/etc/systemd/system" \
        "$ROOT/sys/fs/cgroup/system.slice"
    echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024' \
        >"$ROOT/proc/driver/nvidia/version"
    echo 'RmProfilingAdminOnly: 0' >"$ROOT/proc/driver/nvidia/params"
    echo nvidia-persiste >"$ROOT/proc/70/comm"
    printf '0::/system.slice\n' >"$ROOT/proc/self/cgroup"
    echo 'cpuset cpu io memory hugetlb pids' >"$ROOT/sys/fs/cgroup/system.slice/cgroup.controllers"
    printf '1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:2 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n' \
        >"$ROOT/proc/self/mountinfo"
    echo 'proc /proc proc rw 0 0' >"$ROOT/proc/self/mounts"
    ln -s 'pid:[4026531836]' "$ROOT/proc/self/ns/pid"
    touch "$ROOT/etc/systemd/system/carmad.service"
}
mps_daemon() { # PID COMMAND-LINE ENVIRONMENT, as printf writes them
    mkdir "$ROOT/proc/$1"
    echo nvidia-cuda-mps >"$ROOT/proc/$1/comm"
    # shellcheck disable=SC2059
    printf "$2" >"$ROOT/proc/$1/cmdline"
    # shellcheck disable=SC2059
    printf "$3" >"$ROOT/proc/$1/environ"
}
settings() {
    printf '%s\n' "state_directory = $STATE" "socket = $CARMA_SOCKET" "nvml_library = $library" "$@" >carma.conf
}
library=$PREFIX/lib/carma/vnode/libnvidia-ml.so.1

# doctor STATUS: its findings, one a line: "MARK CHECK: FOUND -> REMEDY".
doctor() {
    run doctor --root "$ROOT" --config carma.conf --json
    expect_status "$1"
    python3 -c 'import json, sys
answer = json.load(sys.stdin)
assert answer["ok"] is (sys.argv[1] == "0")
for one in answer["checks"]:
    print(one["mark"], one["check"] + ":", one["found"], "->", one["remedy"])' "$1" <"$T/out" >"$T/findings" ||
        fail "$said: $(cat "$T/out")"
}

# found TEXT...: a finding has each.
found() {
    for text in "$@"; do
        grep -qF -- "$text" "$T/findings" || fail "not found: '$text' in: $(cat "$T/findings")"
    done
}
finds() { # STATUS TEXT...: doctor, and what it has found
    doctor "$1"
    shift
    found "$@"
}
absent() {
    ! grep -F -- "$1" "$T/findings" || fail "found: $1"
}

start_node a100x4-40g 10
sane_root
settings
ulimit -n 4096 2>/dev/null

# Nothing fails. Without a daemon that is told, and no more.
mkdir -m 700 "$STATE"
finds 0 'ok settings: carma.conf' "warn daemon: $CARMA_SOCKET: no daemon listens there" \
    "ok driver: 550.54.15, NVML 12.550.54.15, " 'ok GPUs: 4 x NVIDIA A100-SXM4-40GB' 'ok persistence: on' \
    'ok compute mode: default' 'ok ECC: no uncorrected' 'ok metrics: by gpm: sm_activity, ' 'ok profiling: for all users' \
    "ok state: $STATE" 'ok file system: ext4, mounted on /' 'skip store: ' 'ok cgroups: version 2; ' 'ok job limits: ' \
    'ok processes: those of the host' 'ok service: /etc/systemd/system/carmad.service' 'ok persistenced: ' 'ok open files: '
absent 'fail '
shows '^0 checks fail, ' doctor --root "$ROOT" --config carma.conf
expect_error 2 'takes no arguments' doctor now

# With one, it reports its version, its store, and its readings.
start_daemon --config carma.conf
run submit --parsable --hold -- true
doctor 0
mode=0600 # of a user's own daemon
[ "$(id -u)" -ne 0 ] || mode=0666
found "ok daemon: answers at $CARMA_SOCKET, version " "ok socket: $CARMA_SOCKET, mode $mode" 'ok store: ' ' records'
"$PREFIX/bin/carma-vnode" inject xid --gpu 1 --xid 31
wait_for '"$CARMA" gpus --json | grep -q "\"code\": 31"' || fail "the daemon sees no Xid"
finds 0 'warn Xid: GPU 1: Xid 31, 1 since carmad began'
stop_daemon

# ---- Settings ----
settings 'policy = carma' 'polcy = carma'
finds 1 'fail settings: carma.conf:5: ' polcy
settings 'window = soon'
finds 1 'fail settings: carma.conf:4: ' soon
settings 'admin_group = no-such-group'
finds 0 "warn admin group: admin_group 'no-such-group': there is no such group"
settings "listen = 127.0.0.1:8471"
finds 1 'fail settings: carma.conf: ' token
ends 1 doctor --root "$ROOT" --config "$T/not-there"
settings

# Where the settings have a socket of their own, the daemon is looked for there.
kept=$CARMA_SOCKET
unset CARMA_SOCKET
touch "$T/file"
sed -i "s|^socket = .*|socket = $T/file|" carma.conf
finds 1 "$T/file: no daemon listens there" "fail socket: $T/file is not a socket"
CARMA_SOCKET=$kept
export CARMA_SOCKET
settings

# ---- GPUs ----
"$PREFIX/bin/carma-vnode" inject gpu-lost --gpu 2
finds 1 'ok GPUs: 3 x NVIDIA' 'fail GPUs: GPU 2: GPU is lost -> drain the node'
"$PREFIX/bin/carma-vnode" clear
"$PREFIX/bin/carma-vnode" inject no-permission
finds 0 'warn metrics: sm_activity is NVML'"'"'s utilisation, an upper bound, on 4 of 4: no permission' \
    'warn metrics: not to be had on all: ' 'run carmad as root'
"$PREFIX/bin/carma-vnode" clear
"$PREFIX/bin/carma-vnode" inject hang
finds 1 'fail driver: hangs as '
"$PREFIX/bin/carma-vnode" clear
library=$FAKE_NVML_LIBRARY
settings
FAKE_NVML=init=18
export FAKE_NVML
finds 1 'fail driver: NVML (' 'kernel module 550.54.15 -> the driver was updated under a running module'
FAKE_NVML=init=9
finds 1 '-> modprobe nvidia'
FAKE_NVML=persistence=0,mode-of-1=3,ecc=2
finds 0 'ok driver: 560.1.2' 'warn persistence: off on GPU 0, 1 ->' 'warn compute mode: EXCLUSIVE on GPU 1 ->' \
    'warn ECC: uncorrected errors since the driver was loaded on GPU 0, 1'
FAKE_NVML=compute-mode=2
finds 1 'fail compute mode: PROHIBITED on GPU 0, 1'
FAKE_NVML=count=0
finds 1 'fail GPUs: the driver sees none'
FAKE_NVML=crash=1
finds 1 'fail metrics: '
FAKE_NVML=noisy,mig
finds 0 'ok ECC: no uncorrected' 'ok MIG: 1 of the GPUs in MIG mode, 2 instances'
unset FAKE_NVML
library=/no/such/library.so
settings
finds 1 'fail driver: kernel module 550.54.15 is loaded, but cannot load the NVML library /no/such/library.so'
rm "$ROOT/proc/driver/nvidia/version"
finds 1 'fail driver: no kernel module is loaded; '
absent persistenced

# Without GPM, DCGM stands in; it is named where it does.
rm -f "$CARMA_VNODE"
"$PREFIX/bin/carma-vnode" create "$CARMA_VNODE" --profile a100x4-40g-nogpm >/dev/null
library=$PREFIX/lib/carma/vnode/libnvidia-ml.so.1
sane_root
settings "dcgm_library = $T/no-such-dcgm.so"
finds 0 'warn metrics: sm_activity is NVML'"'"'s utilisation'
settings "dcgm_library = $FAKE_DCGM_LIBRARY"
FAKE_DCGM=vnode
export FAKE_DCGM
finds 0 'ok metrics: by dcgm: sm_activity, '
absent 'utilisation'
unset FAKE_DCGM

rm -f "$CARMA_VNODE"
"$PREFIX/bin/carma-vnode" create "$CARMA_VNODE" --profile a100x2-mig >/dev/null
settings "dcgm_library = $T/no-such-dcgm.so"
finds 0 'ok MIG: 1 of the GPUs in MIG mode, 3 instances' "an upper bound, on 1 of 4: " 'warn metrics: not to be had on all: sm_activity, '

# ---- The system ----
echo 'RmProfilingAdminOnly: 1' >"$ROOT/proc/driver/nvidia/params"
rm "$ROOT/proc/70/comm" "$ROOT/etc/systemd/system/carmad.service" "$ROOT/proc/self/ns/pid"
ln -s 'pid:[4026532999]' "$ROOT/proc/self/ns/pid"
printf '2:memory:/user.slice\n1:name=systemd:/user.slice\n' >"$ROOT/proc/self/cgroup"
mps_daemon 90 '/usr/bin/nvidia-cuda-mps-control\0-d\0' 'A=b\0CUDA_MPS_PIPE_DIRECTORY=/tmp/theirs\0'
mps_daemon 91 'nvidia-cuda-mps-control\0-d\0' "CUDA_MPS_PIPE_DIRECTORY=${CARMA_SOCKET%/*}/mps/0/pipe\\0"
settings 'share = mps' "mps_control = $T/no-mps"
(ulimit -Sn 1024 && doctor 1 && [ "$failures" -eq 0 ]) || fail "with few files: see above"
found 'warn persistenced: ' 'warn service: systemd has no carmad.service' 'warn processes: a PID namespace of its own' \
    'warn cgroups: version 1 only' "fail MPS: share = mps, and there is no $T/no-mps" \
    "warn MPS daemons: 1 not of carma's: pid 90 (/tmp/theirs)" 'NVreg_RestrictProfilingToAdminUsers=1' \
    'warn open files: 1024 at most'
settings 'share = mps' "mps_control = $BUILD/src/vnode/nvidia-cuda-mps-control" 'mps_pipe_directory = /tmp/theirs'
printf 'proc /proc proc rw,hidepid=invisible 0 0\n' >"$ROOT/proc/self/mounts"
printf '0::/system.slice\n1:memory:/\n' >"$ROOT/proc/self/cgroup"
echo 'cpuset hugetlb pids' >"$ROOT/sys/fs/cgroup/system.slice/cgroup.controllers"
rm "$ROOT/proc/self/ns/pid"
rm -r "$ROOT/run/systemd"
finds 0 'ok MPS: ' "ok MPS daemons: 1 of carma's, 1 others: pid 90" 'version 2 beside version 1' 'skip service: '
if [ "$(id -u)" -eq 0 ]; then
    found 'in spite of hidepid=2'
else
    found 'warn processes: /proc is mounted with hidepid=2'
fi

# ---- The state ----
sane_root
settings
printf '1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / %s rw - xfs /dev/sdb rw\n3 1 0:9 / %s rw - nfs4 server:/x rw\n4 1 0:9 / %sx rw - xfs /dev/sdb rw\n' \
    "$T" "$STATE" "$STATE" >"$ROOT/proc/self/mountinfo"
finds 1 "fail file system: $STATE is on $STATE (nfs4), a network's"
printf '1 0 8:1 / / rw - tmpfs tmpfs rw\n' >"$ROOT/proc/self/mountinfo"
finds 0 'warn file system: ' 'a reboot forgets all jobs'
sane_root
chmod 777 "$STATE"
finds 1 'fail state: ' 'others may write it -> chmod go-w it'
chmod 700 "$STATE"
cp "$STATE/store.db" store.db
sql "PRAGMA user_version = 900"
finds 0 'warn store: ' 'has form 900, this carma knows up to'
head -c 5000 store.db >"$STATE/store.db"
rm -f "$STATE/store.db-wal" "$STATE/store.db-shm"
finds 1 'fail store: ' 'put a backup in its place'
rm -rf "$STATE"
touch "$STATE"
finds 1 'fail state: ' 'is not a directory'
rm "$STATE"
finds 0 "skip state: $STATE is not there: carmad makes it"
[ ! -e "$STATE" ] || fail "carma doctor made $STATE"

# A full disk, and one that cannot be written.
if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
    mkdir small
    sed "s|^state_directory.*|state_directory = $T/small/state|" carma.conf >small.conf
    unshare --mount --propagation private sh -c 'mount -t tmpfs -o size=1m none small && mkdir -m 700 small/state && mount -o remount,ro small &&
        exec "$@"' sh "$CARMA" doctor --root "$ROOT" --config small.conf --json >"$T/findings" 2>&1
    found 'MiB free' 'make room' 'Read-only file system'
fi

# The sandbox of automatic captures: this machine's, which may have one or not, and the program's answer.
run doctor --config carma.conf --json
python3 -c 'import json, sys
marks = [check["mark"] for check in json.load(open(sys.argv[1]))["checks"] if check["check"] == "auto capture"]
sys.exit(marks not in (["ok"], ["warn"]))' "$T/out" || fail "$said: $(cat "$T/out")"
rm "$PREFIX/lib/carma/carma-sandbox"
printf '#!/bin/sh\n[ "$1" = --check ] && echo "no mounts: allow them" >&2\nexit 2\n' >"$PREFIX/lib/carma/carma-sandbox"
chmod 755 "$PREFIX/lib/carma/carma-sandbox"
COLUMNS=400 run doctor --config carma.conf
expect_out 'auto capture.*no sandbox: no mounts: allow them'

# Names of others are escaped.
mps_daemon 92 'nvidia-cuda-mps-control\0' 'CUDA_MPS_PIPE_DIRECTORY=/tmp/\033[2J\0'
run doctor --root "$ROOT" --config carma.conf
grep -qF 'pid 92 (/tmp/\x1b[2J)' "$T/out" || fail "$said: $(cat "$T/out")"
