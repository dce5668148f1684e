#!/bin/sh
# carma simulate: golden runs of every policy, its JSON and its time line, seeds, and refusals.
. "$(dirname "$0")/lib.sh"

CARMA_PREFIX=$T/prefix
export CARMA_PREFIX
mkdir -p "$T/prefix/share"
ln -s "$SOURCE/data" "$T/prefix/share/carma"
cd "$T" || exit 99
cp "$SOURCE/data/traces/thesis_60.csv" "$SOURCE/data/traces/thesis_90.csv" .
printf 'arrival_s,workload\n0,gpt2_large_2\n5,resnet\n10,vgg3\n15,vgg3\n' >four.csv

# Golden runs: a policy's decisions may change only knowingly.
plain=exclusive,round-robin,magm,lug,mug,first-fit,best-fit
presets=exclusive,thesis,thesis+lug,thesis+round-robin,code-2025,off@oracle,obf@oracle,owf@oracle,olug@oracle,horus,lucid,carma@declared
for trace in 60 90; do
    expect_ok simulate --trace thesis_$trace.csv --seeds 3 --jitter 0.03 --estimator recorded:gpumemnet --compare $plain
    expect_golden simulate-policies-$trace.txt
    expect_ok simulate --trace thesis_$trace.csv --seeds 3 --jitter 0.03 --compare $presets
    expect_golden simulate-presets-$trace.txt
done
run simulate --trace thesis_60.csv \
    --compare magm,magm@oracle,magm@recorded:measured,magm@recorded:horus,magm@recorded:faketensor,magm@recorded:gpumemnet
expect_golden simulate-estimators.txt
run simulate --trace thesis_60.csv --share time-slice --policy owf@oracle
expect_golden simulate-time-slice.txt
printf 'arrival_s,workload,gpus\n0,resnet,1\n1,resnet,2\n' >one_of_two.csv
ends 3 simulate --trace one_of_two.csv --policy exclusive/max_gpus_per_user=1
ends 3 simulate --trace thesis_60.csv --share mig:4 --policy exclusive --estimator oracle
expect_golden simulate-mig.txt

# A narrow terminal leaves no change without its figure.
COLUMNS=80 "$CARMA" simulate --trace thesis_60.csv --compare exclusive,carma >out
awk 'NR == 1 && (/OOM/ && !/energy/ && gsub(/change/, "") != 3 || length > 80)' out >narrow
[ ! -s narrow ] || fail "80 columns: $(cat out)"

# A run in which a job was refused, given up or would wait for ever is incomplete: nothing is compared with it.
ends 3 simulate --trace thesis_60.csv --share mig:1 --compare exclusive@oracle,exclusive@declared,carma
expect_golden simulate-incomplete.txt
grep -q ' [-+][0-9.]*%' "$T/out" && fail "$said: a change of an incomplete run: $(cat "$T/out")"
ends 3 simulate --trace thesis_60.csv --compare exclusive,exclusive/max_gpus_per_user=1,carma --json
check '[policy["incomplete"] for policy in said] == [False, True, False]' \
    '[policy["never_ended"]["mean"] for policy in said] == [0, 3, 0]' \
    'said[1]["refused"]["mean"] == said[1]["given_up"]["mean"] == 0'
ends 3 simulate --trace thesis_60.csv --compare exclusive,exclusive/max_gpus_per_user=1,carma
[ "$(grep -c '^exclusive.* [-+][0-9.]*%' "$T/out")" = 0 ] || fail "$said: $(cat "$T/out")"
expect_out '^carma .* -[0-9.]*% '
expect_out '^exclusive/max_gpus_per_user=1: incomplete, not comparable: of 60 jobs 3 never ended (one: 2 GPUs needed'
ends 3 simulate --trace thesis_60.csv --compare exclusive/max_gpus_per_user=1,exclusive,carma
grep -q ' [-+][0-9.]*%' "$T/out" && fail "$said: a change against an incomplete run: $(cat "$T/out")"

# The formats.
expect_ok simulate --trace four.csv --policy thesis --seeds 2 --jitter 0.01 --json --steps 4 --timeline four-timeline.csv
python3 -c 'import json, sys
def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return float("%.9g" % value) if isinstance(value, float) else value
for policy in json.load(open(sys.argv[1])):
    print(json.dumps(rounded(policy), indent=1))' "$T/out" >"$T/rounded"
mv "$T/rounded" "$T/out"
expect_golden simulate.json
mv four-timeline.csv "$T/out"
expect_golden simulate-timeline.csv

# A setting written with a policy goes before one for all, and has the same effect.
run simulate --trace thesis_60.csv --compare carma,carma/settle=60s/share=exclusive --set settle=20s --json
mv "$T/out" several
run simulate --trace thesis_60.csv --policy carma --set settle=20s --json
mv "$T/out" one
run simulate --trace thesis_60.csv --policy carma --set settle=60s --share exclusive --json
python3 - several one "$T/out" <<'PYTHON' || fail "settings of a policy's own"
import json, sys
several, one, other = (json.load(open(name)) for name in sys.argv[1:])
assert several[1].pop("policy") == "carma/settle=60s/share=exclusive" and other[0].pop("policy") == "carma"
assert several[0] == one[0] and several[1] == other[0] and several[0] != several[1]
assert several[0]["share"] == "auto" and several[1]["share"] == "exclusive"
PYTHON

