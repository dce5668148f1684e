#!/bin/sh
# A GPU on which CUDA does not start fails no job: closed, named, opened by an administrator. Two daemons on one's GPUs.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/faults.sh"
start_all a100x4-40g 60
program train.sh <<'EOF'
#!/bin/sh
case $CUDA_VISIBLE_DEVICES in
*"$BAD"*)
    echo 'RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable' >&2
    exit 1
    ;;
esac
exec "$TRAIN" --memory 2G --sm-activity 0.3 --seconds "$1"
EOF
BAD=$("$VNODE" show | awk '/^GPU 2/ {print $NF}')
export BAD TRAIN

# Programs of one user: his jobs go elsewhere, each by its first retry.
for seconds in 21 22 23 24 25 26 27 28 29 30 31 32; do
    run submit --gpu-memory 3G -- ./train.sh $seconds
done
expect_ok wait 1,2,3,4,5,6,7,8,9,10,11,12
for job in 1 2 3 4 5 6 7 8 9 10 11 12; do
    [ "$(field $job attempts)" -le 2 ] || fail "job $job was started $(field $job attempts) times"
done
closed="GPU 2: programs of 3 workloads in a row did not start there, so no job of $(id -un) is placed there for "
shows "$closed" gpus
"$CARMA" doctor | grep -qF "$closed" || fail "doctor does not say it"
said 1 "did not start there"

# Who wants all GPUs waits for it, and says so, over a restart; an administrator opens it.
restart_daemon
run submit --parsable --gpu-memory 38G -G 4 -- "$TRAIN" --gpus 4 --memory 2G --sm-activity 0.3 --seconds 30
shows "GPU 2 does not start programs: it is tried again in " explain 13
expect_error 1 "there is no GPU 7: carma gpus lists them" admin gpu open 7
expect_error 2 "'shut' is not known: open" admin gpu shut 2
prints "GPU 2 takes jobs again" admin gpu open 2
expect_ok wait 13
run gpus
grep -qF "did not start there" "$T/out" && fail "$said: $(cat "$T/out")"

# Two daemons.
"$PREFIX/bin/carmad" --state "$T/other" --socket "$T/other.socket" 2>other.log &
other=$!
wait_for 'CARMA_SOCKET=$T/other.socket "$CARMA" gpus 2>/dev/null | grep -q "^GPU 3: process $daemon of .* manages it, too"' ||
    fail "the second daemon says: $(cat other.log)"
stop_daemon
wait_for 'grep -q "GPU 3 .*no other carmad manages it now" other.log' || fail "the second daemon says: $(cat other.log)"
kill $other
wait $other
