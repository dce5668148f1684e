#!/bin/sh
# A job has what its user's shell hands on. docs/launching.md lists each difference, with its reason.
. "$(dirname "$0")/users.sh"
homes
start_all a100x4-40g 100
TELL=$T/surroundings.py
cp "$SOURCE/tests/cli/surroundings.py" "$TELL"

# in_shell UMASK OPEN_FILES COMMAND...: in alice's shell, as she has set it up.
in_shell() {
    in_mask=$1 in_files=$2
    shift 2
    as alice env -u LD_PRELOAD UNSAID=1 NAME='two words' nice -n 3 ionice -c 3 taskset -c 0 sh -c \
        'umask "$1"; ulimit -S -n "$2"; ulimit -H -n "$((2 * $2))"; ulimit -S -s 4096; ulimit -S -c 0; ulimit -S -d 50000000; shift 2; echo 0x7f >/proc/self/coredump_filter; exec "$@"' sh "$in_mask" "$in_files" "$@"
}

number=0
for mask in 077 027 022 002; do
    number=$((number + 1))
    files=$((512 << number))
    in_shell "$mask" "$files" /usr/bin/python3 -B "$TELL" tell shell-$mask <"$SOURCE/docs/launching.md"
    in_shell "$mask" "$files" "$CARMA" submit --wait --parsable -o /dev/null -- /usr/bin/python3 -B "$TELL" tell job-$mask >/dev/null ||
        fail "umask $mask: the job failed"
    /usr/bin/python3 -B "$TELL" compare "$T/alice/shell-$mask" "$T/alice/job-$mask" "$SOURCE/docs/launching.md" || fail "umask $mask, $files files"
done
[ "$(stat -c %a "$T/alice/job-077")" = 600 ] || fail "the files of a job with umask 077: $(stat -c %a "$T/alice/job-077")"

# Her other group, as after newgrp, while she is in it.
for wanted in 12050 12001; do
    (cd "$T/alice" && setpriv --reuid=12001 --regid=12050 --groups=12001,12050 \
        "$CARMA" submit --wait --parsable -o group -- id -g >/dev/null)
    [ "$(cat "$T/alice/group")" = $wanted ] || fail "after newgrp team: $(cat "$T/alice/group"), not $wanted"
    grep -v '^team:' /etc/group >"$T/groups"
    cat "$T/groups" >/etc/group
done

# What the user says of these variables holds; a job that submits another does not hand on its own.
SAY='echo $MASTER_PORT $PET_MASTER_PORT $PYTHONUNBUFFERED $NVIDIA_VISIBLE_DEVICES $CARMA_GPU_UUIDS'
as alice env MASTER_PORT=29501 PET_MASTER_PORT=29502 PYTHONUNBUFFERED= NVIDIA_VISIBLE_DEVICES=void \
    "$CARMA" submit --wait --parsable -o said -- sh -c "$SAY" >/dev/null
grep -q '^29501 29502 void GPU-' "$T/alice/said" || fail "said by the user: $(cat "$T/alice/said")"
as alice "$CARMA" submit --wait --parsable -o outer -- sh -c "$SAY; \"$CARMA\" submit --wait --parsable -o inner -- sh -c '$SAY'" >/dev/null
for job in outer inner; do
    # shellcheck disable=SC2046
    set -- $(head -1 "$T/alice/$job")
    [ "$1" = "$2" ] && [ "$3" = 1 ] && [ "$4" = "$5" ] || fail "$job: $*"
    eval "$job=$1"
done
# shellcheck disable=SC2154
[ "$outer" != "$inner" ] || fail "both jobs have port $outer"

# A port that somebody has is not given, be it of IPv6 alone.
next=$((20000 + (inner - 20000 + 1) % 10000))
python3 -c 'import pathlib, socket, sys, time
try:
    taken = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6)
except OSError:
    taken = socket.create_server(("", int(sys.argv[1])))
pathlib.Path("taken").touch()
time.sleep(1000)' $next &
wait_for '[ -e taken ]' || fail "port $next cannot be had"
as alice "$CARMA" submit --wait --parsable -o taken -- sh -c 'echo $MASTER_PORT' >/dev/null
kill $!
[ "$(cat "$T/alice/taken")" != $next ] || fail "a job got port $next, which is taken"
# Where she may not look in a directory of PATH, a program that is nowhere is not "Permission denied".
mkdir -m 700 "$T/closed"
as alice env PATH="$T/closed:$PATH" "$CARMA" submit --wait --parsable -o /dev/null -- no-such-program >/dev/null 2>"$T/err"
[ $? -eq 127 ] && grep -q "cannot run 'no-such-program': there is no such program in PATH$" "$T/err" ||
    fail "a program that is nowhere: $(cat "$T/err")"
# One file for two jobs: the second wipes nothing while the first runs, and a later one begins it anew.
first=$(submitted --gpu-memory 1G -o same -- sh -c 'echo first; while ! [ -e end ]; do sleep 0.1; done')
until_field "$first" state RUNNING
second=$(submitted --gpu-memory 1G -o ./same -e same -- sh -c 'echo second; while ! [ -e end ]; do sleep 0.1; done')
until_field "$second" state RUNNING
expect_field "$second" message "another job writes to '$T/./same', so it was not begun anew: name it with %j"
touch end
run wait "$first" "$second"
grep -q "job $second has completed: another job writes to" "$T/err" || fail "$said: $(cat "$T/err")"
[ "$(sort same | paste -sd,)" = first,second ] || fail "two jobs wrote: $(cat same)"
run submit --parsable -W --gpu-memory 1G -o same -e ./same -- echo third
[ "$(cat same)" = third ] || fail "the third job's file has: $(cat same)"
expect_field "$(cat "$T/out")" message null
# A device has no text to lose: it is no file of others.
idle=$(submitted --gpu-memory 1G -o /dev/null -- sleep 1000)
until_field "$idle" state RUNNING
run submit --parsable -W --gpu-memory 1G -o /dev/null -- true
expect_field "$(cat "$T/out")" message null