# The same seeds give the same figures, others do not; one seed has no spread.
run simulate --trace thesis_60.csv --seeds 2 --jitter 0.03 --json
mv "$T/out" first.json
run simulate --trace thesis_60.csv --seeds 2 --jitter 0.03 --json
cmp -s first.json "$T/out" || fail "$said: another result under the same seeds"
run simulate --trace thesis_60.csv --first-seed 2 --jitter 0.03 --json
mv "$T/out" second.json
run simulate --trace thesis_60.csv --jitter 0.03 --json
python3 -c 'import json, sys
one, two, other = (json.load(open(path))[0] for path in sys.argv[1:])
assert abs(one["jct_s"]["mean"] + other["jct_s"]["mean"] - 2 * two["jct_s"]["mean"]) < 1e-6
assert one["seeds"] == 1 and two["seeds"] == 2
assert all(value["sd"] == 0 for value in one.values() if isinstance(value, dict) and "sd" in value)
assert two["makespan_s"]["sd"] > 0 and two["makespan_s"]["mean"] != one["makespan_s"]["mean"]
assert set(one) == set("policy jobs seeds makespan_s wait_s run_time_s jct_s jct_p95_s wait_p95_s energy_j gpu_held_s oom moved "
    "sharing_slowdown_mean sharing_slowdown_p95 sharing_slowdown_max bounded_slowdown_mean bounded_slowdown_p95 "
    "bounded_slowdown_max jain_index users incomplete refused given_up never_ended predicted_slowdown_max smact_mean "
    "share requests".split()), sorted(one)' "$T/out" first.json second.json ||
    fail "$said: seeds"
shows "jobs moved off a GPU  *[1-9]" simulate --trace thesis_60.csv --seeds 5 --policy default@auto --checkpoints

# The jobs' requests by each estimator, compared with their needs: 44 of the trace's jobs have a workload with a
# summary. By default it is as carmad would: recorded figures of the estimator's name, else computed.
expect_ok simulate --trace thesis_60.csv --json --compare \
    carma,carma@replay,carma@horus,carma@faketensor,carma@gpumemnet,horus,carma@history,carma@oracle
python3 - "$T/out" <<'PYTHON' || fail "$said: $(cat "$T/out")"
import json, sys
requests = {policy["policy"]: policy["requests"] for policy in json.load(open(sys.argv[1]))}
assert requests["carma@history"] is None and requests["carma@oracle"] is None
assert requests["horus"]["by"] == {"recorded:horus": 60}, requests["horus"]
for name in "replay horus faketensor gpumemnet".split():
    one = requests["carma@" + name]
    assert one["by"] == {name: 44} and one["jobs"] == one["over"] + one["under"] == 44, one
assert requests["carma"]["by"] == {"replay": 44} and requests["carma"]["under"] == 0, requests["carma"]
assert requests["carma"]["over_mean"] < 0.3 < requests["carma@gpumemnet"]["over_mean"], requests
assert requests["carma@faketensor"]["under"] > 0, requests
PYTHON
run simulate --trace thesis_60.csv --compare carma@replay,magm@replay,lug@recorded:horus
tail -n 2 "$T/out" >"$T/lines"
mv "$T/lines" "$T/out"
expect_out "^carma@replay, magm@replay: 44 of 60 jobs request memory by replay; 44 enough, [0-9.]*% too much on average$"
grep -q "^lug@recorded:horus: 60 of 60 jobs request memory by recorded:horus; 24 enough, 89.1% too much on average; 36 not enough, 23.7% too little$" \
    "$T/out" || fail "$said: $(cat "$T/out")"
printf 'id,gpus,peak_mib,resident_mib,solo_runtime_s,sm_activity,batch_size,summary\na,1,4000,4000,60,0.5,8,bad.txt\n' >own.csv
printf 'arrival_s,workload\n0,a\n' >own-trace.csv
echo nonsense >bad.txt
expect_error 1 "bad.txt:1:" simulate --trace own-trace.csv --workloads own.csv --estimator horus
rm bad.txt
expect_error 1 "bad.txt" simulate --trace own-trace.csv --workloads own.csv --estimator horus
expect_ok simulate --trace own-trace.csv --workloads own.csv --estimator recorded:horus

# Settings stand above a preset's own.
run simulate --trace thesis_60.csv --policy thesis --set sm_activity_cap=10% --json
mv "$T/out" capped.json
run simulate --trace thesis_60.csv --policy thesis --json
cmp -s capped.json "$T/out" && fail "$said: --set did nothing"

