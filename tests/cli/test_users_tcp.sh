#!/bin/sh
# Access to the daemon: by TCP only where that is set and with the token. A user's own carmad lets in that user only.
. "$(dirname "$0")/users.sh"
homes
start_node a100x4-40g 100

# listeners PID: the TCP sockets on which it listens.
listeners() {
    for fd in /proc/"$1"/fd/*; do
        inode=$(readlink "$fd" | sed -n 's/^socket:\[\(.*\)\]$/\1/p')
        [ -z "$inode" ] || awk -v inode="$inode" '$4 == "0A" && $10 == inode { print $2 }' /proc/net/tcp /proc/net/tcp6
    done
}

# refuses_to_start TEXT ARGUMENT...
refuses_to_start() {
    text=$1
    shift
    timeout 20 "$PREFIX/bin/carmad" --state "$STATE" --socket "$CARMA_SOCKET" "$@" 2>"$T/err"
    [ $? -eq 124 ] && fail "carmad $*: runs"
    grep -qF "$text" "$T/err" || fail "carmad $*: no '$text' in: $(cat "$T/err")"
}

# By default it listens on no network.
start_daemon
[ -z "$(listeners "$daemon")" ] || fail "carmad listens on TCP unasked: $(listeners "$daemon")"
run_as bob submit --parsable --hold -- true
expect_output 1
uuids=$("$CARMA" gpus --json | grep -o 'GPU-[0-9a-f-]*' | sort -u)
stop_daemon

# While it is down bob says that the GPUs are his: root's carmad believes only users that could use them.
# shellcheck disable=SC2086 # words
as bob python3 -c 'import signal, socket, sys
held = [socket.socket(socket.AF_UNIX) for _ in sys.argv[1:]]
for one, uuid in zip(held, sys.argv[1:]):
    one.bind("\0carma-gpu-" + uuid)
    one.listen()
print(len(held), flush=True)
signal.pause()' $uuids >"$T/held" &
bobs=$!
wait_for 'grep -qx 4 "$T/held"'

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
(umask 077 && python3 -c 'import secrets; print(secrets.token_hex(32))' >"$T/token")
refuses_to_start 'needs a token' --set listen="127.0.0.1:$port"
chmod 644 "$T/token"
refuses_to_start 'chmod 600' --set listen="127.0.0.1:$port" --set token_file="$T/token"
chmod 600 "$T/token"
echo short >"$T/short"
chmod 600 "$T/short"
refuses_to_start '32 to 512 characters' --set listen="127.0.0.1:$port" --set token_file="$T/short"
refuses_to_start 'is not allowed' --set listen=localhost:80 --set token_file="$T/token"

# The token is alice's: a client that shows it is alice, to a daemon that is root.
chown 12001 "$T/token"
start_daemon --set listen="127.0.0.1:$port" --set token_file="$T/token"
grep -q WARNING "$T/daemon.log" && fail "a warning of an address that only this machine can reach"
[ -e /dev/nvidia0 ] || ! "$CARMA" gpus | grep -q "manages it" || fail "bob is believed: $("$CARMA" gpus)"
kill $bobs
[ "$(listeners "$daemon" | wc -l)" -eq 1 ] || fail "carmad listens on: $(listeners "$daemon")"
by_tcp="env CARMA_SOCKET=tcp://127.0.0.1:$port"
refused_by_tcp() {
    [ "$status" -eq 1 ] && grep -qF "$1" "$T/err" || fail "by TCP: no '$1' in: $(cat "$T/err")"
}
# try USER [NAME=VALUE...] ARGUMENT...: carma by TCP.
try() {
    try_user=$1
    shift
    # shellcheck disable=SC2086 # words
    as "$try_user" $by_tcp "$@" >"$T/out" 2>"$T/err" </dev/null
    status=$?
}
try bob "$CARMA" queue
refused_by_tcp 'CARMA_TOKEN_FILE'
try bob CARMA_TOKEN_FILE="$T/token" "$CARMA" queue
refused_by_tcp 'Permission denied'
as bob sh -c 'umask 077; head -c 32 /dev/zero | tr "\0" x >wrong'
try bob CARMA_TOKEN_FILE="$T/bob/wrong" "$CARMA" queue
refused_by_tcp 'show the token'
as bob chmod 640 wrong
try bob CARMA_TOKEN_FILE="$T/bob/wrong" "$CARMA" queue
refused_by_tcp 'chmod 600'
try alice CARMA_TOKEN_FILE="$T/token" "$CARMA" submit --parsable --hold -- true
[ "$status" -eq 0 ] || fail "alice's token: $(cat "$T/err")"
[ "$(field 2 uid)" = 12001 ] || fail "a client with alice's token is $(field 2 uid)"
try alice CARMA_TOKEN_FILE="$T/token" "$CARMA" cancel 1
refused_by_tcp 'belongs to bob'
try alice CARMA_TOKEN_FILE="$T/token" "$CARMA" cancel 2
[ "$status" -eq 0 ] || fail "alice's own job: $(cat "$T/err")"

# The Python client shows alice's token and is alice. It is refused with no token, a wrong one, or one that others can read.
as bob sh -c 'umask 077; head -c 32 /dev/zero | tr "\0" y >other'
python="env PYTHONPATH=$SOURCE/python PYTHONDONTWRITEBYTECODE=1 python3 -c"
ask='import carma; print(carma.submit("true", hold=True).info["user"])'
# shellcheck disable=SC2086 # words
while read -r who file said_so; do
    [ "$who" = alice ] || ask='import carma; carma.jobs()' # a submission would wait for half a minute
    [ "$file" = - ] && file= || file=CARMA_TOKEN_FILE=$file
    try "$who" $file $python "$ask"
    grep -q "$said_so" "$T/out" "$T/err" || fail "$who by Python with '$file', not $said_so: $(cat "$T/out" "$T/err")"
done <<END
alice $T/token ^alice$
bob - ^carma.errors.NoDaemon:.tcp://.*:.needs.a.token
bob $T/bob/other ^carma.errors.NotAllowed:
bob $T/bob/wrong ^carma.errors.NoDaemon:.*chmod.600.it
END

# ask STATUS HEADER...: the status that a request with these headers gets by TCP.
ask() {
    wanted=$1
    shift
    python3 - "$port" "$wanted" "${asked:-/v1/jobs/1}" "$@" <<'PYTHON' || fail "by TCP, $*: not $wanted"
import http.client, sys
port, wanted, path, *headers = sys.argv[1:]
connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=10)
connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
for header in headers:
    connection.putheader(*header.split(": ", 1))
connection.endheaders()
assert connection.getresponse().status == int(wanted)
PYTHON
}
token="Authorization: Bearer $(cat "$T/token")"
ask 200 "Host: 127.0.0.1:$port" "$token"
ask 401 "Host: 127.0.0.1:$port"
ask 401 "Host: 127.0.0.1:$port" "Cookie: $token"
ask 403 "Host: 127.0.0.1:$port" "$token" "Origin: http://evil.example"
ask 200 "Host: 127.0.0.1:$port" "$token" "Origin: http://127.0.0.1:$port" # the dashboard
ask 401 "Host: 127.0.0.1:$port" "Origin: http://127.0.0.1:$port"
ask 403 "Host: 127.0.0.1:$port" "$token" "Origin: http://127.0.0.1:1"
ask 403 "Host: 127.0.0.1:$port" "$token" "Origin: https://127.0.0.1:$port"
ask 403 "Host: evil.example:$port" "$token"
# The dashboard's files hold nothing of this node: the page asks for the token itself.
asked=/ ask 200 "Host: 127.0.0.1:$port"
asked=/app.js ask 200 "Host: 127.0.0.1:$port"
asked=/ ask 403 "Host: evil.example:$port"
asked=/v1/status ask 401 "Host: 127.0.0.1:$port"
asked=//v1/status ask 401 "Host: 127.0.0.1:$port"
stop_daemon

# While it is down bob listens at its port: nobody shows him the token.
as bob python3 - "$port" >"$T/heard" <<'PYTHON' &
import socket, sys
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("", int(sys.argv[1])))
listener.listen()
print("listens", flush=True)
for _ in range(5):
    connection, _ = listener.accept()
    print(connection.recv(4096), flush=True)
PYTHON
bobs=$!
wait_for "grep -q listens \"\$T/heard\""
for address in 127.0.0.1 0.0.0.0 127.0.0.2 "[::ffff:127.0.0.1]"; do
    by_tcp="env CARMA_SOCKET=tcp://$address:$port"
    try alice CARMA_TOKEN_FILE="$T/token" timeout 10 "$CARMA" queue
    refused_by_tcp "uid 12002 listens there"
done
try alice CARMA_TOKEN_FILE="$T/token" PYTHONPATH="$SOURCE/python" timeout 10 python3 -c 'import carma; carma.jobs()'
refused_by_tcp "uid 12002 listens there"
wait $bobs
grep -q Bearer "$T/heard" && fail "bob has heard the token: $(cat "$T/heard")"

# A token that others can reach is reported; root's token is root.
chown 0 "$T/token"
start_daemon --set listen="0.0.0.0:$port" --set token_file="$T/token"
grep -q "WARNING: 0.0.0.0:$port can be reached from other machines" "$T/daemon.log" || fail "no warning"
CARMA_TOKEN_FILE=$T/token CARMA_SOCKET=tcp://127.0.0.1:$port "$CARMA" cancel 1 2>"$T/err" || fail "root: $(cat "$T/err")"
stop_daemon

# alice's own carmad: her socket lets nobody else in, in any place.
install -d -m 755 -o 12001 -g 12001 "$T/hers"
as alice "$PREFIX/bin/carmad" --state "$T/alice/state" --socket "$T/hers/socket" \
    --set nvml_library="$PREFIX/lib/carma/vnode/libnvidia-ml.so.1" 2>>"$T/daemon.log" &
daemon=$!
CARMA_SOCKET=$T/hers/socket
wait_for '[ -S "$CARMA_SOCKET" ]'
allowed alice queue
[ "$(stat -c %a "$CARMA_SOCKET")" = 600 ] || fail "the socket's mode is $(stat -c %a "$CARMA_SOCKET")"
refused bob 'Permission denied' queue
refused bob 'Permission denied' submit -- true
as bob ls "$T/alice/state" >/dev/null 2>&1 && fail "bob sees the store of alice's carmad"
run_as alice submit --parsable -o own -- id -u
run_as alice wait 1
[ "$(cat "$T/alice/own")" = 12001 ] || fail "alice's job ran as $(cat "$T/alice/own")"
