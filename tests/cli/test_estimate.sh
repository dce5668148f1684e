#!/bin/sh
# carma estimate on summaries, job files and declared figures.
. "$(dirname "$0")/lib.sh"
S=$SOURCE/tests/golden/summaries
cp "$S/torchsummary-convolutions.txt" "$T/net.txt"
cp "$S/torchsummary-perceptron.txt" "$S/torchinfo-1.8.0-plain.txt" "$S/torchinfo-1.8.0-attentive-no-input.txt" "$T"
cd "$T" || exit 99

# value CODE: of the output
value() {
    /usr/bin/python3 -S -c 'import json, sys
said = json.load(open("out"))
print(eval(sys.argv[1]))' "$1"
}

# Wrong usage.
expect_error 2 "of what?" estimate
expect_error 2 "one of a job, --summary, --capture and --hf-config" estimate a.rad --summary net.txt
expect_error 2 "one job at a time" estimate a.rad b.rad
expect_error 2 "'oracle' is not known" estimate a.rad --estimator oracle
expect_error 2 "not a probability from 0.001 to 0.999" estimate a.rad --quantile 98%
expect_error 2 "not a probability" estimate a.rad --quantile 1
expect_error 2 "not a probability" estimate a.rad --quantile ""
expect_error 2 "out of range" estimate a.rad --batch-size 0
expect_error 2 "optimizer 'magic'" estimate a.rad --optimizer magic
expect_error 2 "precision 'fp7'" estimate a.rad --precision fp7
expect_error 2 "not both" estimate a.rad --gpu h200 --profile x
expect_error 2 "one estimator, not all" estimate a.rad --explain --estimator all

# Faults of the input: one line.
expect_error 1 "net.txt does not say the batch size: give it with --batch-size" estimate --summary net.txt
expect_error 1 "no GPU model 'z80' is known: see carma calibrate --list" estimate --summary net.txt --gpu z80
expect_error 1 "No such file" estimate --summary nowhere.txt
expect_error 1 "No such file" estimate --capture nowhere.capture
expect_error 1 "no such file" estimate nowhere.rad
expect_error 1 "No such file" estimate --summary net.txt --profile nowhere
expect_error 1 "no earlier run of this job" estimate --summary net.txt --batch-size 8 --estimator history --json
head -n 9 net.txt >cut.txt
expect_error 1 "cut.txt:" estimate --summary cut.txt --batch-size 8
echo "hello" >hello.txt
expect_error 1 "hello.txt" estimate --summary hello.txt --batch-size 8
head -c 9000000 /dev/zero | tr '\0' x >large.txt
expect_error 1 "large.txt: too large for a model summary: at most 8192 KiB" estimate --summary large.txt --batch-size 8

# Declared figures, by a script and by a .rad file, read as carma submit reads them.
printf '#!/bin/sh\n#CARMA --gpu-memory 12G\ntrue\n' >job.sh
expect_ok estimate job.sh
expect_golden cli-estimate.txt
expect_ok estimate job.sh --json
expect_golden cli-estimate.json
tells 'said["gpu"]["model"] == "NVIDIA L4" and not said["exceeds_gpu"]' estimate job.sh --gpu l4 --json
expect_ok estimate job.sh --gpu nvidia\ l4
sed -i 's/12G/22G/' job.sh
shows "does not fit into the 21.9 GiB" estimate job.sh --gpu l4
printf '#!/bin/sh\n#CARMA --no-capture\ntrue\n' >job.sh
expect_error 1 "nothing to estimate from" estimate job.sh
mkdir -p jobs
cp net.txt jobs/net.model
printf 'python3 train.py\nmodel: net.model\nbatch_size: 16\n' >jobs/net.rad
expect_ok estimate jobs/net.rad --json
check 'said["from"] == "net.model" and said["format"] == "torchsummary" and said["batch_size"] == 16'
of_rad=$(value 'said["memory_bytes"]')
tells "said['memory_bytes'] == $of_rad" estimate --summary net.txt --batch-size 16 --json
tells 'said["batch_size"] == 64' estimate jobs/net.rad --batch-size 64 --json
sed -i '/batch_size/d' jobs/net.rad
expect_error 1 "jobs/net.rad: net.model does not say the batch size" estimate jobs/net.rad

