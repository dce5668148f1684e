#!/bin/sh
# The disk of the run directories is full, of blocks or of inodes. Running jobs go on, jobs to be started wait, and all
# of them end as they should once there is space. Needs a mount namespace, so skips without root.
. "$(dirname "$0")/own_mounts.sh"
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 600
mkdir -p "$STATE/runs"
chmod 700 "$STATE" "$STATE/runs"
mount -t tmpfs -o size=256k,nr_inodes=200 none "$STATE/runs" || exit 77
chmod 700 "$STATE/runs"
start_daemon --set settle=0s

# until_log TEXT
until_log() {
    wait_for 'grep -q "$1" "$T/daemon.log"' "$@" || fail "the log never says '$1'"
}

fill_inodes() {
    i=0
    while : 2>/dev/null >"$STATE/runs/filler-$i"; do i=$((i + 1)); done
}

# No directory can be made.
runs 1 --gpu-memory 1G -- sh -c 'while ! [ -e go ]; do sleep 0.1; done; exit 5'
wait_for '[ -d "$STATE/runs/next" ]'
rm -r "$STATE/runs/next" # the shepherd that waits has one already
(fill_inodes) 2>/dev/null
expect_ok submit --parsable --gpu-memory 1G -- sh -c 'echo ran >>second'
run submit --parsable --gpu-memory 1G -- sh -c 'echo ran >>third'
until_log 'waits until it can be started: cannot \(make the .*No space left on device\|start the shepherd .*No space left on device\|hand a job to its shepherd\)'
expect_field 2 state PLACED
run cancel 3 # at once, or when its shepherd, which may have found the last inode, can say so

# The job that runs ends now; how, its shepherd will say when it can, at once if a launch that failed left an inode.
touch go
sleep 1
kill -0 "$daemon" || fail "carmad has ended"

# A daemon that comes to a full disk takes up the jobs that it finds.
again_after_kill --set settle=0s
expect_field 2 state PLACED
rm -f "$STATE"/runs/filler-*
run wait 1,2,3
expect_field 3 state CANCELLED
[ -e third ] && fail "a job ran that was cancelled before it could be started"
expect_field 1 state FAILED exit_status 5
expect_field 2 state COMPLETED attempts 1
[ "$(cat second)" = ran ] || fail "job 2 ran not once: $(cat second)"

# A directory can be made, but nothing be written there: the shepherd cannot begin.
dd if=/dev/zero of="$STATE/runs/filler" bs=4096 2>/dev/null
expect_id 4 --gpu-memory 1G -- sh -c 'echo ran >>fourth'
sleep 2
expect_field 4 state PLACED
rm -f "$STATE/runs/filler"
expect_ok wait 4
[ "$(cat fourth)" = ran ] || fail "job 4 ran not once: $(cat fourth)"
expect_field 4 attempts 1
# The copy of a script cannot be written: it has a directory beside the socket.
mount -t tmpfs -o size=256k,nr_inodes=200 none "$CARMA_SOCKET.scripts" || exit 77
chmod 711 "$CARMA_SOCKET.scripts"
printf '#!/bin/sh\necho ran >>fifth\n' >fifth.sh
dd if=/dev/zero of="$CARMA_SOCKET.scripts/filler" bs=4096 2>/dev/null
expect_id 5 --gpu-memory 1G fifth.sh
run submit --parsable --gpu-memory 1G fifth.sh
until_log "job 5 waits until it can be started: cannot write the copy of its script, .*No space left on device"
until_log "job 6 waits until it can be started: "
expect_field 5 state PLACED
"$CARMA" show 5 | grep -q "State *PLACED: .*waits until it can be started: " || fail "show does not say it: $("$CARMA" show 5)"
run cancel 6
until_field 6 state CANCELLED
expect_field 6 message "cancelled before it was started" # not ended by carmad in its shepherd's place
again_after_kill --set settle=0s
expect_field 5 state PLACED
rm -f "$CARMA_SOCKET.scripts/filler"
expect_ok wait 5
[ "$(cat fifth)" = ran ] || fail "job 5 ran not once, or job 6 did: $(cat fifth)"
expect_field 5 attempts 1 message null

# Where a job writes: each names the path and the remedy.
mkdir blocks inodes
mount -t tmpfs -o size=64k none blocks && mount -t tmpfs -o size=64k,nr_inodes=1 none inodes || exit 77
while read -r wanted options; do
    # shellcheck disable=SC2086
    run submit --parsable --wait --gpu-memory 1G $options -- sh -c 'head -c 99999 /dev/zero && head -c 99999 /dev/zero >&2 || exit 3'
    grep -q " has failed: .*$wanted" "$T/err" && [ "$(wc -l <"$T/err")" -eq 1 ] || fail "$options: $(cat "$T/err")"
done <<EOF
space.is.left.for.its.output.*/blocks/out':.free.some -o blocks/out
space.is.left.for.its.output.*/blocks/err':.free.some -o /dev/null -e blocks/err
output.file.*/inodes/out':.No.space.left.on.device:.free.some.space -o inodes/out
checkpoint.directory.*/inodes/.*ckpt':.No.space.left.on.device:.free.some.space -o /dev/null --requeue -D inodes
EOF
stop_daemon
umount "$CARMA_SOCKET.scripts" "$STATE/runs" blocks inodes
