# For tests of the program `carma`: sourced with CARMA (the program) and SOURCE (the source tree) as $1 and $2. A test
# whose head does not say otherwise takes these, and with node.sh BUILD (the meson tree) as $3.
# shellcheck shell=sh disable=SC2034 # used by the scripts that source this
set -u
CARMA=$(realpath "$1") || exit 99 # tests change directories
SOURCE=$2
LC_ALL=C
TZ=UTC
export LC_ALL TZ
unset COLUMNS NO_COLOR CARMA_SOCKET CARMA_TIME_SCALE CARMA_PREFIX
T=$(mktemp -d) || exit 99
CARMA_SOCKET=$T/socket
export CARMA_SOCKET
failures=0
fake=

# finish: wherever a test ends it does this, and first at_end, code of its own. It fails where a check has failed, and where
# it ends with another status than 0, which it keeps.
at_end=:
finish() {
    ended=$?
    trap - EXIT INT TERM
    eval "$at_end"
    exec 9>&- # the fake daemon ends with its input
    [ -z "$fake" ] || wait "$fake"
    rm -rf "$T"
    [ "$ended" -ne 0 ] || ended=$((failures > 0))
    exit "$ended"
}
trap finish EXIT
trap 'exit 1' INT TERM

# skip WHY: the test cannot run here, or not further.
skip() {
    [ "$failures" -eq 0 ] || exit 1
    echo "skipped: $1"
    exit 77
}

# start_fake ANSWERS.json: a daemon that gives these answers, until the test ends.
start_fake() {
    answers=$T/answers.json
    [ "$1" = "$answers" ] || cp "$1" "$answers"
    mkfifo "$T/input" "$T/ready"
    python3 "$SOURCE/tests/fakes/fake_carmad.py" "$CARMA_SOCKET" "$answers" <"$T/input" >"$T/ready" &
    fake=$!
    exec 9>"$T/input"
    read -r _ <"$T/ready"
}

# The processes of this test: all below its contain.py. To read another's command line may take for ever (held_memory).
own_processes() {
    cat /proc/[0-9]*/stat 2>/dev/null | sed 's/ (.*) / /' | awk -v top="${CONTAIN_PID:-$PPID}" '
        { parent[$1] = $3 }
        END { for (pid in parent) { for (at = parent[pid]; at != top && at in parent;) at = parent[at]; if (at == top) print pid } }'
}

# How long a test waits for an event that has to come: a busy machine is slow. Waits after one in vain are short.
PATIENCE_S=${PATIENCE_S:-300}

# patience: begins to wait; patient: whether to go on, after a moment.
patience() {
    patience_ends=$(($(date +%s) + PATIENCE_S))
}

patient() {
    if [ "$(date +%s)" -ge "$patience_ends" ]; then
        PATIENCE_S=2
        return 1
    fi
    sleep 0.1
}

# wait_for CODE [ARGUMENT...]: until this code of the shell succeeds with these as $1...; fails where it never does.
wait_for() {
    awaited=$1
    shift
    patience
    until eval "$awaited"; do
        patient || return 1
    done
}

# fail TEXT: the test goes on to its other findings; with FAIL_FAST it ends here.
fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
    [ -z "${FAIL_FAST-}" ] || exit 1
}

# run ARGUMENT...: runs carma; its status, output and messages are in $status, $T/out and $T/err.
run() {
    said="carma $*"
    "$CARMA" "$@" >"$T/out" 2>"$T/err" </dev/null
    status=$?
}

expect_status() {
    [ "$status" -eq "$1" ] || fail "$said: status $status, not $1: $(cat "$T/err")"
}

# ends STATUS ARGUMENT...: as run, and carma ends so. expect_ok ARGUMENT...: and it succeeds.
ends() {
    ends_with=$1
    shift
    run "$@"
    expect_status "$ends_with"
}

expect_ok() {
    ends 0 "$@"
}

# expect_error STATUS TEXT ARGUMENT...: fails with the status, says so in one line that has the text, prints nothing.
expect_error() {
    wanted=$1
    text=$2
    shift 2
    ends "$wanted" "$@"
    [ "$(wc -l <"$T/err")" -eq 1 ] || fail "$said: not one line: $(cat "$T/err")"
    case $(cat "$T/err") in
    "carma: "*"$text"*) ;;
    *) fail "$said: no '$text' in: $(cat "$T/err")" ;;
    esac
    [ -s "$T/out" ] && fail "$said: printed $(cat "$T/out")"
    return 0
}

expect_output() {
    [ "$(cat "$T/out")" = "$1" ] || fail "$said: printed '$(cat "$T/out")', not '$1'"
}

# expect_out PATTERN...: each is in the output.
expect_out() {
    for pattern; do
        grep -q -- "$pattern" "$T/out" || fail "$said: no '$pattern' in: $(cat "$T/out")"
    done
}

# shows PATTERN ARGUMENT...: as expect_ok, and the pattern is in the output.
shows() {
    shown_pattern=$1
    shift
    expect_ok "$@"
    expect_out "$shown_pattern"
}

# prints TEXT ARGUMENT...: as expect_ok, and that is all of the output.
prints() {
    printed_text=$1
    shift
    expect_ok "$@"
    expect_output "$printed_text"
}

# warns PATTERN ARGUMENT...: as expect_ok, and the pattern is in the messages.
warns() {
    warned_of=$1
    shift
    expect_ok "$@"
    grep -q -- "$warned_of" "$T/err" || fail "$said: no '$warned_of' in: $(cat "$T/err")"
}

# check CODE...: each holds of the output, in Python, as `said` (JSON).
check() {
    /usr/bin/python3 -S -c 'import json, sys
said = json.load(open(sys.argv[1]))
for code in sys.argv[2:]:
    assert eval("(" + code + ")"), f"not {code}: {said}"' "$T/out" "$@" 2>"$T/why" || fail "$said: $(tail -1 "$T/why")"
}

# tells CODE ARGUMENT...: as run, and the code holds of the output, as in check.
tells() {
    told_code=$1
    shift
    run "$@"
    check "$told_code"
}

# program FILE: its text is the input.
program() {
    cat >"$1" && chmod 755 "$1"
}

# expect_golden NAME: the output is tests/golden/NAME. GOLDEN=write makes it so.
expect_golden() {
    [ "${GOLDEN-}" != write ] || cp "$T/out" "$SOURCE/tests/golden/$1"
    diff -u "$SOURCE/tests/golden/$1" "$T/out" >&2 || fail "$said: not as in tests/golden/$1"
}

# draws_pictures: whether matplotlib is here, which pictures need (integrations/bench_plot.py).
draws_pictures() {
    MPLCONFIGDIR=$T/matplotlib
    export MPLCONFIGDIR
    [ -z "${pictures-}" ] || return "$pictures"
    pictures=0
    python3 -c 'import matplotlib' 2>/dev/null || /usr/bin/python3 -c 'import matplotlib' 2>/dev/null || pictures=1
    [ "$pictures" -eq 0 ] || echo "no matplotlib here (python3-matplotlib): no pictures are drawn"
    return "$pictures"
}
