#!/bin/sh
# The use of a model's summary: the job's memory is estimated when it is submitted, and told with its source. It is kept
# over a restart, and replaced by its runs' memory. An unreadable summary is refused.
. "$(dirname "$0")/node.sh"
start_all a100x4-40g 120 --config /dev/null
cp "$SOURCE/data/summaries/resnet50-224.txt" resnet50.summary

# The estimate is the request; show, explain and the API say the same sentence.
prints 1 submit --parsable --hold --summary resnet50.summary --batch-size 32 -- "$TRAIN" --workload resnet --seconds 240
[ -s "$T/err" ] && fail "$said: complained: $(cat "$T/err")"
"$CARMA" show --json 1 >first.json
tells '(job := said) and (estimate := job["estimate"]) and job["reservation_source"] == "estimated" and job["reserved_bytes"] == estimate["bytes"]
    and 3e9 < estimate["median_bytes"] <= estimate["bytes"] < 9e9
    and estimate["quantile_permille"] == 980 and 0 < estimate["confidence_permille"] <= 1000
    and estimate["source"] == "replay" and estimate["from"] == "resnet50.summary" and estimate["warnings"] == []
    and estimate["machine_profile"] == "a100-40g-thesis" and 100 <= estimate["sm_activity_permille"] <= 1000' show --json 1
sentence=$(field 1 estimate.text)
case $sentence in
"estimated "*" GiB by replay (confidence 0."*", at quantile 0.98) from resnet50.summary") ;;
*) fail "the sentence is: $sentence" ;;
esac
run explain 1
grep -qxF "memory: ${sentence#estimated }" "$T/out" || grep -qF "on each GPU: $sentence" "$T/out" ||
    fail "$said: $(cat "$T/out")"
shows "^Estimate   $sentence$" show 1

# More to train with needs more; a declared figure stands, with a warning where it is less than the best guess.
expect_ok submit --parsable --hold --summary resnet50.summary --batch-size 64 --optimizer sgd --precision amp -- true
run submit --parsable --hold --summary resnet50.summary --batch-size 64 -- true
warns "^carma: true: warning: the declared 2.0 GiB is less than the [0-9.]* GiB that it is estimated to need$" \
    submit --parsable --hold --gpu-memory 2G --summary resnet50.summary --batch-size 64 -- true
[ "$(field 3 reserved_bytes)" -gt "$(field 1 reserved_bytes)" ] || fail "batch 64 does not need more than 32"
[ "$(field 2 reserved_bytes)" -lt "$(field 3 reserved_bytes)" ] || fail "SGD and AMP do not need less than Adam and fp32"
expect_field 4 reservation_source declared reserved_bytes 2147483648 estimate.source replay
shows "^memory: 2.0 GiB on each GPU, declared: estimated " explain 4

# An unknown figure is not estimated; unknown layers are reported, and the job is taken.
warns "warning: resnet50.summary: no batch size, so nothing is estimated: give --batch-size$" \
    submit --parsable --hold --summary resnet50.summary -- true
expect_field 5 reservation_source prior
sed 's/ Linear-/  Quark-/' resnet50.summary >quark.summary
warns "warning: .*Quark" submit --parsable --hold --summary quark.summary --batch-size 32 -- true
[ "$(field 6 estimate.confidence_permille)" -lt "$(field 1 estimate.confidence_permille)" ] ||
    fail "an unknown layer costs no confidence"
shows "^Warning    .*Quark" show 6

# More than any GPU has is no reason to refuse it: it gets whole ones.
warns "warning: the estimate of [0-9.]* GiB is more than a GPU has (39.6 GiB): the job is given a whole one$" \
    submit --parsable --hold -G 2 --summary resnet50.summary --batch-size 1024 -- true
[ "$(field 7 reserved_bytes)" -lt "$(field 7 estimate.bytes)" ] || fail "more is requested than a GPU has"
expect_field 7 reservation_source estimated

# A file that is not a summary, or a cut one, is refused in one line, with all other jobs of the request.
echo 'Total params: 1' >nonsense.txt
head -n 40 resnet50.summary >cut.summary
sed 's/9,408/9,409/' resnet50.summary >other.summary
expect_error 1 "nonsense.txt" submit --summary nonsense.txt --batch-size 8 -- true
expect_error 1 "cut.summary:" submit --summary cut.summary --batch-size 8 -- true
cat >good.rad <<'JOB'
true
model: resnet50.summary
batch_size: 8
optimizer: momentum
JOB
sed 's/resnet50/cut/' good.rad >bad.rad
expect_error 1 "job 2 of the request: cut.summary:" submit good.rad bad.rad
run queue --all --json
[ "$(grep -c '"id"' "$T/out")" -eq 7 ] || fail "a refused job was taken: $(cat "$T/out")"

# Where the memory is declared there is no need of it: a warning is enough.
warns "warning: nonsense.txt:1: " submit --parsable --hold --gpu-memory 3G --summary nonsense.txt --batch-size 8 -- true
expect_field 8 reserved_bytes 3221225472 estimate.bytes null

