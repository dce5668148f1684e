# For tests of a GPU's faults under the daemon: sourced after node.sh.
# shellcheck shell=sh
VNODE=$PREFIX/bin/carma-vnode

# gpu INDEX NAME: of a GPU, by the daemon's JSON.
gpu() {
    "$CARMA" gpus --json | python3 -c 'import json, sys
value = json.load(sys.stdin)["gpus"][int(sys.argv[1])]
for key in sys.argv[2].split("."):
    value = value[int(key)] if key.isdigit() else value[key]
print(value)' "$1" "$2" 2>/dev/null
}

# until_gpu INDEX NAME VALUE: waits for it.
until_gpu() {
    wait_for '[ "$(gpu "$1" "$2")" = "$3" ]' "$@" || fail "GPU $1: $2 stays '$(gpu "$1" "$2")', never '$3'"
}

# said COUNT TEXT: COUNT lines of the log have the text.
said() {
    count=$(grep -cF -- "$2" "$T/daemon.log")
    [ "$count" -eq "$1" ] || fail "'$2' is in the log $count times, not $1"
}

# until_said TEXT: waits for it.
until_said() {
    wait_for 'grep -qF -- "$1" "$T/daemon.log"' "$@" || fail "the log does not say '$1'"
}

# new_log: earlier lines count no more.
new_log() {
    cat "$T/daemon.log" >>"$T/earlier.log"
    : >"$T/daemon.log"
}

start() {
    start_daemon --set policy=round-robin --set share=time-slice --set settle=1s --set decide_period=0s "$@"
}
