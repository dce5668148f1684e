#!/bin/sh
# A dashboard has its user's rights: to the daemon, to jobs' files, and against other users of the machine.
. "$(dirname "$0")/users.sh"
homes
start_all a100x4-40g 100

# ask USER STATUS METHOD TARGET [TEXT]: with the cookie, as a process of that user; STATUS 000: it is not answered at all.
ask() {
    as "$1" python3 - "$base" "$cookie" "$2" "$3" "$4" "${5-}" <<'PYTHON' || fail "as $1: $3 $4"
import socket, sys
base, cookie, wanted, method, target, text = sys.argv[1:]
host = base.removeprefix("http://")
answer = b""
with socket.create_connection(("127.0.0.1", int(host.rpartition(":")[2])), timeout=60) as stream:
    try:
        stream.sendall(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nOrigin: {base}\r\nCookie: {cookie}\r\n\r\n".encode())
        while block := stream.recv(65536):
            answer += block
    except (ConnectionResetError, BrokenPipeError):
        pass
assert answer[9:12].decode() == wanted.replace("000", "") and text.encode() in answer, answer
PYTHON
}

as alice sh -c 'echo $$ >pid; exec "$0" dashboard' "$CARMA" >"$T/address" 2>"$T/err" &
dashboard=$!
wait_for '[ -s "$T/address" ]' || {
    fail "no address: $(cat "$T/err")"
    exit 1
}
address=$(cat "$T/address")
base=${address%%/\?*}
cookie=

# The address is visible to users that list processes where a browser is started with it: it is of no use to them.
ask bob 000 GET "${address#"$base"}"
curl_as() {
    as alice python3 -c 'import http.client, sys
host, _, target = sys.argv[1].removeprefix("http://").partition("/")
connection = http.client.HTTPConnection(host, timeout=60)
connection.request("GET", "/" + target)
print(connection.getresponse().getheader("Set-Cookie").partition(";")[0])' "$1"
}
cookie=$(curl_as "$address") || fail "alice is not let in"
ask bob 000 GET /v1/status
ask alice 200 GET /v1/status '"policy"'
ask alice 200 GET /local/whoami '"user":"alice","uid":12001'

# The daemon sees alice: her own she may cancel, others' not.
run_as alice submit --parsable -o out-%j -- sh -c 'echo of alice; sleep 1000'
run_as bob submit --parsable -o out -- sh -c 'echo of bob; sleep 1000'
until_field 1 state RUNNING
until_field 2 state RUNNING
ask alice 403 POST /v1/jobs/2/cancel 'belongs to bob'
ask alice 400 POST /v1/jobs/cancel 'which jobs?'
ask alice 200 GET /v1/jobs/2 '"user":"bob"'
ask alice 403 GET /local/jobs/2/log 'it is not yours'
wait_for 'as alice grep -q alice out-1 2>/dev/null'
ask alice 200 GET '/local/jobs/1/log?bytes=100' 'of alice'

# The page itself, while a user looks: bob's job goes on the list as it is submitted.
ask alice 200 GET / "Content-Security-Policy: default-src 'none'"
as alice python3 - "$base" "$cookie" >"$T/events" <<'PYTHON' &
import socket, sys
base, cookie = sys.argv[1:]
host = base.removeprefix("http://")
seen = b""
with socket.create_connection(("127.0.0.1", int(host.rpartition(":")[2])), timeout=90) as stream:
    stream.sendall(f"GET /v1/events HTTP/1.1\r\nHost: {host}\r\nSec-Fetch-Site: same-origin\r\nCookie: {cookie}\r\n\r\n".encode())
    while b'"name":"while-one-looks"' not in seen:
        block = stream.recv(65536)
        assert block, seen[-500:]
        if not seen:
            print("begun", flush=True)
        seen += block
assert b"Content-Type: text/event-stream" in seen and b"event: gpus" in seen, seen[:2000]
PYTHON
events=$!
wait_for '[ -s "$T/events" ]'
run_as bob submit --parsable --hold --job-name while-one-looks -- true
wait "$events" || fail "events do not come through the dashboard"

# A log that became something else is refused as `carma logs` refuses it.
as bob sh -c 'echo secret >secret; chmod 600 secret'
as alice sh -c "rm out-1; ln -s '$T/bob/secret' out-1"
ask alice 403 GET /local/jobs/1/log 'Permission denied'
refused alice 'Permission denied' logs 1
as alice sh -c 'rm out-1; mkfifo out-1'
ask alice 422 GET /local/jobs/1/log 'is not a regular file'
refused alice 'is not a regular file' logs 1

# It outlives the daemon.
stop_daemon KILL
ask alice 502 GET /v1/status 'the daemon cannot be reached'
start_daemon
ask alice 200 POST /v1/jobs/1/cancel '"id":1'
until_field 1 state CANCELLED
kill -TERM "$(cat "$T/alice/pid")"
wait "$dashboard" || fail "the dashboard ends with status $?"
"$CARMA" cancel 2
until_field 2 state CANCELLED
