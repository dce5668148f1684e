#!/bin/sh
# carma bench collocate on a virtual node: refusals, failures in a run, epochs, missing modes.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/collocate.sh"

# Faults of the command line, and a machine without GPUs.
expect_error 2 "which one" bench
expect_error 2 "what is to be run?" bench collocate
expect_error 2 "not both" bench collocate --commands "$T/none" -- true
expect_error 2 "not a list of numbers from 1 to 48" bench collocate --degrees 0,2 -- true
expect_error 2 "not a list of numbers from 1 to 48" bench collocate --degrees 4-2 -- true
expect_error 2 "there is no mode 'cuda'" bench collocate --mode mps,cuda -- true
expect_error 2 "--mix names commands of a file" bench collocate --mix a+b -- true
expect_error 2 "not both" bench collocate --epochs 2 --epoch-pattern x -- true
expect_error 1 "not a regular expression" bench collocate --epoch-pattern '(' -- true
expect_error 1 "$T/none" bench collocate --commands "$T/none"
printf '# two\n\nsmall: true\nsmall: true\n' >"$T/bad"
expect_error 1 "bad:4: there are two commands 'small'" bench collocate --commands "$T/bad"
printf 'small true\n' >"$T/bad"
expect_error 1 "bad:1: 'small true' is not NAME: COMMAND" bench collocate --commands "$T/bad"
printf 'small: true\n' >"$T/bad"
expect_error 1 "--mix small+large: there is no command 'large'" bench collocate --commands "$T/bad" --mix small+large
expect_error 1 "no GPU can be read: " bench collocate -- true

start_node a100x4-40g 200
expect_error 1 "--gpu 9: there is no such GPU" bench collocate --gpu 9 -- true
expect_error 1 "--mps-control $T/none: No such file" bench collocate --mps-control "$T/none" -- true
expect_error 1 "cannot start $T/none: No such file" bench collocate --degrees 1 -- "$T/none"
[ -z "$(ls "$TMPDIR")" ] || fail "left behind: $(ls "$TMPDIR")"
mkdir -p "$T/planted/alone-true-x-1"
chmod 777 "$T/planted/alone-true-x-1" # anybody can put a link to a file of ours there
expect_error 1 "alone-true-x-1: others can write there" bench collocate --degrees 1 --output "$T/planted" -- true

# Too much memory for three: a finding, and the others have their figures. The table fits the terminal.
COLUMNS=80
export COLUMNS
ends 1 bench collocate --degrees 1-3 --mode time-slice,mig -- "$TRAIN" --memory 15G --seconds 60
grep -q '^carma: 1 of 6 runs failed: their output is in' "$T/err" || fail "$said: $(cat "$T/err")"
grep -q '^carma-train x 3, time-slice: failed: carma-train (job [123] of 3) ended with status 1: .*CUDA out of memory' \
    "$T/out" || fail "$said: $(cat "$T/out")"
grep -q '^carma-train x 2  time-slice  *.* 30.0 GiB ' "$T/out" || fail "$said: no figures: $(cat "$T/out")"
[ "$(grep -c '^mig: skipped: there are no MIG instances$' "$T/out")" -eq 1 ] || fail "$said: $(cat "$T/out")"
[ "$(wc -L <"$T/out")" -le 250 ] && [ "$(head -n 1 "$T/out" | wc -L)" -le 80 ] || fail "$said: too wide"
unset COLUMNS
rm -rf "${TMPDIR:?}"/*

# Epochs by lines of output: the first is a warm-up. A pattern that matches nothing is not a measurement.
cat >"$T/epochs.sh" <<'END'
sleep 1.5
for epoch in 1 2 3; do
    printf 'step\repoch %s\n' "$epoch"
    sleep 0.1
done
sleep 0.5
END
expect_ok bench collocate --degrees 1 --epoch-pattern '^epoch [0-9]+' --json -- sh "$T/epochs.sh"
# Node time: 0.1 s of the wall clock are 20 s.
check 'said["runs"][0]["each"][0]["epochs"] == 3' \
    '20 <= said["runs"][0]["each"][0]["epoch_s"] <= said["runs"][0]["each"][0]["seconds"] / 4'
# Metrics are of the time in which all train: not of two seconds before that.
expect_ok bench collocate --degrees 1 --epoch-pattern '% done' --json -- sh -c 'sleep 2; exec "$0" "$@"' "$TRAIN" --memory 1G \
    --sm-activity 0.6 --seconds 600
check 'abs((run := said["runs"][0])["metrics"]["sm_activity"]["mean"] - 0.6) < 0.05' \
    'abs(run["power_w"] - 224) < 10 and run["energy_j"] < 0.85 * run["power_w"] * run["total_s"]'
ends 1 bench collocate --degrees 1 --epoch-pattern '^nothing' -- sh "$T/epochs.sh"
expect_out 'printed no line that matches --epoch-pattern'
rm -rf "${TMPDIR:?}"/*

# Without an MPS daemon there are no runs under MPS; with a broken one neither.
PATH=/usr/bin:/bin run bench collocate --degrees 1,2 --mode mps -- sleep 0.1
expect_status 0
expect_out '^mps: skipped: no nvidia-cuda-mps-control on the PATH'
shows '^mps: skipped: .*/false' bench collocate --degrees 2 --mode mps --mps-control /bin/false -- sleep 0.1
expect_nothing_left

# A job that does not use the GPU: MPS was not used, and it says so.
shows '^sleep x 2, mps: no MPS client was observed' \
    bench collocate --degrees 2 --mode mps --mps-control "$T/mps-control" -- sleep 0.1
