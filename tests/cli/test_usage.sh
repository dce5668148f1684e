#!/bin/sh
# Wrong usage: status 2, one line; and commands that need no daemon. Usage: test_usage.sh CARMA SOURCE
. "$(dirname "$0")/lib.sh"

expect_error 2 "which command" # none
expect_error 2 "unknown option '--frob'" --frob
expect_error 2 "'--socket' needs an argument" --socket
for command in submit run shell jupyter attach queue show explain cancel hold release requeue suspend resume signal checkpoint move edit logs wait gpus monitor history report stats share play compare trace estimate calibrate evaluate bench admin dashboard; do
    expect_error 2 "$command: unknown option '--frob'" "$command" --frob
    expect_error 2 "$command: unknown option '-Z'" "$command" -Z
    expect_ok help "$command"
    shows "^Usage: carma $command" "$command" --help
done
# Each command and each option, typed with two letters exchanged.
exchanged() {
    echo "$1" | sed 's/^\(..\)\(.\)\(.\)/\1\3\2/'
}
for command in submit queue explain share cancel release history compare estimate dashboard; do
    expect_error 2 "did you mean $command?" "$(exchanged $command)"
done
for option in $("$CARMA" submit --help | sed -n 's/^ .*--\([a-z-]\{5,\}\).*/\1/p'); do
    [ "$(exchanged "$option")" = "$option" ] ||
        expect_error 2 "unknown option '--$(exchanged "$option")': did you mean --$option?" submit "--$(exchanged "$option")"
done
expect_error 2 "there is no command 'frobnicate' (see: carma help)" frobnicate
expect_error 2 "did you mean submit?" sub
# Words of other programs.
for row in sbatch:submit qsub:submit srun:run salloc:shell squeue:queue status:queue ps:queue scancel:cancel kill:cancel info:show tail:logs \
    nvidia-smi:gpus sacct:history pause:suspend continue:resume restart:requeue; do
    expect_error 2 "did you mean ${row#*:}?" "${row%:*}"
done
for row in '--name x|did you mean --job-name?' '-g 2|did you mean --gpus?' '--gres=gpu:1|did you mean --gpus?' '-c 4|did you mean --cpus?' \
    '--wrap true|a command behind' '--test-only|explain tell beforehand' '--partition gpu|, which has no meaning here' \
    '-n 4|--ntasks, which has no meaning here'; do
    # shellcheck disable=SC2086 # words
    expect_error 2 "${row#*|}" submit ${row%|*} -- true
done
# And values that are words of a table.
for row in 'submit --share tme-slice -- x|time-slice' 'submit --optimizer adma -- x|adam' 'submit --precision fp23 -- x|fp32' \
    'submit --method lara -- x|lora' 'submit --signal URS1@3 -- x|USR1' 'submit --visible-devices inedx -- x|index' \
    'wait --until state=RUNING 1|RUNNING' 'history --state COMPLTED|completed' 'stats --by dya|day' 'admin verfy|verify' \
    'simulate --policy carmaa|carma' 'simulate --compare carma,exclusiv|exclusive' 'simulate --estimator repaly|replay' \
    'simulate --share mpss|mps' 'estimate --estimator repaly|replay' 'evaluate --estimator horsu|horus'; do
    # shellcheck disable=SC2086 # words
    expect_error 2 "did you mean ${row#*|}?" ${row%|*}
done
CARMA_PREFIX=$T/prefix
export CARMA_PREFIX
mkdir -p "$CARMA_PREFIX/share/carma" && ln -s "$SOURCE/data/nodes" "$SOURCE/data/traces" "$SOURCE/data/workloads.csv" "$CARMA_PREFIX/share/carma"
ln -s "$(dirname "$CARMA")" "$CARMA_PREFIX/bin"
printf 'model: x\ngpu_memry: 3G\n' >"$T/typed.rad"
for row in "submit $T/typed.rad|gpu_memory" 'trace show thesis_09|thesis_90' 'simulate --trace thesis_90 --node a100x4|a100x4-40g'; do
    # shellcheck disable=SC2086 # words
    expect_error 1 "did you mean ${row#*|}?" ${row%|*}
done
unset CARMA_PREFIX
expect_error 2 "--gpu-memory 3G is what it needs on each GPU, --memory 3G the most RAM" submit --mem 3G -- true
# shellcheck disable=SC2086 # a command and an option
for command in show explain attach cancel hold release requeue suspend resume checkpoint 'move --last' logs wait; do
    expect_error 2 "which job" $command
    expect_error 2 "'x' is not a list" $command x
    expect_error 2 "runs backwards" $command 5-3
    expect_error 2 "'0' is not a list" $command 0
done
while IFS='|' read -r text words; do
    # shellcheck disable=SC2086 # words
    expect_error 2 "$text" $words
done <<'END'
which job, and which signal|signal
which job, and which signal|signal USR1
'carma cancel'|signal 1 KILL
'carma suspend'|signal 1 19
'carma resume'|signal 1 sigcont
did you mean USR1?|signal 1 URS1
no signal '65'|signal 1 65
no signal '7-9'|signal 7-9
'x' is not a list|signal x HUP
END
expect_error 2 "one job at a time" explain 1-2
expect_error 2 "one job at a time" explain 1 2
for command in gpus share; do
    expect_error 2 "takes no arguments" "$command" 7
