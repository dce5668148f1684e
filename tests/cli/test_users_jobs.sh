#!/bin/sh
# Jobs of several users have their users' rights and no more: no path that a user names is opened with more.
. "$(dirname "$0")/users.sh"
homes
start_all a100x4-40g 100

# wait_as USER ID: until it has ended.
wait_as() {
    as "$1" "$CARMA" wait "$2" >/dev/null 2>&1
}

# The job's identity: alice with her groups, none of the daemon's, no privilege, no foreign descriptor.
run_as alice submit --parsable -o who -- sh -c 'id; grep ^Cap /proc/self/status
    i=3; while [ $i -lt 64 ]; do [ ! -e /proc/$$/fd/$i ] || echo "descriptor $i: $(readlink /proc/$$/fd/$i)"; i=$((i + 1)); done'
wait_as alice 1
as alice id >"$T/wanted"
head -1 "$T/alice/who" | diff -u "$T/wanted" - >&2 || fail "the job does not have alice's identity"
grep -q 'groups=12001(alice),12050(team)$' "$T/alice/who" || fail "the job's groups: $(cat "$T/alice/who")"
[ "$(grep -cE '^Cap(Inh|Prm|Eff|Amb).*0000000000000000$' "$T/alice/who")" -eq 4 ] || fail "the job has privileges: $(cat "$T/alice/who")"
grep '^descriptor' "$T/alice/who" && fail "the job has descriptors that are not its own"

# A program that is setuid root becomes root, as it would in alice's shell; carma stops it all the same.
install -m 4755 "$(command -v sleep)" "$T/root-sleep"
run_as alice submit --parsable -- "$T/root-sleep" 1000
until_field 2 state RUNNING
allowed alice cancel 2
until_field 2 state CANCELLED
for status_file in /proc/[0-9]*/exe; do
    [ "$(readlink "$status_file")" != "$T/root-sleep" ] || fail "the setuid program still runs"
done
# Her variables for the loader reach her process alone, never carmad's or the shepherd's.
export LD_PRELOAD="$T/alice/no.so"
run_as alice submit --parsable -o preload -- sh -c 'echo "preload $LD_PRELOAD"'
unset LD_PRELOAD
wait_as alice 3
grep -q "preload $T/alice/no.so" "$T/alice/preload" || fail "the job's environment is not alice's: $(cat "$T/alice/preload")"
grep -q 'no.so' "$T/daemon.log" && fail "the daemon's own processes loaded alice's library"

# A log that is a symbolic link to a file that she may not write or read.
(umask 077 && echo 'CUDA out of memory. root-secret' >"$T/secret")
ln -s "$T/secret" "$T/alice/link"
chown -h 12001 "$T/alice/link"
run_as alice submit --parsable -o link -- echo overwritten
wait_as alice 4
expect_field 4 state FAILED
[ "$(cat "$T/secret")" = 'CUDA out of memory. root-secret' ] || fail "the job wrote through a link with root's rights"
refused alice 'Permission denied' logs 4
expect_error 1 'Permission denied' logs 4 # root's client takes her rights
install -m 640 -o root -g team "$T/secret" "$T/teams"
as alice ln -sf "$T/teams" link
prints 'CUDA out of memory. root-secret' logs 4 # her groups' rights
as alice ln -sf "$CARMA_SOCKET" link # which cannot be opened
expect_error 1 'not a regular file' logs 4
as alice ln -sf /proc/self/status link # which has no size
timeout "$PATIENCE_S" "$CARMA" logs 4 >/dev/null || fail "carma logs of a file of /proc does not end"

# Turned into such a link while the job runs: it is read with her rights to classify the failure.
run_as alice submit --parsable -o swapped -- sh -c 'rm swapped; ln -s "$1" swapped; exit 1' sh "$T/secret"
wait_as alice 5
expect_field 5 state FAILED
"$CARMA" show --json 5 | grep -q root-secret && fail "the failure quotes a file that alice may not read"
"$CARMA" show 5 | grep -q root-secret && fail "root is shown a file that alice may not read"
refused alice 'Permission denied' logs 5
expect_field 5 crashes 0

# Paths outside, another user's among them: for the job, and for `logs`.
as alice sh -c 'umask 077; echo alice-secret >diary'
for path in "$T/alice/diary" ../alice/diary "$T/alice/new" /etc/carma-test-of-users; do
    run_as bob submit --parsable -o "$path" -- echo overwritten
    id=$(cat "$T/out")
    wait_as bob "$id"
    expect_field "$id" state FAILED
    run_as bob logs "$id"
    expect_status 1
    grep -q alice-secret "$T/out" && fail "$said: shows alice's file"
