#!/bin/sh
# A capture is used again while its files, its packages, its arguments and its environment are as they were; so is the reason for
# none. Equal jobs that wait for one capture are captured once. A stand-in plays carma-sandbox.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/auto_capture.sh"
mkdir work
cp train.py network.py fails.py later.py nothing.py loop.py work
cd work || exit 99
start_all a100x4-40g 120 --config /dev/null
job=0

# submit ARGUMENT...: a job that does not start, $job from now on. Waits for the end of its capture.
submit() {
    job=$((job + 1))
    expect_id $job --hold -- "$@"
    wait_for 'field $job estimate.text >/dev/null 2>&1 || field $job estimate.warnings.0 >/dev/null 2>&1' || {
        fail "job $job is not captured"
        return
    }
    until_field $job estimating false
}

# captured TEXT ARGUMENT...: it is captured. reused NUMBER TEXT ARGUMENT...: it goes by the capture of the job NUMBER.
captured() {
    text=$1 before=$(requests)
    shift
    submit "$@"
    [ "$(requests)" -eq $((before + 1)) ] || fail "job $job was not captured: $*"
    field $job estimate | grep -qF "$text" || fail "job $job: $(field $job estimate)"
}

reused() {
    of=$1 text=$2 before=$(requests)
    shift 2
    submit "$@"
    [ "$(requests)" -eq "$before" ] || fail "job $job was captured: $*"
    field $job estimate | grep -qE "$text.* for job $of\)?['\";]" || fail "job $job: $(field $job estimate)"
}

# Its command, arguments and environment.
captured 'train.py, 5 s' python3 train.py --size 1 train.py
reused 1 'train.py, 5 s' python3 train.py --size 1 train.py
SHLVL=77 reused 1 'train.py, 5 s' python3 train.py --size 1 train.py
captured 'train.py, 5 s' python3 train.py --size 2 train.py
export WIDTH=3
captured 'train.py, 5 s' python3 train.py --size 2 train.py
unset WIDTH
reused 4 'train.py, 5 s' python3 train.py --size 2 train.py
shows 'train.py, 5 s, made for job 4' show 6

# Its script, a module of its own, a file that its command names, and the packages.
echo '# edited' >>train.py
captured 'train.py, 5 s' python3 train.py --size 1 train.py
echo 'WIDTH = 3' >module.py
captured 'train.py, 5 s' python3 train.py --size 3 train.py
reused 8 'train.py, 5 s' python3 train.py --size 3 train.py
echo 'WIDTH = 4' >module.py
captured 'train.py, 5 s' python3 train.py --size 3 train.py
echo 'WIDTH = 3' >module.py
captured 'train.py, 5 s' python3 train.py --size 3 train.py
echo 1 >data
captured 'train.py, 5 s' python3 train.py data train.py
echo 2 >data
captured 'train.py, 5 s' python3 train.py data train.py
mkdir torch-2.9.dist-info
captured 'train.py, 5 s' python3 train.py data train.py
rmdir torch-2.9.dist-info
captured 'train.py, 5 s' python3 train.py data train.py

# A FIFO or a link in the place of a file keeps nobody waiting; a file that the user cannot read is not read for him.
rm data
mkfifo data
captured 'train.py, 5 s' python3 train.py data train.py
reused 16 'train.py, 5 s' python3 train.py data train.py

# Why there is none: until a file changes. What said nothing of its files is known by those that its command names.
captured 'needs the network' python3 network.py
reused 18 'needs the network' python3 network.py
echo '# edited' >>network.py
captured 'needs the network' python3 network.py
captured 'ended with exit status 3' python3 fails.py
reused 21 'ended with exit status 3' python3 fails.py
captured 'imported torch' python3 nothing.py
reused 23 'imported torch' python3 nothing.py
echo '# edited' >>nothing.py
captured 'imported torch' python3 nothing.py

# After a restart.
restart_daemon --config /dev/null
reused 11 'train.py, 5 s' python3 train.py --size 3 train.py
reused 25 'imported torch' python3 nothing.py

# What a capture without an answer leaves is nothing: its job ended before.
before=$(requests)
run submit --parsable --hold -- python3 loop.py
until_requests $((before + 1))
run cancel 28
until_runs 0
job=28

# Equal jobs that came before it began wait for the one capture. Nobody looks at the files again for them.
run submit --parsable --hold -- python3 loop.py 1 loop.py
until_requests $((before + 2))
for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do run submit --parsable --hold -- python3 later.py; done
looks=$(find "$FAKE" -name 'look-*' | wc -l)
touch "$FAKE/go"
run cancel 29
wait_for 'field 41 estimate.text >/dev/null 2>&1' || fail "job 41 is not captured"
[ "$(requests)" -eq $((before + 3)) ] || fail "$(requests) captures, not $((before + 3))"
[ "$(find "$FAKE" -name 'look-*' | wc -l)" -eq $((looks + 1)) ] || fail "the files were looked at again"
field 41 estimate | grep -q 'made for job 30' || fail "job 41: $(field 41 estimate)"
stop_daemon
[ "$(stat -c %a "$T/state/captures")" = 700 ] || fail "others may read the kept captures"
