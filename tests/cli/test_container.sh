#!/bin/sh
# --container by Podman without root's rights: the container is the job's, in user, places, variables, signals, end and
# control group. Its image is made of this machine's own programs.
. "$(dirname "$0")/users.sh"
command -v podman >/dev/null || skip "podman is not installed"
homes
export XDG_RUNTIME_DIR="$T/alice/run"
as alice mkdir "$XDG_RUNTIME_DIR" root
# Where version 1 is mounted beside it, crun does not go on.
[ ! -d /sys/fs/cgroup/unified ] || { umount -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup; } || skip "no control groups"
mkdir -p image/bin image/tmp
for name in sh cat id sleep touch stat; do
    program=$(command -v $name)
    cp -L "$program" image/bin
    for library in $(ldd "$program" | grep -o '/[^ ]*'); do
        mkdir -p "image${library%/*}" && cp -L "$library" "image$library"
    done
done
tar -C image -cf - . | as alice podman --cgroup-manager=cgroupfs import - localhost/own >"$T/out" 2>"$T/err" ||
    skip "podman imports nothing here: $(tail -n 1 "$T/err")"
as alice podman --cgroup-manager=cgroupfs run --rm --cgroups=disabled --network=host --ulimit=nofile=512:512 --ulimit=nproc=512:512 \
    localhost/own true >"$T/out" 2>"$T/err" || [ $? -eq 127 ] || skip "podman runs nothing here: $(tail -n 1 "$T/err")"
start_all a100x4-40g 1 --set grace=20s

# contained ID STATE EXIT_STATUS LINES: a script of these; what it writes is in "$T/alice/ID".
contained() {
    printf '#!/bin/sh\n%s\n' "$4" | as alice "$CARMA" submit --wait -o %j --container localhost/own - >"$T/out" 2>"$T/err"
    expect_field "$1" state "$2" exit_status "$3" message null
}
contained 1 COMPLETED 0 'pwd; echo "$HOME"; echo "$CUDA_VISIBLE_DEVICES"; echo "${XDG_RUNTIME_DIR-none}"
    test -e /etc/passwd || echo an image; touch made'
uuid=$(as alice "$CARMA" gpus --json | sed -n 's/^ *"uuid": "\(GPU-[^"]*\)".*/\1/p' | head -n 1)
printf '%s\n' "$T/alice" "$T/alice" "$uuid" none 'an image' >expected
diff expected alice/1 || fail "it sees something else"
[ "$(stat -c %U alice/made)" = alice ] || fail "its file is of $(stat -c %U alice/made)"
contained 2 FAILED 3 'exit 3'

# A signal comes once, the end after it.
as alice "$CARMA" submit -o %j -t 1:00:00 --signal USR1@10 --container localhost/own -- \
    sh -c 'trap "echo told" USR1; trap "echo ends; exit 0" TERM; echo begun; echo 5/10 >"$CARMA_PROGRESS_FILE"; while :; do sleep 0.1; done' >/dev/null
wait_for 'grep -q begun alice/3'
mount=$(sed -n 's/.* \([^ ]*\) [^ ]* - cgroup2 .*/\1/p' /proc/self/mountinfo | head -n 1)
group=$(sed -n 's/^cgroup //p' "$STATE/runs/3-1-1/status")
[ -z "$group" ] || sed 's|.*|/proc/&/comm|' "$mount$group/cgroup.procs" | xargs cat | grep -x sh >/dev/null || fail "it is not in $group"
wait_for '[ "$(field 3 progress.step)" = 5 ]' || fail "its progress is not seen"
as alice "$CARMA" checkpoint 3 >/dev/null
wait_for 'grep -q told alice/3'
as alice "$CARMA" cancel 3 >/dev/null
until_field 3 state CANCELLED
[ "$(grep -v Terminated alice/3)" = 'begun
told
ends' ] || fail "a signal comes otherwise: $(cat alice/3)"

# No engine, and none wanted.
as alice env PATH=/nowhere "$CARMA" submit --wait --container localhost/own -- true >"$T/out" 2>"$T/err"
grep -q 'neither podman nor apptainer is found in PATH' "$T/err" || fail "no engine: $(cat "$T/err")"
restart_daemon --set container=off
as alice "$CARMA" submit --container localhost/own -- true >"$T/out" 2>"$T/err"
grep -q 'the setting container is off here' "$T/err" || fail "container = off: $(cat "$T/err")"
