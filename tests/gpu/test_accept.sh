#!/bin/sh
# Usage: test_accept.sh PREFIX NVIDIA_SMI
# The acceptance script on a virtual node: its findings there, and that it reports a broken part and goes on.
set -u
prefix=$1
smi=$2 # stands in for nvidia-smi
FAKE_SMI_VNODE=$prefix/bin/carma-vnode
export FAKE_SMI_VNODE
T=$(mktemp -d) || exit 99
trap 'rm -rf "$T"' EXIT
failures=0

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

"$prefix/share/carma/gpu/accept" --quick --virtual --nvidia-smi "$smi" "$T/report" 2>"$T/err" || fail "status $?: $(cat "$T/err")"
python3 - "$T/report" <<'PYTHON' || fail "the report is not as it should be: $(cat "$T/err")"
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
report = json.loads((folder / "accept.json").read_text())
results = {check["name"]: check for check in report["checks"]}
assert len(results) == len(report["checks"]), "two checks of one name"
right = ["carma monitor logs every look", "the same UUIDs as nvidia-smi's", "GPU 0: name", "GPU 0: memory that jobs can use",
         "GPU 0: memory in use", "GPU 0: power", "the same processes as nvidia-smi's", "another program's process is shown", "by its pid", "SM activity responds to load",
         "memory responds to load", "time-slice: 2 at once", "mps: 2 at once: under MPS", "job 1 completes", "a job runs out of GPU memory",
         "it is retried and completes", "trace, exclusive: all complete", "trace, shared: all complete",
         "no process is left", "no memory is left"]
for name in right:
    assert results[name]["result"] == "ok", results[name]
assert all(check["result"] != "failed" for check in report["checks"])
assert all(check["reason"] for check in report["checks"] if check["result"] == "skipped"), "skipped without a reason"
assert results["calibrate"]["reason"] == "needs a CUDA driver"
assert report["facts"]["driver"] == "550.54.15" and report["facts"]["CUDA of the driver"] == "12.4", report["facts"]
assert sum(results["a job runs out of GPU memory"]["figures"]["crashes"]) >= 1
assert results["time-slice: 2 at once"]["figures"]["throughput"] > 1
assert "virtual" in report["facts"]["machine"] and report["facts"]["gpu"] == "NVIDIA H200"
text = (folder / "accept.md").read_text()
assert "0 failed" in text and "| time-slice: 2 at once | ok |" in text
PYTHON

# Jobs of a bundle that cannot be started, readings unlike nvidia-smi's: found and reported, and the rest goes on.
mkdir "$T/broken"
cp -a "$prefix/bin" "$prefix/lib" "$prefix/share" "$T/broken"
rm "$T/broken/lib/carma/carma-shepherd"
FAKE_SMI_WRONG=1 "$T/broken/share/carma/gpu/accept" --quick --virtual --nvidia-smi "$smi" "$T/broken-report" 2>"$T/err"
[ $? -eq 1 ] || fail "a broken bundle passes: $(cat "$T/err")"
grep -q '^failed *GPU 0: memory in use: more than 64 MiB apart' "$T/err" || fail "wrong readings pass: $(cat "$T/err")"
grep -q '^failed *job 1 completes: ' "$T/err" || fail "jobs that cannot start are not told: $(cat "$T/err")"
grep -q '^ok *time-slice: 2 at once' "$T/err" || fail "the other checks were not made: $(cat "$T/err")"
grep -q '^ok *no process is left' "$T/err" || fail "something is left: $(cat "$T/err")"
exit "$((failures > 0))"
