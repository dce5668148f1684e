#!/bin/sh
# The requests of submit, and its refusals. Usage: test_submit.sh CARMA SOURCE
. "$(dirname "$0")/lib.sh"

cat >"$T/answers.json" <<'JSON'
{"POST /v1/jobs": [[201, {"jobs": [{"id": 5, "estimate": {"warnings": ["layer type 'Quark' is not known"]}}]}],
   [201, {"jobs": [{"id": 6}]}], [201, {"jobs": [{"id": 7}]}],
   [201, {"jobs": [{"id": 8}, {"id": 9}]}], [201, {"jobs": [{"id": 10}]}], [201, {"jobs": [{"id": 11}]}],
   [201, {"jobs": [{"id": 12}]}], [201, {"jobs": [{"id": 13}, {"id": 14}]}], [422, {"error": "3 GPUs needed, the node has 2: ask for fewer"}],
   [200, "close"]],
 "GET /v1/jobs/7": [200, {"id": 7, "state": "FAILED", "exit_status": 4}]}
JSON
start_fake "$T/answers.json"
mkdir -p "$T/jobs" "$T/conda/bin" "$T/conda/envs/torch"
export CONDA_EXE="$T/conda/bin/conda"
cd "$T/jobs" || exit 99
cat >run.sh <<'SCRIPT'
#!/bin/sh -eu
# a comment
#CARMA -J "from the script" --gpus 2   # two
#CARMA --gpu-memory 12G -o logs/%j.txt
#CARMA --share time-slice
#CARMA --summary summary.txt --optimizer adamw --precision tf32 --batch-size 3

echo "#CARMA --gpus 9"
SCRIPT
sed "s|--summary summary|--summary $T/jobs/summary|" run.sh >absolute.sh
mv absolute.sh run.sh
cat >small.rad <<'JOB'
# job
conda activate torch
python train.py --lr 0.1
model: summary.txt
batch_size: 32
capture: step.capture
optimizer: adafactor
share: mps
JOB
printf 'Total params: 5\n' >summary.txt
printf 'carma-capture 1\n' >step.capture

# sent MEMBER...: these members of the specifications in the last request, one line each.
sent() {
    tail -n 1 "$T/answers.json.posts" >"$T/last"
    python3 - "$T/last" "$@" <<'PYTHON'
import json, sys
path, body = json.loads(open(sys.argv[1]).read())
assert path == "/v1/jobs" and list(body) == ["jobs", "request_id"]
for spec in body["jobs"]:
    print(json.dumps([spec.get(name) for name in sys.argv[2:]]))
PYTHON
}
expect_sent() {
    wanted=$1
    shift
    [ "$(sent "$@")" = "$wanted" ] || fail "$said: sent $(sent "$@"), not $wanted"
}

# A command: everything behind the first -- is its own. FNV-1a of "foobar" is published with the function.
printf foobar >"$T/train.py"
mkdir "$T/there"
MARK=here run submit -J "my job" -G 2 --gpu-memory 1.5G -D "$T/there" -e err --exclusive -H --conda torch --batch-size 8 \
    --summary summary.txt --capture step.capture --optimizer sgd --precision amp --parsable -- python "$T/train.py" -- --gpus 3
expect_status 0
expect_output 5
[ "$(cat "$T/err")" = "carma: my job: warning: layer type 'Quark' is not known" ] || fail "$said: told $(cat "$T/err")"
expect_sent '["85944171f73967e8"]' code
expect_sent '["my job", ["python", "'"$T/train.py"'", "--", "--gpus", "3"], 2, 1610612736, "'"$T/there"'", "'"$T/there/carma-%j.out"'", "'"$T/there/err"'", true, true]' \
    name command gpus gpu_memory_bytes directory output error exclusive held
expect_sent '["torch", 8, "summary.txt", "Total params: 5\n"]' conda_environment batch_size summary_name summary
expect_sent '["step.capture", "carma-capture 1\n", "sgd", "amp"]' capture_name capture optimizer precision
tail -n 1 "$T/answers.json.posts" | grep -q '"MARK=here"' || fail "the environment was not sent"

# A script: its directives, under the command line's options.
expect_ok submit -G 1 --optimizer momentum run.sh
expect_sent '["summary.txt", null, "momentum", "tf32", 3]' summary_name capture_name optimizer precision batch_size
expect_output 'submitted job 6 (from the script)'
expect_sent "[[\"run.sh\"], \"$T/jobs/logs/%j.txt\"]" command output
tail -n 1 "$T/answers.json.posts" | grep -qF "\"CARMA_SCRIPT=$T/jobs/run.sh\"" || fail "$said: not told where it was"
sent script | python3 -c 'import json, sys
assert json.load(sys.stdin) == [open("run.sh").read()]' || fail "$said: sent $(sent script)"
expect_sent '["from the script", 1, 12884901888, "time-slice"]' name gpus gpu_memory_bytes share

