#!/bin/sh
# What a job will stumble on is warned of when it is submitted, in one line each, and it is submitted all the same: no
# program, no interpreter, no place for an output, no conda environment, directives that are none. Each row has what
# the line must say; a row of `nothing` must bring no line.
# shellcheck disable=SC2059,SC2088
. "$(dirname "$0")/lib.sh"
cd "$T" || exit 99
printf '{"POST /v1/jobs": [200, {"jobs": [{"id": 12}]}]}' >answers.json
start_fake "$T/answers.json"

mkdir -p bin bare home/.conda conda/bin conda/envs/there envs/listed
printf 'not a program\n' >bin/plain
printf '#!/nowhere/sh\n' >bin/lost
printf '#!/usr/bin/env no-such-python\n' >bin/by-env
printf '#!/usr/bin/env -S no-such-python -u\n' >bin/by-options
printf '#!/usr/bin/env python3 -u\n' >bin/blank
printf '#!/bin/sh\r\ntrue\n' >bin/crlf
: >bin/good.py
printf '#!/bin/sh\ntrue\n' >bin/good
chmod +x bin/lost bin/blank bin/by-env bin/by-options bin/crlf bin/good
ln -s nowhere bin/dangling
echo "$T/elsewhere/noted" >home/.conda/environments.txt
: >file
export PATH="$T/bare:$T/bin:$PATH" HOME="$T/home" CONDA_EXE="$T/conda/bin/conda" CONDA_ENVS_PATH="$T/envs"

# doubt TEXT ARGUMENT...
doubt() {
    text=$1
    shift
    expect_ok submit --parsable "$@"
    if [ "$text" = nothing ]; then
        [ ! -s "$T/err" ] || fail "$said: warns of nothing: $(cat "$T/err")"
    else
        [ "$(grep -c . "$T/err")" = 1 ] && grep -qF -e "$text" "$T/err" || fail "$said: not '$text' but: $(cat "$T/err")"
    fi
}

doubt nothing -- true
doubt nothing -- good
doubt nothing -- python3 -m good.py
doubt nothing -- python3 -u bin/good.py
doubt nothing -- good none.py
for command in 'python3 -u' sh 'torchrun --nproc_per_node 2'; do
    # shellcheck disable=SC2086 # words
    doubt "'none.py' cannot be read: No such file or directory" -- $command none.py --out new.py