done
expect_error 2 "'-G' needs an argument, N" submit -G
expect_error 2 "'--output' needs an argument, FILE" submit --output
expect_error 2 "not a whole number" submit -G two -- true
expect_error 2 "out of range" submit -G 65 -- true
expect_error 2 "out of range" submit -G -1 -- true
expect_error 2 "out of range" submit -G 65 -- true
expect_error 2 "not a size" submit --gpu-memory=-1G -- true
expect_error 2 "--gpu-memory: '12' has no unit: say 12GiB or 12MiB" submit --gpu-memory 12 -- true
expect_error 2 "--mps-memory-limit: '12' has no unit: say 12GiB or 12MiB" submit --mps-memory-limit 12 -- true
expect_error 2 "--gpu-memory: '40' has no unit: say 40GiB or 40MiB" simulate --gpu-memory 40
expect_error 2 "out of range" submit --gpu-memory 0 -- true
expect_error 2 "out of range" submit --gpu-memory 99999T -- true
expect_error 2 "out of range" submit --batch-size 0 -- true
expect_error 2 "name a job file" submit
expect_error 1 "the command is empty: name a program" submit -- ''
expect_error 2 "name a job file" submit --
expect_error 1 "some.rad: a job file takes no arguments" submit some.rad -- true
expect_error 2 "not both" submit --json --parsable -- true
expect_error 2 "which trace" play
expect_error 2 "one trace at a time" play a.csv b.csv
expect_error 2 "jitter 'much'" play --jitter much a.csv
expect_error 2 "jitter '0.5'" play --jitter 0.5 a.csv
expect_error 2 "seed" play --seed -3 a.csv
expect_error 2 "at least two" compare a.json
expect_error 2 "which one" bench
expect_error 2 "no 'bench gpu'" bench gpu
expect_error 2 "bench monitor: unknown option '--frob'" bench monitor --frob
shows '^Usage: carma bench monitor' help bench monitor

shows '^carma [0-9]' --version
expect_ok help
cp "$T/out" "$T/help"
run --help
cmp -s "$T/out" "$T/help" || fail "--help and help differ"
expect_error 2 "no command 'x'" help x
expect_error 2 "no command 'reserve': did you mean admin reserve?" reserve

# No daemon: one line that names the socket; asked for by --socket before or behind the command alike.
for command in queue gpus "show 1" "explain 1" "cancel 1" "hold 1" "release 1" "checkpoint 1" "requeue 1" "suspend 1" "resume 1" "signal 1 USR1" "move 1 --last" "edit 1 time=5" "logs 1" "attach 1" "submit --no-retry -- true" "show @"; do
    # shellcheck disable=SC2086 # a command and its argument
    expect_error 1 "$T/socket" $command
done
expect_error 1 "$T/elsewhere" --socket "$T/elsewhere" queue
expect_error 1 "$T/elsewhere" queue --socket="$T/elsewhere"
CARMA_TIME_SCALE=fast expect_error 1 "CARMA_TIME_SCALE" queue

# A file that nobody can read the way it was meant.
expect_error 1 "$T/none.json" compare "$T/none.json" "$T/none.json"
echo '{"makespan_s": 1}' >"$T/half.json"
expect_error 1 "half.json: no 'wait_mean_s'" compare "$T/half.json" "$T/half.json"
printf '{"a"\n:' >"$T/broken.json"
expect_error 1 "broken.json: not JSON in line 2" compare "$T/broken.json" "$T/half.json"

# A user is not told to start a carmad of his own where the machine's is stopped.
if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
    cp "$CARMA" "$T/own"
    cp -R "$SOURCE/python/carma" "$T/carma"
    chmod -R a+rX "$T"
    for ask in '/mnt/own queue' 'PYTHONPATH=/mnt /usr/bin/python3 -B -c "import carma; carma.gpus()"'; do
        unshare --mount --propagation private sh -c 'mount -t tmpfs none /var/lib && mkdir -m 700 /var/lib/carma && mount --bind "$1" /mnt &&
            exec env -u CARMA_SOCKET HOME=/nowhere setpriv --reuid 54321 --regid 54321 --clear-groups sh -c "$2"' \
            sh "$T" "$ask" >"$T/out" 2>&1
        grep -q "/run/carma/carma.sock: no daemon listens there: ask this machine's administrator" "$T/out" ||
            fail "where the service is stopped: $(cat "$T/out")"
    done
fi

# The daily commands are in the program itself; all others in carma-tools, which belongs to it.
mkdir "$T/alone"
cp "$CARMA" "$T/alone/carma"
CARMA=$T/alone/carma
expect_error 1 "no daemon listens there" queue
expect_error 1 "lib/carma/carma-tools: No such file or directory: it belongs to carma: install carma again" help
cp "$(dirname "$1")/carma-tools" "$T/alone"
expect_error 1 "bench/carma-bench: No such file or directory: it belongs to carma: install carma (Debian: python3-carma)" bench monitor