# A job file, from elsewhere: paths in it are relative to itself. --wait passes the job's status on.
cd "$T" || exit 99
ends 4 submit -W jobs/small.rad
expect_sent "[\"small\", \"torch\", \"$T/jobs\", \"summary.txt\", \"Total params: 5\\n\", 32, null]" \
    name conda_environment directory summary_name summary batch_size exclusive
expect_sent '["mps"]' share
expect_sent '["step.capture", "carma-capture 1\n", "adafactor", null]' capture_name capture optimizer precision
# Several files are one request.
expect_ok submit --parsable jobs/small.rad jobs/run.sh
expect_output '8
9'
expect_sent '["small"]
["from the script"]' name
# Arguments of a script; one that comes by a pipe, from a job: nothing of the outer script is told.
expect_ok submit --parsable jobs/run.sh -- --lr 0.1 'two words'
expect_sent '[["jobs/run.sh", "--lr", "0.1", "two words"]]' command
said="carma submit - <run.sh"
CARMA_SCRIPT=/outer PYTHONPATH=/others "$CARMA" submit --parsable - -- x <jobs/run.sh >"$T/out" 2>"$T/err" || fail "$said: $(cat "$T/err")"
expect_output 11
expect_sent "[[\"-\", \"x\"], \"from the script\", 2, \"$T\"]" command name gpus directory
tail -n 1 "$T/answers.json.posts" | grep -q '"CARMA_SCRIPT=' && fail "$said: told where the outer script was"
tail -n 1 "$T/answers.json.posts" | grep -q '"PYTHONPATH=/others"' || fail "$said: PYTHONPATH was changed"
# Slurm's lines, where they have a meaning here; the others are named. carma's own win, and the command line over both.
cat >slurm.sh <<'SCRIPT'
#!/bin/bash
#SBATCH -J resnet --time=1-12 -p gpu,long --mem 32G
#SBATCH --gres=gpu:a100:2,shard:1 -N1 --exclusive
#SBATCH --output=logs/%x-%A.out -e logs/%u-%N.err
#SBATCH --signal=B:USR1@90
#SBATCH --requeue --mail-type=END -c 8 --mem-per-cpu=4G
##SBATCH --no-such-thing
#SBATCH -D jobs
#CARMA --signal TERM@2m
true
#SBATCH --behind-the-first-command
SCRIPT
mkdir -p jobs/logs
prints 12 submit --parsable slurm.sh
[ "$(grep -v '^carma: slurm.sh:[0-9]*: warning: not taken as options, it stands behind the first command: #SBATCH --behind' "$T/err")" = "carma: slurm.sh: warning: ignored in its #SBATCH lines, as it has no meaning here: -p, \
--gres=shard:1, --mem-per-cpu
carma: resnet: warning: its error file 'logs/$(id -un)-%N.err' is taken literally but for %j, the job's number" ] || fail "$said: $(cat "$T/err")"
expect_sent "[\"resnet\", 129600000000000, 2, 15, 120000000000, true, \"$T/jobs\", true]" \
    name time_limit_ns gpus signal signal_before_ns requeue directory exclusive
expect_sent "[\"$T/jobs/logs/resnet-%A.out\", \"$T/jobs/logs/$(id -un)-%N.err\"]" output error
expect_sent '[34359738368, 8, "end", "a100"]' host_memory_bytes cpus notify gpu_type
printf '#!/bin/sh\n#SBATCH -t 0 --gpus-per-node=h100:3 --no-requeue --mem=4096\n#SBATCH -H -o %%j.txt\n' >other.sh
expect_ok submit -J mine -o here -t 90 slurm.sh other.sh
expect_sent "[\"mine\", 5400000000000, 2, true, null, \"$T/jobs/here\"]
[\"mine\", 5400000000000, 3, null, true, \"$T/here\"]" name time_limit_ns gpus requeue held output
expect_sent '[34359738368]
[4294967296]' host_memory_bytes
expect_error 1 "3 GPUs needed, the node has 2" submit -G 3 -- true
expect_error 1 "not known" submit --no-retry -- true # the answer did not come
[ "$(wc -l <"$T/answers.json.posts")" -eq 10 ] || fail "something was sent twice"

# Faults are reported with file and line, all of them at once, and nothing is sent.
expect_error 1 "$T/none.rad: no such file" submit "$T/none.rad"
: >empty.txt
expect_error 1 "model summary 'empty.txt' is empty" submit --model-summary empty.txt -- true # the option's former name
expect_error 1 "capture 'empty.txt' is empty" submit --capture empty.txt -- true
printf 'a\0b' >zero.txt
expect_error 1 "capture 'zero.txt' is not text: give the file of carma.capture" submit --capture zero.txt -- true
expect_error 1 "capture" submit --capture nowhere.capture -- true
head -c 8388609 /dev/zero | tr '\0' x >large.txt
expect_error 1 "model summary 'large.txt' is too large: at most 8 MiB" submit --summary large.txt -- true
expect_error 1 "capture 'large.txt' is too large: at most 8 MiB" submit --capture large.txt -- true
expect_error 2 "share 'mig' is not known: time-slice or mps" submit --share mig -- true
expect_error 1 "an exclusive job shares no GPU: leave exclusive or share mps out" submit --share mps --exclusive -- true
# expect_bad TEXT SCRIPT: a script that printf makes of this is refused so.
expect_bad() {
    # shellcheck disable=SC2059
    printf "$2" >bad.sh
    expect_error 1 "$1" submit bad.sh
}
expect_bad "bad.sh:3: --gpus: 'two'" '#!/bin/sh\n\n#CARMA --gpus two\n'
for line in '-t 1:2:3:4|--time: ' '--mem=much|--memory: ' '-c many|--cpus: ' '--gres=gpu:two:x|--gpus: ' '--gpus=65|--gpus: ' '--signal=NOPE|--signal: ' '-t|--time' \
    '--gres=gpu:2,|--gpus: ' '--job-name="x|quote'; do
    expect_bad "bad.sh:3: " "#!/bin/sh\n#SBATCH -J x\n#SBATCH ${line%|*}\n"
    expect_error 1 "${line#*|}" submit bad.sh
done
# The directive is named as it stands there.
expect_bad "bad.sh:2: #SBATCH -c many: --cpus: 'many'" '#!/bin/sh\n#SBATCH -J x --mem=32G -c many\n'
expect_bad "bad.sh:2: #SBATCH --gres=gpu:two:x: --gpus: " '#!/bin/sh\n#SBATCH --gres=gpu:two:x\n'
expect_bad "bad.sh:2: --gpu-memory: '12' has no unit: say 12GiB or 12MiB" '#!/bin/sh\n#CARMA --gpu-memory 12\n'
expect_bad "bad.sh:3: unknown option '--frob'" '#!/bin/sh\n#CARMA -J x\n#CARMA --frob\n'
expect_bad "bad.sh:2: '--wait' belongs on the command line" '#!/bin/sh\n#CARMA --wait\n'
expect_bad "bad.sh:2: 'train.py' belongs" '#!/bin/sh\n#CARMA train.py\n'
expect_bad "bad.sh:2: unknown option '--socket'" '#!/bin/sh\n#CARMA --socket x\n'
expect_bad "bad.sh:2" '#!/bin/sh\n#CARMA -J "x\n'
expect_bad "bad.sh:1: a script begins with '#!' and its interpreter; a job file's name ends in .rad; a program goes after '--', as in: carma submit -- sh bad.sh" 'echo hello\n'
expect_error 1 "-:1: a script begins with" submit - # an empty standard input
expect_error 2 "the words after '--' go to one script: 'bad.sh' is a second file" submit jobs/run.sh bad.sh -- x
expect_error 1 "jobs/small.rad: a job file takes no arguments" submit jobs/small.rad -- x
printf '#!/bin/sh\n# caf\351\n' >latin.sh
expect_error 1 "latin.sh: script is not UTF-8 text: convert it" submit latin.sh
printf 'python\n' >unfinished.rad
expect_error 1 "unfinished.rad" submit unfinished.rad
printf 'python train.py\nmodel: nowhere.txt\nbatch_size: 4\n' >nosummary.rad
expect_error 1 "nowhere.txt" submit nosummary.rad
expect_error 1 "directory '$T/nowhere'" submit -D "$T/nowhere" -- true
expect_error 1 "directory 'bad.sh': Not a directory" submit -D bad.sh -- true
ends 1 submit bad.sh unfinished.rad jobs/small.rad
[ "$(grep -vc ': warning: ' "$T/err")" -eq 3 ] || fail "$said: $(cat "$T/err")"
grep -q 'nothing was submitted: 2 of 3' "$T/err" || fail "$said: $(cat "$T/err")"

# Hostile files: refused at once.
head -c 104857600 /dev/zero >huge.sh
cp huge.sh huge.rad
head -c 1000 /dev/urandom >binary.sh
printf '#!/bin/sh\n\0' >>binary.sh
yes '#CARMA -J x' | head -n 1000000 >long.sh
expect_error 1 "huge.sh: too large" submit huge.sh
expect_error 1 "huge.rad: too large" submit huge.rad
expect_error 1 "long.sh: too large" submit long.sh
expect_error 1 "/dev/zero: too large" submit /dev/zero
expect_error 1 "binary.sh: a binary file" submit binary.sh
for file in /dev/zero binary.sh; do
    "$CARMA" submit - <"$file" >"$T/out" 2>"$T/err" && fail "submit - <$file is accepted"
    [ "$(wc -l <"$T/err")" -eq 1 ] || fail "submit - <$file: $(cat "$T/err")"
    grep -q -e '^carma: -: too large for a script: at most 1024 KiB$' -e '^carma: -: a binary file' "$T/err" ||
        fail "submit - <$file: $(cat "$T/err")"
done
[ "$(wc -l <"$T/answers.json.posts")" -eq 10 ] || fail "something was half submitted"
