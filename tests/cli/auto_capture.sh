# For tests of automatic captures: sourced after node.sh. A stand-in (tests/fakes/sandbox.py) plays carma-sandbox, and keeps the
# requests in $FAKE.
# shellcheck shell=sh
FAKE=$T/sandbox
mkdir "$FAKE"
cp "$SOURCE/tests/golden/model.capture" "$FAKE/capture"
rm -f "$PREFIX/lib/carma/carma-sandbox" # a link to the real one
printf '#!/bin/sh\nexec python3 "%s" "%s" "$@"\n' "$SOURCE/tests/fakes/sandbox.py" "$FAKE" >"$PREFIX/lib/carma/carma-sandbox"
chmod 755 "$PREFIX/lib/carma/carma-sandbox"

# A command like any that trains: it goes on until it is told to stop.
printf 'import pathlib, sys, time\nwhile not pathlib.Path("%s").exists():\n    time.sleep(0.05)\n' "$T/stop" >"$T/train.py"
for name in later loop ranks network fails garbage cut bad nothing; do cp "$T/train.py" "$T/$name.py"; done

# requests: how many captures were begun; runs_now: how many of them run.
requests() {
    find "$FAKE" -name 'request-*' ! -name '*.part' | wc -l
}

runs_now() {
    running=0
    for file in "$FAKE"/request-*; do ! kill -0 "${file##*-}" 2>/dev/null || running=$((running + 1)); done
    echo "$running"
}

# until_requests N; until_runs N: waits until there are N.
until_requests() {
    wait_for '[ "$(requests)" -eq "$1" ]' "$@" || fail "$(requests) captures were begun, not $1"
}

until_runs() {
    wait_for '[ "$(runs_now)" -eq "$1" ]' "$@" || fail "$(runs_now) captures run, not $1"
}

# fill_node: every GPU is taken, until all jobs are cancelled.
fill_node() {
    for _ in 1 2 3 4; do
        run submit --exclusive --gpu-memory 10G -- "$TRAIN" --workload resnet --seconds 1000000
    done
}