done
[ "$(cat "$T/alice/diary")" = alice-secret ] || fail "bob's job wrote into alice's file"
[ ! -e "$T/alice/new" ] || fail "bob's job made a file in alice's directory"
[ ! -e /etc/carma-test-of-users ] || fail "bob's job made a file in /etc"
run_as bob submit --parsable -o mine -- echo 'done'
id=$(cat "$T/out")
wait_as bob "$id"
as bob sh -c "rm mine; ln -s '$T/alice/diary' mine"
refused bob 'Permission denied' logs "$id"
as bob sh -c 'rm mine; mkfifo mine'
refused bob 'not a regular file' logs "$id"
run_as bob submit --parsable -D "$T/alice" -- true
id=$(cat "$T/out")
wait_as bob "$id"
expect_field "$id" state FAILED

# A script is its user's: nobody else reads the copy that runs, or the stored one.
printf '#!/bin/sh\n# alice-secret\necho "$0" >where\nuntil [ -e go ]; do sleep 0.05; done\ncat "$0" >again\n' >"$T/alice/own.sh"
chmod 600 "$T/alice/own.sh"
chown 12001 "$T/alice/own.sh"
run_as alice submit --parsable own.sh
id=$(cat "$T/out")
wait_for '[ -s "$T/alice/where" ]'
copy=$(cat "$T/alice/where")
as bob cat "$copy" >"$T/out" 2>/dev/null && fail "bob can read alice's script"
as bob stat "$copy" >"$T/out" 2>/dev/null && fail "bob sees name and size of alice's script"
as bob ls "${copy%/*}" >"$T/out" 2>/dev/null && fail "bob can look into the directory of alice's script"
as alice sh -c "rm -f '$copy'; mv '$copy' x; touch '${copy%/*}/y' '${copy%/*/*}/y'" 2>/dev/null && fail "alice can write beside her script"
as alice touch "$T/alice/go"
wait_as alice "$id"
expect_field "$id" state COMPLETED
cmp -s "$T/alice/own.sh" "$T/alice/again" || fail "alice's job cannot read its script"
run_as alice show --script "$id"
cmp -s "$T/out" "$T/alice/own.sh" || fail "$said: printed $(cat "$T/out")"
refused bob "job $id belongs to alice" show --script "$id"

# Root's play of a trace with users: each job is its user's.
printf 'arrival_s,workload,duration_s,uid\n0,resnet18_cifar100_20e_3,30,12001\n0,resnet18_cifar100_20e_3,30,12002\n' >"$T/two.csv"
"$CARMA" play --json --output-dir "$T/play" "$T/two.csv" >"$T/report" 2>"$T/err" || fail "play as root: $(cat "$T/err")"
[ "$(stat -c %u "$T"/play/*.out | tr '\n' ' ')" = '12001 12002 ' ] || fail "the jobs are not their users': $(ls -l "$T/play")"
grep -q '"users": 2' "$T/report" || fail "the report: $(cat "$T/report")"
as bob mkdir theirs
expect_error 1 'belongs to uid 12002' play --output-dir "$T/bob/theirs" "$T/two.csv"

# What she may not do there is warned of at once.
install -d -m 700 "$T/closed"
install -m 400 /dev/null "$T/taken"
for doubt in "-D $T/closed|it cannot run in .$T/closed.: Permission denied" "-o $T/closed/x|cannot be written: Permission denied: choose another with -o" \
    "-o $T/x|cannot be written: Permission denied" "-e $T/taken|cannot be written: Permission denied: choose another with -e"; do
    # shellcheck disable=SC2086 # an option and its value
    allowed alice submit --hold ${doubt%|*} -- true
    grep -q "${doubt#*|}" "$T/err" || fail "$said: $(cat "$T/err")"
done

# The daemon's own files: its store and its runs.
for path in "$STATE" "$STATE"/*; do
    ! as alice test -r "$path" || fail "alice can read $path"
    ! as alice test -w "$path" || fail "alice can write $path"
done

# What alice types into a job of carma run is read with her rights; nobody else is attached to it, or reaches its socket.
mkfifo "$T/typed"
as alice "$CARMA" run -o attached -- sh -c 'id -u; cat' <"$T/typed" >"$T/alice.out" 2>"$T/alice.err" &
attached=$!
exec 8>"$T/typed"
echo hello >&8
wait_for 'grep -q hello "$T/alice.out"' || fail "nothing comes back from carma run: $(cat "$T/alice.err")"
id=$(sed -n 's/carma: job \([0-9]*\) (.*/\1/p' "$T/alice.err")
relay=$(pgrep -x carma-terminal -u 12001 | head -1)
[ "$(grep -cE '^(Cap(Inh|Prm|Eff|Amb).*0000000000000000|Uid:(.12001){4})$' "/proc/$relay/status")" -eq 5 ] || fail "the relay has more rights than alice"
refused bob "permission denied: job $id belongs to alice" attach "$id"
as bob python3 -c 'import socket, sys
try:
    socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(sys.argv[1])
except PermissionError:
    sys.exit(0)
sys.exit("connected")' "$(field "$id" terminal)" || fail "bob reaches alice's job"
exec 8>&-
wait "$attached" || fail "carma run of alice: $(cat "$T/alice.err")"
[ "$(cat "$T/alice.out")" = "12001
hello" ] || fail "carma run of alice printed '$(cat "$T/alice.out")'"