# A restart keeps it to the letter, and makes nothing anew.
restart_daemon --config /dev/null --set share=mps
"$CARMA" show --json 1 >again.json
cmp -s first.json again.json || fail "a restart changed it: $(diff first.json again.json)"
# The texts themselves are not kept.
python3 -c 'import sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute("SELECT body FROM spec").fetchall()
assert len(rows) == 8 and not any("Conv2d" in body for body, in rows), rows' "$STATE/store.db" ||
    fail "the store holds the summaries"

# The job runs within its estimate, and the next of its kind uses its observed memory.
run release 1
expect_ok wait 1
expect_field 1 crashes 0
[ "$(field 1 placements.0.observed_bytes)" -le "$(field 1 estimate.bytes)" ] || fail "it held more than was estimated"
run submit --parsable --hold --summary resnet50.summary --batch-size 32 -- "$TRAIN" --workload resnet --seconds 240
expect_field 9 reservation_source learned estimate.source replay
shows "on each GPU, learned from earlier runs: estimated " explain 9
run release 9
run wait 9
# What it was seen to use may go before what was learned: its memory is read at moments.
case $(field 9 reservation_source) in
learned | observed) ;;
*) fail "job 9: reservation_source is '$(field 9 reservation_source)'" ;;
esac
[ "$(field 9 reserved_bytes)" -lt "$(field 1 reserved_bytes)" ] || fail "the learned memory is not less than the estimate"
run submit --parsable --hold --summary quark.summary --batch-size 32 -- "$TRAIN" --workload resnet --seconds 240
expect_field 10 reservation_source estimated # another model: not the same job

# Eight jobs never seen before on four GPUs: by their estimates they share at once, and none runs out of memory.
{
    echo arrival_s,workload,duration_s
    for workload in efficientNet3 mobilenet3 efficientNet3 mobilenet3 resnet2 efficientNet2 resnet2 efficientNet2; do
        echo "0,$workload,240"
    done
} >eight.csv
expect_ok play eight.csv --output-dir eight --json
# One after the other the last four would wait for 240 s at least.
check 'said["jobs"] == 8 and said["failed"] == 0 and said["oom"] == 0 and said["wait_p95_s"] < 200'
expect_field 18 estimate.from summaries/efficientnet_b0-224.txt
# The reservation may have shrunk since to the job's observed need.
case $(field 18 reservation_source) in
estimated | observed) ;;
*) fail "job 18: reservation_source is '$(field 18 reservation_source)'" ;;
esac

# A capture needs no batch size, and goes before a summary.
expect_ok submit --parsable --hold --capture "$SOURCE/tests/fakes/mlp.capture" --summary resnet50.summary -- true
expect_field 19 reservation_source estimated estimate.source replay estimate.from mlp.capture
[ "$(field 19 reserved_bytes)" -lt "$(field 1 estimate.bytes)" ] || fail "a small network needs as much as ResNet-50"

# Other settings: a recorded figure of the estimator's name goes before a computed one; none computes nothing.
restart_daemon --config /dev/null --set estimator=horus --set estimate_quantile=90% --set machine_profile=a100-40g-later
printf 'conda activate base\ntrue\nresnet50.summary\nimagenet\n32\nexclusive\n1\n5000\n4000\n' >recorded.rad
run submit --parsable --hold recorded.rad
expect_field 20 reservation_source recorded reserved_bytes 4194304000 estimate.source horus
run submit --parsable --hold --summary resnet50.summary --batch-size 32 -- true
expect_field 21 reservation_source estimated estimate.machine_profile a100-40g-later estimate.quantile_permille 900
# A summary that contradicts itself says nothing, and is no reason to refuse the job.
expect_id 22 --hold --summary other.summary --batch-size 8 -- true
grep -q "warning: nothing is estimated by the summary: other.summary:" "$T/err" || fail "$said: $(cat "$T/err")"
restart_daemon --config /dev/null --set policy=thesis
expect_ok submit --parsable --hold --summary nonsense.txt --batch-size 8 -- true
expect_field 23 reservation_source unknown estimate null

# The decisions follow from the stored input, byte for byte; a store that was tampered with is told to be another's.
expect_ok simulate --replay "$STATE" # beside the daemon
stop_daemon
shows '^[0-9]* records, [0-9]* decisions: every decision reproduced$' simulate --replay "$STATE"
warns ' jobs of the past' simulate --trace "$STATE" --compare round-robin,exclusive --json
cp -R "$STATE" missing
sql "UPDATE record SET body = replace(body, '\"gpus\":[0]', '\"gpus\":[3]') WHERE seq =
    (SELECT min(seq) FROM record WHERE type = 'placed' AND body LIKE '%\"gpus\":[0]%')"
ends 1 simulate --replay "$STATE"
expect_out 'is decided otherwise'
STATE=$T/missing sql "DELETE FROM record WHERE seq = 5"
ends 1 simulate --replay "$T/missing"
grep -q 'record 5 is missing' "$T/err" || fail "$said: $(cat "$T/err")"
