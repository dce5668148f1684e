#!/bin/sh
# A daemon that takes connections and says nothing, as a stopped one does. Every command that asks it ends in one line
# after a minute, and so does the Python client. One that answers is waited for as long as the job runs.
. "$(dirname "$0")/lib.sh"
cd "$T" || exit 99

# begin NAME COMMAND...: in the background; `took` has its duration, `status` its exit status.
begin() {
    name=$1
    shift
    (
        begun=$(date +%s)
        timeout 101 "$@" >"$name.out" 2>"$name.err" </dev/null
        echo $? >"$name.status"
        echo $(($(date +%s) - begun)) >"$name.took"
    ) &
    ends="$ends $!"
}

# expect_end NAME: with a failure that is told in one line, after a minute or a little more.
expect_end() {
    case $1 in
    wait1 | logsf1 | submit | full | cut) wanted=125 ;; # for a job's status there is another
    *) wanted=1 ;;
    esac
    [ "$(cat "$1.status")" = $wanted ] || fail "$1: status $(cat "$1.status"): $(cat "$1.out" "$1.err")"
    [ "$(cat "$1.took")" -ge 55 ] && [ "$(cat "$1.took")" -le 100 ] || fail "$1 took $(cat "$1.took") s"
    [ "$(grep -c . "$1.err")" = 1 ] && grep -q "the daemon has not answered for 60 s: is carmad stopped or very busy?" "$1.err" ||
        fail "$1 says: $(cat "$1.err")"
}

# A socket that accepts and is silent; one with a full queue of connections; and one that answers all but the last word.
cat >silent.py <<'END'
import socket, sys, threading
def listen(name, backlog):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen(backlog)
    return listener
kept = []
def serve(listener, words):
    while True:
        kept.append(listener.accept()[0])
        kept[-1].sendall(words)
full = listen("full", 0)
kept.append(socket.socket(socket.AF_UNIX))
kept[-1].connect("full")
threading.Thread(target=serve, args=(listen("silent", 64), b""), daemon=True).start()
threading.Thread(target=serve, args=(listen("cut", 64), b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
END
mkfifo hold ready
python3 silent.py <hold >ready &
silent=$!
exec 8>hold
read -r _ <ready

ends=
CARMA_SOCKET=$T/silent
for command in "queue" "queue --watch" "gpus" "show 1" "wait 1" "logs -f 1" "cancel 1" "history" "explain 1"; do
    # shellcheck disable=SC2086
    begin "$(echo "$command" | tr -d ' -')" "$CARMA" $command
done
begin submit "$CARMA" submit --wait -- true
begin python env PYTHONPATH="$SOURCE/python" python3 -c 'import sys, carma
try:
    carma.Job(1).wait()
except carma.CarmaError as error:
    sys.exit(str(error))'
CARMA_SOCKET=$T/full begin full "$CARMA" wait 1
CARMA_SOCKET=$T/cut begin cut "$CARMA" wait 1
# shellcheck disable=SC2086
wait $ends
for name in queue queuewatch gpus show1 wait1 logsf1 cancel1 history explain1 submit python full cut; do
    expect_end "$name"
done
exec 8>&-
wait "$silent"