# Pictures.
if draws_pictures; then
    plot=$SOURCE/integrations/bench_plot.py
    expect_ok simulate --trace four.csv --compare exclusive,thesis/settle=60s --json
    "$plot" "$T/out" compare.svg && grep -qF thesis/settle=60s compare.svg || fail "no picture of a comparison"
    expect_ok simulate --trace four.csv --policy thesis --timeline gpus.csv
    "$plot" gpus.csv gpus.svg && grep -qF 'GPU 3' gpus.svg || fail "no picture of a time line"
    # Jobs that are all refused make an empty picture.
    ends 3 simulate --trace four.csv --gpu-memory 1G --estimator oracle --timeline gpus.csv
    "$plot" gpus.csv none.svg && grep -q . none.svg || fail "$said: no picture"
fi

# Refusals: one line with the file, the line and the value where there are such.
printf 'arrival_s,workload\n-1,resnet\n' >negative.csv
printf 'arrival_s,workload,gpus\n0,resnet,2\n1,resnet,5\n' >wide.csv
printf 'arrival_s,workload,colour\n0,resnet,red\n' >column.csv
printf 'arrival_s,workload,gpus,duration_s\n0,resnet,1,0\n' >nothing.csv
expect_error 1 "negative.csv:2: arrival_s -1" simulate --trace negative.csv
expect_error 1 "wide.csv:3: a job needs 5 GPUs, the node has 4" simulate --trace wide.csv
expect_error 1 "column.csv" simulate --trace column.csv
expect_error 1 "nonesuch.csv" simulate --trace nonesuch.csv
expect_error 1 "node profile 'nonesuch'" simulate --trace four.csv --node nonesuch
expect_error 2 "column 'nonesuch' is not known: measured" simulate --trace four.csv --estimator recorded:nonesuch
expect_error 2 "estimator 'nonesuch' is not known: oracle" simulate --trace four.csv --estimator nonesuch
expect_error 2 "policy 'nonesuch'" simulate --trace four.csv --policy nonesuch
expect_error 2 "policy 'nonesuch'" simulate --trace four.csv --compare magm,nonesuch
expect_error 2 "column 'x' is not known" simulate --trace four.csv --compare magm,thesis@recorded:x
expect_error 2 "at least two" simulate --trace four.csv --compare magm
expect_error 2 "'policy=lug': name the policy" simulate --trace four.csv --set policy=lug

# Two users' jobs on a GPU: together where one MPS server serves all, one after the other where each has its own. The
# presets of the thesis have the one server, unless --share or a policy's own setting says otherwise.
printf 'arrival_s,workload,uid\n0,resnet,1\n5,resnet,2\n' >users.csv
printf 'arrival_s,workload\n0,resnet\n5,resnet\n' >user.csv
makespan() {
    expect_ok simulate --gpus 1 --policy carma@oracle --json "$@"
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[0]["makespan_s"]["mean"])' "$T/out"
}
together=$(makespan --trace users.csv --share mps:node)
apart=$(makespan --trace users.csv --share mps:gpu)
[ "$apart" != "$together" ] || fail "two users shared an MPS server"
of_thesis=$(makespan --trace users.csv --policy thesis@oracle)
while read -r wanted words; do
    # shellcheck disable=SC2086 # words
    seconds=$(makespan --trace $words)
    [ "$seconds" = "$wanted" ] || fail "$words: $seconds s, not $wanted"
done <<END
$together user.csv --share mps:gpu
$apart users.csv --share mps
$apart users.csv
$together users.csv --share mps --policy carma@oracle/share=mps:node
$of_thesis users.csv --policy thesis@oracle --share mps:node
$apart user.csv --share exclusive
END
[ "$(makespan --trace users.csv --policy thesis@oracle --share mps)" != "$of_thesis" ] || fail "--share changed nothing of thesis"

expect_error 2 "share 'mig:5'" simulate --trace four.csv --share mig:5
expect_error 2 "share 'nonesuch'" simulate --trace four.csv --share nonesuch
expect_error 2 "jitter '1'" simulate --trace four.csv --jitter 1
expect_error 2 "which trace" simulate --policy magm
expect_error 2 "leave --compare out" simulate --trace four.csv --compare magm,lug --timeline x.csv
expect_error 2 "add that" simulate --trace four.csv --steps 4
expect_error 2 "out of range" simulate --trace four.csv --steps 0 --json
expect_error 2 "settle '60' is not allowed" simulate --trace four.csv --policy carma/settle=60
expect_error 2 "by --policy or --compare" simulate --trace four.csv --policy carma/policy=lug
expect_error 2 "say so by --share" simulate --trace four.csv --set share=mps
expect_error 2 "share 'mps:user'" simulate --trace four.csv --share mps:user
expect_error 1 "store.db" simulate --replay "$T"
# A trace by its name.
expect_ok simulate --trace thesis_60 --policy exclusive --json
expect_error 1 "no_such_trace" simulate --trace no_such_trace
