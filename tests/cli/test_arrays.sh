#!/bin/sh
# Arrays and sweeps: which indices there are, how many run at a time, over a kill of carmad; their names wherever a job is named.
. "$(dirname "$0")/node.sh"
start_all h200x1 100 --set auto_capture=off

array() { # OPTION... -- COMMAND...
    submitted --gpu-memory 1G "$@"
}

unfinished() { # the rows of carma queue: ID and state
    "$CARMA" queue "$@" | awk 'NR > 1 { printf "%s:%s ", $1, $4 }'
}

# Each waits until its own file is there, and fails for index 4. At most two run at a time; after a kill, too.
work='while [ ! -e go-$CARMA_ARRAY_TASK_ID ]; do sleep 0.05; done
echo "$CARMA_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID of $CARMA_ARRAY_TASK_COUNT, $CARMA_ARRAY_TASK_MIN to $CARMA_ARRAY_TASK_MAX"
[ $CARMA_ARRAY_TASK_ID != 4 ]'
one=$(array --array '0-6:2,9%2' -J sweep -- sh -c "$work")
all=$(array -d "afterany:$one" -- true)
some=$(array -d "afterok:${one}_4" -- true)
until_field "${one}_0" state RUNNING
until_field "${one}_2" state RUNNING
expect_field "${one}_4" state QUEUED reason.code array array.id "$one" array.index 4 array.jobs 5 array.most 2
[ "$(unfinished)" = "${one}_0:R ${one}_2:R ${one}_[4-9%2]:PD $all:PD $some:PD " ] || fail "carma queue: $(unfinished)"
offered() { # what a shell offers for the WORD
    "$CARMA" help --complete -- cancel "$1" | cut -f 1 | tr '\n' ' '
}
[ "$(offered ""), $(offered "${one}_")" = "${one}_0 ${one}_2 $one $all $some , ${one}_0 ${one}_2 ${one}_4 ${one}_6 ${one}_9 " ] ||
    fail "a shell offers $(offered ""), and of the array $(offered "${one}_")"
shows "2 jobs of its array $one may run at a time" explain "${one}_9"
again_after_kill --set auto_capture=off
[ "$(unfinished --array)" = "${one}_0:R ${one}_2:R ${one}_4:PD ${one}_6:PD ${one}_9:PD $all:PD $some:PD " ] ||
    fail "carma queue --array: $(unfinished --array)"
touch go-2
until_field "${one}_4" state RUNNING # the next one, while the first still runs
shows " ${one}_0,${one}_4$" gpus
run hold "${one}_6"
touch go-0
until_field "${one}_9" state RUNNING # one that is held takes nobody's place
run release "${one}_[6-8]"
expect_field "${one}_6" state QUEUED reason.code array
run cancel "${one}_6"
touch go-4 go-9
ends 1 wait "$one"
grep -q "job ${one}_4 has failed: exit status 1" "$T/err" || fail "carma wait: $(cat "$T/err")"
until_field "$all" state COMPLETED
until_field "$some" state REFUSED
[ "$(cat "carma-${one}_9.out")" = "$one 9 of 5, 0 to 9" ] || fail "its output: $(cat "carma-${one}_9.out")"
for command in "cancel $one" "cancel ${one}_[0-2]" "hold $one"; do
    # shellcheck disable=SC2086 # a command and its argument
    expect_error 1 '' $command
done
expect_error 1 'is an array of jobs, and this is about one' explain "$one"
expect_error 1 "there is no job ${one}_1" show "${one}_1"
expect_error 1 "job ${one}_4 has already ended (FAILED)" hold "${one}_4"
expect_error 1 'there is no array' logs "${all}_1"

# A script of Slurm's; all of an array at once, and its last ones.
cat >script <<'END'
#!/bin/sh
#SBATCH --array=1-3 --hold --output=%A.%a.txt
echo "task $SLURM_ARRAY_TASK_ID"
END
two=$(array script)
run edit "${two}_2" priority=-1 # a row speaks for jobs that are like it alone
[ "$(unfinished)" = "${two}_[1-3]:H ${two}_2:H " ] || fail "carma queue: $(unfinished)"
run edit "${two}_2" priority=
[ "$(unfinished)" = "${two}_[1-3]:H " ] || fail "carma queue: $(unfinished)"
run release @
run wait "$two"
[ "$(cat "$two".?.txt | sort | tr '\n' ' ')" = 'task 1 task 2 task 3 ' ] || fail "the script's outputs: $(ls)"
three=$(array -H -a 5-8 -- true)
expect_error 1 "is HELD: only one that runs can be suspended (and 2 others)" suspend "${three}_[5-7]"
run cancel "${three}_[5-7]"
[ "$(unfinished)" = "${three}_8:H " ] || fail "carma queue: $(unfinished)"
run cancel "$three"
[ -z "$(unfinished)" ] || fail "carma queue: $(unfinished)"
expect_error 1 "job ${three}_5 was never started: it has written nothing" logs "${three}_5"

# A sweep: each choice of the parameters is a job.
lr=mine run submit --gpu-memory 1G --wait --param lr=1,2 --param bs=3,4 -J s -o 'o-{lr}{bs}' -- sh -c 'echo "$lr $bs {bs}"'
expect_status 0
[ "$(cat o-13 o-14 o-23 o-24 | tr '\n' ,)" = '1 3 3,1 4 4,2 3 3,2 4 4,' ] || fail "the sweep's outputs: $(cat o-*)"
expect_out '(s lr=2 bs=4)'

# Dependencies of arrays; what can never be.
four=$(array -H -a 0-2 -- true)
five=$(array -a 1,2 -d "aftercorr:$four" -- true)
run release "${four}_2"
until_field "${five}_2" state COMPLETED
expect_field "${five}_1" state QUEUED
shows "job ${four}_1 has to complete first" explain "${five}_1"
expect_ok submit --gpu-memory 1G -a 0-2 -d "afterok:$four,singleton" -- true
expect_error 1 "there is no job ${four}_7 for aftercorr" submit --gpu-memory 1G -a 1,7 -d "aftercorr:$four" -- true
while read -r status option text; do
    expect_error "$status" "$text" submit --gpu-memory 1G "$option" -- true
done <<END
1 -dafternotok:$four is an array: afternotok needs one job of it
1 -daftercorr:$four is for the jobs of an array
2 -daftercorr:${four}_1 names a whole array
1 -dafterok:${four}_7 there is no job ${four}_7
2 -dafterok:${four}_x '${four}_x' is not the number of a job
2 -a5-1 '5-1' runs backwards
2 -a1,3,3 '3' follows index 3
2 -a0-10000 more than 10000 jobs
2 -a0-3%0 says not how many run at a time
2 -a0-9:0 is no range of indices
2 -a-1 is no range of indices
2 -a1,,2 is no range of indices
2 -a4000001 is no range of indices
2 --param=lr is not NAME=VALUE,VALUE
2 --param=1x=2 is not NAME=VALUE,VALUE
2 --param=x=1,,2 a value of 'x' is empty
2 --param=x=$(seq -s, 1 10001) makes it more than 10000 jobs
END
finish