# A summary with a batch of its own needs no other; a larger quantile is more memory.
expect_ok estimate --summary torchinfo-1.8.0-plain.txt --json
check 'said["batch_size"] > 0 and said["format"] == "torchinfo" and said["source"] == "replay"'
tells "said['low_bytes'] <= said['memory_bytes']" estimate --summary net.txt --batch-size 4096 --quantile 0.5 --json
fp32=$(value 'said["memory_bytes"]')
run estimate --summary net.txt --batch-size 4096 --quantile 0.98 --json
check "said['memory_bytes'] > $fp32 and said['quantile'] == 0.98 and said['median_bytes'] <= said['memory_bytes']"

# The parts of the bytes add up, the layers to their part.
expect_ok estimate --summary net.txt --batch-size 4096 --explain --json
check 'sum(p["bytes"] for p in said["parts"] if not p["layer"]) == said["memory_bytes"]' \
    'sum(p["bytes"] for p in said["parts"] if p["layer"]) ==
    [p["bytes"] for p in said["parts"] if p["what"] == "saved activations"][0]' \
    '[p["bytes"] for p in said["parts"] if p["what"] == "context and libraries"][0] == (1429 + 258) << 20' \
    '0 <= said["allocated_bytes"] - sum(p["bytes"] for p in said["parts"][:said["parts"].index(
    next(p for p in said["parts"] if p["what"] == "fragmentation"))] if not p["layer"]) < 64 << 10' \
    '[p["what"] for p in said["parts"] if not p["layer"]] == ["parameters", "gradients", "optimizer",
    "saved activations", "input", "buffers", "temporary", "workspace", "fragmentation", "context and libraries",
    "correction", "margin"]'
shows '^At the peak, in the ' estimate --summary net.txt --batch-size 4096 --explain
grep -q '^  Conv2d-1  *[0-9]' out || fail "$said: no layer: $(cat out)"
ends 1 estimate --summary net.txt --batch-size 4096 --explain --estimator horus
grep -q "horus gives one figure" err || fail "$said: $(cat err)"

# Every estimator has its line; an unknown layer is told.
expect_ok estimate --summary net.txt --batch-size 8 --estimator all --json
check '[e["estimator"] for e in said["estimates"]] == ["auto", "history", "replay", "gpumemnet", "horus", "faketensor",
    "declared"]' \
    'set(said["estimates"][1]) == {"estimator", "error"} and said["estimates"][0]["source"] == "replay"'
shows '^auto .* by replay' estimate --summary net.txt --batch-size 8 --estimator all
ends 1 estimate --summary "$S/torchsummary-attentive.txt" --batch-size 8 --estimator gpumemnet # no figure of unlike models
grep -q "learned no transformer with such layers" err || fail "$said: $(cat err)"
warns "^carma: warning: .*no shapes" estimate --summary torchinfo-1.8.0-attentive-no-input.txt --batch-size 8
grep -q "^Memory       at least .*iB$" out && grep -q "may or may not fit" out || fail "$said: $(cat out)"

# A model's config.json: the same by options and by a job file.
G=$SOURCE/data/configs/llama-1.1b.json
set -- --batch-size 4 --sequence-length 1024 --method lora,rank=16 --precision bf16
expect_ok estimate --hf-config "$G" "$@" --json
check "said['format'] == 'hf-config' and said['source'] == 'replay' and said['optimizer'] == 'adamw'" \
    "said['precision'] == 'bf16' and said['batch_size'] == 4"
bytes=$(value "said['memory_bytes']")
# 22 layers of 4096 tokens: keys and values of 32 heads for 4, of 64 halves.
expect_ok estimate --hf-config "$G" --batch-size 4 --sequence-length 1024 --estimator all
grep -q '^replay  *[0-9]' "$T/out" && ! grep -q 'hf-config' "$T/out" || fail "$said: $(cat "$T/out")" # it was given
run estimate --hf-config "$G" --batch-size 4 --sequence-length 1024 --method lora --precision bf16 --json
allocated=$(value "said['allocated_bytes']")
run estimate --hf-config "$G" --batch-size 4 --sequence-length 1024 --method lora,repeated_heads --precision bf16 --json
check "said['allocated_bytes'] - $allocated == 22 * 4096 * 2 * (32 - 4) * 64 * 2"
printf 'python train.py\nhf_config: %s\nbatch_size: 4\nsequence_length: 1024\nmethod: lora,rank=16\nprecision: bf16\n' \
    "$G" >hf.rad
