#!/bin/sh
# Output for people and as JSON, from a fake daemon's answers. Usage: test_tables.sh CARMA SOURCE
. "$(dirname "$0")/lib.sh"
start_fake "$SOURCE/tests/fakes/node.json"

for width in 80 120; do
    COLUMNS=$width
    export COLUMNS
    for command in queue gpus history stats "explain 9"; do
        # shellcheck disable=SC2086 # a command and its argument
        expect_ok $command
        expect_golden "cli-${command%% *}-$width.txt"
        [ "$command" = gpus ] && grep -v -e '^GPU .*: ' -e '^no permission' "$T/out" >"$T/table" || cp "$T/out" "$T/table"
        awk -v width="$width" 'length > width { exit 1 }' "$T/table" || fail "$said: wider than $width columns"
    done
    # The first time of many: its reader goes away.
    "$CARMA" gpus --watch=0.01 | sed '/^$/q' >"$T/out"
    said="carma gpus --watch"
    expect_golden "cli-gpus-watch-$width.txt"
done
unset COLUMNS
expect_ok stats --csv
expect_golden cli-stats.csv
run history -n 20 --csv
expect_golden cli-history.csv
run show 22
expect_golden cli-show-history.txt
shows '"modelled_energy_mj": 23456789012' stats --by user --json
expect_error 2 "user, account, name" stats --by gpu
expect_ok show 9
expect_golden cli-show.txt
run show 21
expect_golden cli-show-ended.txt
run show 12
expect_golden cli-show-estimate.txt
run explain 12
expect_golden cli-explain-estimate.txt

# In no place does it have anything that a terminal would obey.
shows 'a-name-that-is-much-longer-than-any-table-would-like-it-to-be ' queue
LC_ALL=C.UTF-8 "$CARMA" queue >"$T/utf8"
for file in "$T/out" "$T/utf8"; do
    if tr -d '\n' <"$file" | LC_ALL=C grep -q '[[:cntrl:]]'; then
        fail "control characters in $(cat -v "$file")"
    fi
done
[ "$(wc -l <"$T/out")" -eq 6 ] || fail "a name made lines of its own"

# --json is the daemon's answer.
for command in queue gpus stats "show 9" "explain 9"; do
    case $command in
    queue) path=/v1/jobs ;;
    gpus) path=/v1/gpus ;;
    stats) path='/v1/stats?by=user' ;;
    show*) path=/v1/jobs/9 ;;
    *) path=/v1/jobs/9/explain ;;
    esac
    # shellcheck disable=SC2086 # a command and its argument
    expect_ok $command --json
    python3 - "$T/answers.json" "GET $path" "$T/out" <<'PYTHON' || fail "$said: other JSON than the daemon's"
import json, sys
sys.exit(json.load(open(sys.argv[1]))[sys.argv[2]][1] != json.load(open(sys.argv[3])))
PYTHON
done

# A closed pipe ends it quietly; a full disk does not.
"$CARMA" queue 2>"$T/err" | true
[ -s "$T/err" ] && fail "a closed pipe was told: $(cat "$T/err")"
if [ -w /dev/full ]; then
    "$CARMA" queue >/dev/full 2>"$T/err" && fail "a full disk went unnoticed"
    grep -q '^carma: cannot write' "$T/err" || fail "a full disk was not told"
fi
expect_error 1 "no such thing: /v1/jobs/4" show 4