done
doubt "'blank' cannot run: env looks for a program 'python3 -u': write env -S python3 -u" -- blank
doubt nothing -- ./bin/by-options
doubt "'no-such-program' cannot run: there is no such program in PATH" -- no-such-program
doubt "in PATH: it is a word of the shell: write bash -lc '...'" -- source env.sh
doubt "in PATH: it is one word: leave out its quotes" -- 'good none.py'
doubt "in PATH: set variables before carma submit" -- LR=1 good
doubt nothing -- env LR=1 SEED=2 nohup good
doubt nothing -- env PATH=/nowhere no-such-program
doubt nothing -- nice -n 5 no-such-program
doubt "'no-such-program' cannot run: there is no such" -- nohup env LR=1 no-such-program
doubt "'none.py' cannot be read: No such file" -- env LR=1 python3 none.py
doubt "'./nowhere' cannot run: No such file or directory" -- ./nowhere
doubt "'dangling' cannot run: there is no such program in PATH" -- dangling
doubt "'plain' cannot run: $T/bin/plain is not executable" -- plain
doubt "'bin/plain' cannot run: it is not executable: chmod +x $T/bin/plain" -- bin/plain
doubt "'$T/bin' cannot run: it is a directory" -- "$T/bin"
doubt "'lost' cannot run: its interpreter '/nowhere/sh': No such file or directory" -- lost
doubt "'by-env' cannot run: its interpreter 'no-such-python': there is no such program in PATH" -- by-env
doubt "'crlf' cannot run: its first line ends in a carriage return: sed -i 's/\\r\$//' $T/bin/crlf" -- crlf
doubt "'./good/' cannot run: Not a directory" -D "$T/bin" -- ./good/
doubt nothing -D "$T/bin" -- ./good
doubt nothing --conda there -- no-such-program-outside
doubt nothing --conda listed -- true
doubt nothing --conda noted -- true
doubt nothing --conda base -- true
doubt "its conda environment 'nowhere' is in none of conda's directories" --conda nowhere -- true
doubt "its conda environment './nowhere': No such file or directory" --conda ./nowhere -- true
CONDA_EXE='' doubt "its conda environment 'there': conda is not set up in this shell" --conda there -- true
doubt "warning: --method counts with --hf-config alone" --method lora -- true
doubt "warning: --sequence-length counts with --hf-config alone" --sequence-length 8 -- true
doubt "warning: --mps-threads counts under MPS alone, which --exclusive does without" --mps-threads 50 --exclusive -- true
doubt "warning: --mps-memory-limit counts under MPS alone, which --share time-slice" --mps-memory-limit 2G --share time-slice -- true
doubt "warning: --begin 2020-01-01 has passed: nothing waits for it" --begin 2020-01-01 -- true
doubt nothing --begin 00:00 -- true
export CARMA_TIME_SCALE=60
doubt "warning: --begin 2020-01-01 goes by the clock of the virtual node" --begin 2020-01-01 -- true
doubt nothing --begin now+2hours -- true
unset CARMA_TIME_SCALE
doubt nothing -o %j.txt -- true
doubt "its output '$T/%j/out' cannot be made: carma makes no directories" -o %j/out -- true
doubt "its output '$T/bin' is a directory: name a file in it with -o" -o bin -- true
doubt "its output '$T/new/' is a directory: name a file in it with -o" -o new/ -- true
doubt "its error file '$T/bin' is a directory: name a file in it with -e" -e bin -- true
doubt nothing -o /dev/null -- true
doubt "its output '$T/logs/x' cannot be made: No such file or directory: mkdir -p $T/logs" -o logs/x -- true
doubt "its output '$T/file/x' cannot be made: $T/file is not a directory" -o file/x -- true
doubt "its error file '$T/logs/x' cannot be made" -e logs/x -- true
doubt "its output '~/x' is taken literally" -o '~/x' -- true
doubt "its output '\$HOME/x' is taken literally" -o '$HOME/x' -- true
doubt "its output 'log-%x-%j' is taken literally but for %j" -o log-%x-%j -- true
doubt "its output '$T/one' is that of several of these jobs, and each may begin it anew: name it with %j" --array 0-3 -o one -- true
doubt "its output '$T/one' is that of several of these jobs" --param lr=1,2,3 -o one -- true
doubt "its error file '$T/%A' is that of several" --array 1,3 -e %A -- true
doubt nothing --array 3 -o one -- true
doubt nothing --array 0-3 -o %A_%a -e /dev/null -- true
doubt nothing --param lr=1,2 --param p=good,true -o '{p}-{lr}' -- '{p}'
doubt nothing bin/good
doubt "the script cannot run: its interpreter '/nowhere/sh'" bin/lost
doubt "the script cannot run: its interpreter 'no-such-python'" bin/by-env
doubt "its lines end in carriage returns, which sh does not take: sed -i 's/\\r\$//' bin/crlf" bin/crlf
printf '#!/usr/bin/env python3\r\nprint()\r\n' >windows.py
doubt nothing windows.py

# A line of options that is none: by its marker, or by its place.
for row in '#CARMA -J x\ntrue|nothing' '##CARMA -J x\ntrue|nothing' '# CARMA is what runs this\ntrue|nothing' \
    '# SBATCH -J x\ntrue|nothing' '# CARMA -J x\ntrue|odd.sh:2: warning: not taken as options, such a line begins with' \
    '#PBS -l x\ntrue|odd.sh:2: warning: not taken as options, carma reads' '#carma -J x\ntrue|odd.sh:2: ' '  #CARMA --gpus 2\ntrue|odd.sh:2: ' \
    'true\n#CARMA -J x|odd.sh:3: warning: not taken as options, it stands behind the first command: #CARMA -J x' \
    'true\n\n#SBATCH -J x|odd.sh:4: '; do
    printf "#!/bin/sh\n${row%|*}\n" >odd.sh
    doubt "${row##*|}" odd.sh
done
# Of sbatch's options those that say that it is one part of a job are refused; others are taken, or named.
printf '#!/bin/sh\n#SBATCH hetjob\ntrue\n' >odd.sh
expect_error 1 "odd.sh:2: #SBATCH hetjob: carma has no " submit odd.sh
for row in '-J x --arr=0-3|nothing' '-Ha0-3|nothing' '-N 1 --ntasks=1 --begin=now -Q --export=all|nothing' '--outp=x --job x --exclusive|nothing' '-N2|here: -N' \
    '--tiem=10|here: --tiem (unknown: did you mean --time?)' '--exclusive=user|here: --exclusive' '--frob x|here: --frob (unknown)'; do
    printf '#!/bin/sh\n#SBATCH %s\ntrue\n' "${row%|*}" >odd.sh
    doubt "${row##*|}" odd.sh
done
# Where sbatch is installed: all that it has.
for option in $(sbatch --help 2>/dev/null | grep -o -- '--[a-z][a-z-]*'); do
    printf '#!/bin/sh\n#SBATCH %s\ntrue\n' "$option=1" >odd.sh
    run submit --parsable odd.sh
    ! grep -q unknown "$T/err" || fail "$option: $(cat "$T/err")"
done