tells "said['memory_bytes'] == $bytes" estimate hf.rad --json
shows "llama of 1100 million parameters; batch size 4, adamw, bf16" estimate --hf-config "$G" "$@"
expect_error 1 "llama-1.1b.json does not say the batch size: give it with --batch-size" estimate --hf-config "$G"
expect_error 2 "training method 'magic' is not known: full, lora" estimate --hf-config "$G" --method magic

# Of listed lengths: tensors as of their longest, and blocks that do not fit it. A job says it as well.
printf '150 900\n1024\n' >lengths
set -- --batch-size 4 --method lora,rank=16 --precision bf16 --lengths lengths --json
tells "$bytes < said['memory_bytes'] < 1.5 * $bytes" estimate --hf-config "$G" "$@"
bytes=$(value "said['memory_bytes']")
tells "said['memory_bytes'] == $bytes" estimate hf.rad "$@" --sequence-length 1024
expect_error 1 "hf.rad: lengths:3: 'many' is no length" estimate hf.rad "$@" --lengths "$(echo many >>lengths; echo lengths)"
expect_error 2 "--lengths goes with --hf-config" estimate --summary net.txt --lengths lengths

# The caller's settings of PyTorch's allocator are those of the job: with expandable segments lengths that differ cost little.
set -- estimate --hf-config "$SOURCE/data/configs/llama-1.1b.json" --batch-size 1 --sequence-length 4096 --json --method lora,checkpointing,mean_length=3000
tells "said['median_bytes'] > 1.3 * said['allocated_bytes'] + said['gpu']['context_bytes']" "$@"
export PYTORCH_ALLOC_CONF=expandable_segments:True
tells "said['median_bytes'] < 1.15 * said['allocated_bytes'] + said['gpu']['context_bytes']" "$@"
export PYTORCH_ALLOC_CONF=backend:cudaMallocAsync
tells "said['median_bytes'] < 1.02 * said['allocated_bytes'] + said['gpu']['context_bytes']" "$@"
unset PYTORCH_ALLOC_CONF

# Trees that correct a replay do not take a job off a GPU that the replay does not leave.
run estimate --summary "$SOURCE/data/summaries/efficientnet_b0-224.txt" --batch-size 431 --json
check "not said['exceeds_gpu'] and said['median_bytes'] == said['gpu']['memory_bytes']"
tells "said['exceeds_gpu']" estimate --summary "$SOURCE/data/summaries/efficientnet_b0-224.txt" --batch-size 463 --json
# cuDNN's workspaces take what a small card has left for them, not all of it.
tells "0.8 < said['median_bytes'] / said['gpu']['memory_bytes'] < 0.95 and not said['exceeds_gpu']" \
    estimate --summary "$SOURCE/data/summaries/vgg19-86.txt" --batch-size 377 --gpu rtx-3060 --json

# A capture: recorded with its precision; another optimizer's step can stand in it.
C=$SOURCE/tests/golden/model.capture
recorded=$(sed -n 's/^optimizer //p' "$C")
expect_ok estimate --capture "$C" --json
check "said['format'] == 'capture' and said['source'] == 'replay' and said['optimizer'] == '$recorded'"
check 'said["batch_size"] > 0 and said["memory_bytes"] >= (1429 << 20)'
run estimate --capture "$C" --explain --json
check 'sum(p["bytes"] for p in said["parts"] if not p["layer"]) == said["memory_bytes"]'
expect_ok estimate --capture "$C" --optimizer "$recorded" --estimator faketensor
tells 'said["optimizer"] == "sgd" and sum(p["bytes"] for p in said["parts"] if p["what"] == "optimizer") == 0' \
    estimate --capture "$C" --optimizer sgd --explain --json
expect_error 1 "model.capture: " estimate --capture "$C" --optimizer adafactor
expect_error 1 "model.capture was recorded with fp32, not amp: record it again" estimate --capture "$C" --precision amp
head -n 20 "$C" >cut.capture
expect_error 1 "cut.capture:" estimate --capture cut.capture

# The GPU's own constants.
run estimate --summary torchsummary-perceptron.txt --batch-size 8 --estimator replay --quantile 0.5 --json
thesis=$(value 'said["memory_bytes"]')
run estimate --summary torchsummary-perceptron.txt --batch-size 8 --estimator replay --quantile 0.5 --gpu a100-40g-later --json
check "$thesis - said['memory_bytes'] == (1429 - 500) << 20"
