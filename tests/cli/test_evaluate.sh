#!/bin/sh
# carma evaluate on small data sets: its output and its refusals. How good the figures are is not its matter.
. "$(dirname "$0")/lib.sh"
D=$SOURCE/tests/fakes/datasets
cp "$D"/*.csv "$SOURCE/tests/fakes/mlp.capture" "$T"
cd "$T" || exit 99
REAL=real:real_models.csv,real_model_layers.csv

# check_rows CODE...: as check, on the rows of a CSV, as `rows` (dictionaries).
check_rows() {
    /usr/bin/python3 -S -c 'import csv, sys
rows = list(csv.DictReader(open("out")))
for code in sys.argv[1:]:
    assert eval("(" + code + ")"), f"not {code}: {rows}"' "$@" 2>"$T/why" || fail "$said: $(tail -1 "$T/why")"
}

# Wrong usage.
expect_error 2 "on what?" evaluate
expect_error 2 "--estimator: 'oracle' is not known" evaluate --dataset mlp:mlp.csv --estimator oracle
expect_error 2 "--quantile: '98'" evaluate --dataset mlp:mlp.csv --quantile 98
expect_error 2 "--quantile: '0.5x'" evaluate --dataset mlp:mlp.csv --quantile 0.5x
expect_error 2 "--bins: '0'" evaluate --dataset mlp:mlp.csv --bins 0
expect_error 2 "--bins: ''" evaluate --dataset mlp:mlp.csv --bins ""
expect_error 2 "--bins: '-1'" evaluate --dataset mlp:mlp.csv --bins=-1
expect_error 2 "either --json or --rows" evaluate --dataset mlp:mlp.csv --json --rows
expect_error 2 "takes no arguments: 'mlp.csv'" evaluate mlp.csv
expect_error 2 "one of --dataset, --pairs, --threads and --mig" evaluate --dataset mlp:mlp.csv --pairs pairs.csv
expect_error 2 "one of --dataset, --pairs, --threads and --mig" evaluate --threads threads.csv --pairs pairs.csv
expect_error 2 "--rows is for --dataset" evaluate --pairs pairs.csv --rows
expect_error 2 "'--captures' needs an argument, DIR" evaluate --captures

# Files of another kind than stated.
expect_error 1 "not a KIND:FILE" evaluate --dataset mlp.csv
expect_error 1 "not a KIND:FILE" evaluate --dataset tree:mlp.csv
expect_error 1 "name two files" evaluate --dataset real:real_models.csv
expect_error 1 "none.csv" evaluate --dataset mlp:none.csv
expect_error 1 "cnn.csv:1: unknown column" evaluate --dataset mlp:cnn.csv
sed 's/linear:25:1275/linear:25:1276/' mlp.csv >wrong.csv
expect_error 1 "wrong.csv:2: layers: layer 5 is Linear:25:1276, but" evaluate --dataset mlp:wrong.csv
head -1 mlp.csv >empty.csv
expect_error 1 "no rows" evaluate --dataset mlp:empty.csv
printf 'model,batch_size,max_gpu_memory_mib\nbroken,8,2000\n' >broken.csv
echo 'no capture' >broken.capture
expect_error 1 "./broken.capture:1:" evaluate --dataset timm:broken.csv --captures .
expect_error 1 "answers none of the 2 rows" evaluate --dataset timm:timm.csv --estimator replay

# The figures, in the order of docs/formats/cli.md.
expect_ok evaluate --dataset mlp:mlp.csv --estimator horus --json
check 'list(said)[:21] == ["dataset", "estimator", "quantile", "bins_gb", "folds", "in_sample", "rows",
    "out_of_memory", "unanswered", "left_out", "bin_accuracy", "bin_below", "mae_mib", "mape", "median_ape", "worst_ape",
    "precision", "recall", "f1", "underestimate_rate", "mean_overestimate"]' \
    'said["dataset"] == "mlp:mlp.csv" and said["estimator"] == "horus" and said["quantile"] == 0.98' \
    'said["rows"] == 4 and said["out_of_memory"] == said["unanswered"] == said["left_out"] == 0' \
    'said["bins_gb"] == 1 and said["in_sample"] is False and said["folds"] is False' \
    '0 < said["mape"] <= said["worst_ape"] and 0 <= said["underestimate_rate"] <= 1' \
    'said["recall"] == said["bin_accuracy"]'
expect_ok evaluate --dataset cnn:cnn.csv --estimator horus --json
check 'said["bins_gb"] == 8 and said["rows"] == 7 and said["out_of_memory"] == 1' \
    'said["sm_activity"]["rows"] == 1' # a run out of memory shows none that counts
run evaluate --dataset cnn:cnn.csv --estimator horus --bins 0.5 --quantile 0.5 --json
check 'said["bins_gb"] == 0.5 and said["quantile"] == 0.5'
expect_ok evaluate --dataset transformer:transformer.csv --estimator replay --json
check 'said["rows"] == 3 and said["out_of_memory"] == 1'

# Rows without an answer are counted and reported; published figures of the same estimator are compared with its own.
expect_ok evaluate --dataset "$REAL" --estimator horus --json
check 'said["rows"] == 5 and said["unanswered"] == 1 and said["left_out"] == 1' 'said["published"]["rows"] == 1'
shows "^mape  .*%" evaluate --dataset "$REAL" --estimator horus
grep -q "^Left out: 1 " "$T/out" || fail "$said: does not name the rows left out"
grep -q "^Without an answer: 1 .*othernet" "$T/out" || fail "$said: does not name the rows without an answer"
[ -s "$T/err" ] && fail "$said: a progress bar where there is no terminal"

# The rows themselves; a model's figure is in its row, for every order of the file.
expect_ok evaluate --dataset "$REAL" --estimator replay --rows
check_rows 'len(rows) == 6 and rows[0]["name"] == "tinynet cifar100 32" and rows[0]["group"] == "tinynet"' \
    'rows[0]["measured_mib"] == "1801.000" and rows[0]["faketensor_mib"] == "64.100"' \
    'float(rows[0]["median_mib"]) <= float(rows[0]["quantile_mib"]) and rows[0]["source"] == "replay"' \
    'rows[2]["median_mib"] == rows[2]["source"] == ""' 'all(row["seen"] == "0" for row in rows)'
expect_ok evaluate --dataset timm:timm.csv --captures . --estimator replay --rows
check_rows 'len(rows) == 1 and rows[0]["name"] == "mlp 32" and float(rows[0]["median_mib"]) > 100'

# A capture of one batch size alone: rows of another are left out, not refused.
sed 's/^\(batch 16\) scales/\1/; s/\([0-9]\)x/\1/g' mlp.capture >fixed.capture
printf 'model,batch_size,max_gpu_memory_mib\nfixed,16,2000\nfixed,32,2000\n' >fixed.csv
expect_ok evaluate --dataset timm:fixed.csv --captures . --estimator replay --json
check 'said["rows"] == 1 and said["left_out"] == 1'

# A row's key is the FNV-1a hash of its bytes; its fold that modulo 5.
run evaluate --dataset mlp:mlp.csv --estimator horus --rows
check_rows 'all(int(row["fold"]) == int(row["key"], 16) % 5 for row in rows)' \
    '__import__("functools").reduce(lambda h, b: (h ^ b) * 1099511628211 % 2**64,
        open("mlp.csv", "rb").read().split(b"\n")[1], 14695981039346656037) == int(rows[0]["key"], 16)'

# Rows that nothing was trained on are asked of all models, whatever --folds says.
expect_ok evaluate --dataset cnn:cnn.csv --estimator replay --rows
cp "$T/out" whole.rows
expect_ok evaluate --dataset cnn:cnn.csv --estimator replay --rows --folds
cmp -s whole.rows "$T/out" || fail "$said: other models were asked"

# The rows of carma_collect: each as it was trained; recomputed activations and Conv1D blocks have no answer.
for kind in mlp cnn transformer; do
    cp "$SOURCE/tests/fakes/datasets/collected_$kind.csv" .
    expect_ok evaluate --dataset "$kind:collected_$kind.csv" --estimator replay --rows
    check_rows 'all((row["median_mib"] == "") == (said["checkpointing"] == "1" or said["projection"] == "conv1d")
        for row, said in zip(rows, __import__("csv").DictReader(open("collected_'$kind'.csv").readlines()[1:])))' \
        'any(row["median_mib"] for row in rows)'
    [ $kind = transformer ] && continue # the one with an answer has Adam's states
    cp "$T/out" as_trained.rows
    sed 's/,sgd,/,adam,/; s/,momentum,/,adam,/; s/,amp,/,fp32,/' "collected_$kind.csv" >adam.csv
    run evaluate --dataset "$kind:adam.csv" --estimator replay --rows
    [ "$(cut -d, -f8 as_trained.rows)" != "$(cut -d, -f8 "$T/out")" ] || fail "$kind: with Adam in fp32 all rows need the same"
done
sed 's/,adamw,/,lion,/' collected_mlp.csv >lion.csv
expect_error 1 "lion.csv:4: " evaluate --dataset mlp:lion.csv --estimator replay

# Pairs of jobs. A workload's activity is that of its pairs with itself: 0.1, 0.5 and 0.9.
expect_ok evaluate --pairs pairs.csv --json
check 'list(said) == ["pairs", "left_out", "rate_rmse", "sum_bias", "within", "admitted", "over_bound", "worst"]' \
    'said["pairs"] == 3 and said["left_out"] == 1 and said["within"] == 1' \
    'said["admitted"] == 2 and said["over_bound"] == 1 and said["worst"] == 2.5'
shows '^3 pairs of jobs by MPS. Not counted: 1 of' evaluate --pairs pairs.csv
grep -q '2 pairs, 1 of them beyond the bound; the worst job was slowed 2.50 times' "$T/out" || fail "no harm"
grep -v '^light' pairs.csv >busy.csv
expect_ok evaluate --pairs busy.csv --json
check 'said["pairs"] == 1 and said["admitted"] == 0 and said["worst"] is None'
printf 'a,b,a_rate,b_rate\nx,y,0.5,0.5\n' >strangers.csv
expect_error 1 "strangers.csv: no pair of two workloads that each have a pair with themselves" evaluate --pairs strangers.csv
printf 'a,b,a_rate,b_rate\nx,x,0.5,0\n' >still.csv
expect_error 1 "still.csv:2: b_rate" evaluate --pairs still.csv

# Jobs with a share of the threads: three with a half, six with a seventh.
expect_ok evaluate --threads threads.csv --json
check 'list(said) == ["gain_error", "gains"] and abs(said["gain_error"] - 0.04) < 1e-9' \
    '[(gain["jobs"], gain["percent"], gain["rows"]) for gain in said["gains"]] == [(3, 50, 3), (6, 14, 1)]' \
    'abs(said["gains"][0]["measured"] - 1.2) < 1e-9 and said["gains"][1]["predicted"] == 1.26'
shows '^3 jobs with 50% each: 1.200 measured (of 3 jobs), 1.190 predicted' evaluate --threads threads.csv
grep -v ',[36],' threads.csv >alone.csv
expect_error 1 "alone.csv: no mix of 3 to 7 jobs" evaluate --threads alone.csv

# On MIG instances: 1g says that kernels take 0.64 of the step, and that tells of 3g.
printf 'workload,profile,rate_against_7g\na,3g.20gb,0.5955\na,1g.5gb,0.22\na,7g.40gb,1\nb,2g.10gb,0.5\n' >mig.csv
expect_ok evaluate --mig mig.csv --json
check 'said["rates"] == said["left_out"] == 1 and said["rate_rmse"] < 0.01'
shows '^1 rates on MIG instances' evaluate --mig mig.csv
printf 'workload,profile,rate_against_7g\na,8g,0.1\n' >eight.csv
expect_error 1 "eight.csv:2: profile '8g'" evaluate --mig eight.csv

