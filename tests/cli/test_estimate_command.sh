#!/bin/sh
# carma estimate of a job without a word on its memory: its command is recorded as the daemon would, or why not.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/auto_capture.sh"

expect_ok estimate --json -- python3 train.py --epochs 3 train.py
by_hand=$(python3 -c 'import json; print(json.load(open("out"))["memory_bytes"])')
run estimate --json --capture "$FAKE/capture"
[ "$(python3 -c 'import json; print(json.load(open("out"))["memory_bytes"])')" = "$by_hand" ] ||
    fail "its command is estimated otherwise than its capture"
python3 - "$FAKE"/request-* <<'PYTHON' || fail "the request is not as it should be"
import json, os, sys
request = json.load(open(sys.argv[1]))
assert request["command"] == ["python3", "train.py", "--epochs", "3", "train.py"], request["command"]
assert request["directory"] == os.getcwd() and request["uid"] == os.getuid() and request["gid"] == os.getgid(), request
assert "without_sandbox" not in request and (request["time_s"], request["memory_bytes"]) == (120, 8 << 30), request
environment = dict(item.split("=", 1) for item in request["environment"])
assert environment["PYTHONPATH"].split(":")[0].endswith("share/carma/python/carma_auto"), environment["PYTHONPATH"]
PYTHON

# A script with its directives and arguments; text for people.
printf '#!/bin/sh\n#CARMA --gpus 1\nexec python3 "$@"\n' >job.sh
shows '^Model  *an automatic capture of train.py, 5 s, captured with PyTorch 1.13' estimate job.sh -- train.py

# What is told goes before; only what may be tried is tried.
before=$(requests)
expect_error 2 "unknown option" estimate --gpu-memory 3G -- python3 train.py
printf '#!/bin/sh\n#CARMA --gpu-memory 3G\nexec python3 train.py\n' >told.sh
expect_ok estimate told.sh
printf '#!/bin/sh\n#CARMA --no-capture\nexec python3 train.py\n' >untried.sh
ends 1 estimate untried.sh
[ "$(requests)" -eq "$before" ] || fail "others were recorded, too"

# Why there is nothing.
while read -r script line; do
    expect_error 1 "no capture of its command: $line" estimate -- python3 "$script.py"
done <<'LINES'
network network.py needs the network: line 3:?URLError
fails carma-sandbox: ended with exit status 3: no data; fails.py: its optimizers made 0 steps
garbage what it recorded cannot be read: it was written by something else, or cut
nothing no Python process of the command imported torch
LINES
expect_error 1 "is expected here" estimate -- python3 bad.py

# Without a sandbox nothing is run, unless that is asked for.
mv "$PREFIX/lib/carma/carma-sandbox" with-all
program "$PREFIX/lib/carma/carma-sandbox" <<SH
#!/bin/sh
cat >"$T/asked"
grep -q without_sandbox "$T/asked" || { echo "user namespaces are off" >&2; exit 2; }
exec "$T/with-all" <"$T/asked"
SH
expect_error 1 "its command is not tried without a sandbox: user namespaces are off" estimate -- python3 train.py
warns '^carma: warning: captured without a sandbox, as asked: user namespaces are off$' \
    estimate --capture auto -- python3 train.py
printf '#!/bin/sh\nexit 1\n' >"$PREFIX/lib/carma/carma-sandbox"
expect_error 1 "no capture of its command: the sandbox was ended" estimate -- python3 train.py
rm "$PREFIX/lib/carma/carma-sandbox"
expect_error 1 "carma-sandbox cannot be started" estimate -- python3 train.py
