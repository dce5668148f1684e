#!/bin/sh
# carma trace: the content of a trace, and traces built from published ones. Usage: test_trace.sh CARMA SOURCE
. "$(dirname "$0")/lib.sh"

CARMA_PREFIX=$T/prefix
export CARMA_PREFIX
mkdir -p "$T/prefix/share"
ln -s "$SOURCE/data" "$T/prefix/share/carma"
cp "$SOURCE/tests/fakes/traces/"* "$T"
cp "$SOURCE/data/traces/thesis_90.csv" "$T"
cd "$T" || exit 99 # files are named as a user would: the reports repeat the name

# Showing: tables, JSON, the plot.
COLUMNS=80 run trace show thesis_90.csv
expect_status 0
expect_golden cli-trace-show.txt
shows '^Jobs         2 (philly-vc); left out: 1 that never ran$' trace show philly_vc.csv --vc ab12
expect_ok trace show run_times.csv
grep -q 'ARRIVALS' "$T/out" && fail "$said: arrivals of run times: $(cat "$T/out")"
expect_ok trace show pods.csv --bin 20s --json
expect_golden cli-trace-show.json
run trace show philly_vc.csv.gz --json
cp "$T/out" "$T/packed"
run trace show philly_vc.csv --json
sed 's/philly_vc.csv.gz/philly_vc.csv/' "$T/packed" | cmp -s - "$T/out" || fail "packed and plain differ"
for trace in thesis_90.csv run_times.csv; do
    draws_pictures || break
    expect_ok trace show "$trace" --plot "$T/plot.svg"
    python3 - "$T/plot.svg" "$trace" <<'PYTHON' || fail "$said: not the plot that was asked for"
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
assert any(sys.argv[2] in t for t in texts) and "run times" in texts, texts
timeless = sys.argv[2] == "run_times.csv"
assert any(t.startswith("arrivals per ") for t in texts) != timeless, texts
assert ("workloads" in texts) == sys.argv[2].startswith("thesis"), texts
PYTHON
done

# Building.
expect_ok trace build philly_vc.csv --max-gpus 4 --keep gpus,durations --min-duration 60s --mix 1/1/0 --load 0.5 --seed 7
expect_golden cli-trace-build.csv
cp "$T/out" "$T/first.csv"
expect_ok trace build philly_vc.csv.gz --max-gpus 4 --keep gpus,durations --min-duration 60s --mix 1/1/0 --load 0.5 --seed 7 \
    -o "$T/second.csv"
expect_output "$T/second.csv: 3 jobs over 4:16:00; light 2, medium 1, heavy 0"
sed 's/philly_vc.csv.gz/philly_vc.csv/' "$T/second.csv" | cmp -s - "$T/first.csv" || fail "-o writes another trace"
expect_ok trace show "$T/second.csv"
shows '^# Jobs that are light, medium, heavy: 0, 37, 8\.$' trace build thesis_90.csv --jobs 45 --window 2h --mix 0/83/17
expect_ok trace build thesis_90.csv
grep -v '^#' "$SOURCE/data/traces/thesis_90.csv" >"$T/rows"
grep -v '^#' "$T/out" | cmp -s - "$T/rows" || fail "$said: a trace that is not to change does"
printf 'id,gpus,peak_mib,resident_mib,solo_runtime_s,sm_activity\nsmall,1,100,100,60,0.1\n' >own.csv
printf 'arrival_s,workload\n0,small\n' >small.csv
expect_ok trace show small.csv --workloads own.csv

# Bad usage.
expect_error 2 "which one: build or show?" trace
expect_error 2 "no 'trace paint'" trace paint
for command in build show; do
    expect_error 2 "trace $command: which trace" trace "$command"
    expect_error 2 "one trace at a time" trace "$command" a.csv b.csv
    expect_error 2 "trace $command: unknown option '--frob'" trace "$command" --frob
    expect_error 1 "none.csv" trace "$command" none.csv
    shows "^Usage: carma trace $command" help trace "$command"
done
expect_error 2 "one command at a time" help trace paint
expect_error 2 "bin of 0 s is out of range" trace show --bin 0s pods.csv
expect_error 1 "pods.csv: it has no virtual clusters" trace show --vc ab12 pods.csv
mkdir without
echo 'raise ImportError' >without/matplotlib.py
PYTHONPATH=$PWD/without expect_error 1 "apt install python3-matplotlib" trace show --plot "$T/plot.svg" pods.csv
! draws_pictures || expect_error 1 "nowhere" trace show --plot "$T/nowhere/plot.svg" pods.csv
for mix in 65/27 65/27/8/1 a/b/c 0/0/0 -1/1/1 1//1 99999999/1/1; do
    expect_error 2 "mix '$mix' is not three shares" trace build "--mix=$mix" pods.csv
done
expect_error 2 "--to is not after --from" trace build --from 2h --to 1h pods.csv
expect_error 2 "--to or --window, not both" trace build --window 2h --to 3h pods.csv
expect_error 2 "--stretch or --load, not both" trace build --stretch 2 --load 0.9 pods.csv
expect_error 2 "stretch 'nan' is not" trace build --stretch nan pods.csv
expect_error 2 "load '0' is not" trace build --load 0 pods.csv
expect_error 2 "keep 'time' is not" trace build --keep gpus,time pods.csv
expect_error 2 "are for --keep durations" trace build --max-duration 1h pods.csv
expect_error 2 "shorter than" trace build --keep durations --max-duration 1h --min-duration 2h pods.csv
expect_error 2 "jobs: 0 is out of range" trace build --jobs 0 pods.csv
expect_error 2 "seed: -1" trace build --seed -1 pods.csv
expect_error 1 "pods.csv: 5 jobs are asked for and the window has 3" trace build --jobs 5 pods.csv
expect_error 1 "pods.csv: no job arrives in that window: they arrive from 0 s to 30 s" trace build --from 1h pods.csv
expect_error 1 "run_times.csv:2: runtime_s alone" trace build run_times.csv

# Bad files: FILE:LINE: value: remedy, in one line, however bad.
printf 'vc,submit_s,gpus,duration_s_v100\na,0,1,60\na,-3,1,60\n' >negative.csv
expect_error 1 "negative.csv:3: submit_s -3 is out of range: 0 to 1000000000" trace show negative.csv
printf 'arrival_s,workload,color\n0,resnet,red\n' >column.csv
# Published traces that are not read (docs/researcher.md names them): Helios', Alibaba's PAI.
for header in job_id,user,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue \
    job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type; do
    echo "$header" >other.csv
    expect_error 1 "other.csv:1: " trace build other.csv
done
expect_error 1 "column.csv:1: unknown column 'color': remove it" trace show column.csv
# A name that would make lines of its own in a comment of the trace that is built.
cp thesis.csv "a
0,vgg"
run trace build "a
0,vgg"
expect_status 0
[ "$(grep -vc '^#' "$T/out")" -eq 4 ] || fail "$said: a file name made a row: $(cat "$T/out")"
