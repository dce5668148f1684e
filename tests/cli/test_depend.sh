#!/bin/sh
# Jobs that depend on others: each kind against each way in which another ends, over a kill of carmad.
. "$(dirname "$0")/node.sh"
start_all h200x1 100 --set auto_capture=off

job() { # OPTION... -- COMMAND...
    submitted --gpu-memory 1G "$@"
}

# KIND, and what becomes of a job that depends so on one that completes, that fails, and that is cancelled while it is held.
kinds='afterok COMPLETED REFUSED REFUSED
afterany COMPLETED COMPLETED COMPLETED
afternotok REFUSED COMPLETED COMPLETED
after COMPLETED COMPLETED COMPLETED'

completes=$(job -H -- true)
fails=$(job -H -- false)
cancelled=$(job -H -- true)
while read -r kind if_completes if_fails if_cancelled; do
    echo "$(job -d "$kind:$completes" -- true) $if_completes"
    echo "$(job -d "$kind:$fails" -- true) $if_fails"
    echo "$(job -d "$kind:$cancelled" -- true) $if_cancelled"
done <<END >"$T/matrix"
$kinds
END
in_vain=$(sed -n '2s/ .*//p' "$T/matrix")
next=$(job -d "afterok:$in_vain" -- true)
last=$(job -d "afterany:$next" -- true)
all=$(job -d "afterok:$completes,afternotok:$fails:$cancelled" -- true)
later=$(job -d "after:$completes+1h" -- true)
first=$(job -H -J sweep -- true)
second=$(job -J sweep -d singleton -- true)
shows "job $completes has to complete first, and 2 more" explain "$all"
again_after_kill --set auto_capture=off
expect_ok queue
while read -r id _; do
    expect_field "$id" state QUEUED reason.code depends
done <"$T/matrix"

run cancel "$cancelled"
run release "$fails"
run wait "$fails"
run release "$completes"
while read -r id expected; do
    until_field "$id" state "$expected"
    [ "$expected" != REFUSED ] || shows 'it depended on job' show "$id"
done <"$T/matrix"
until_field "$next" state REFUSED
until_field "$last" state COMPLETED
until_field "$all" state COMPLETED
expect_field "$later" state QUEUED reason.code begin
expect_field "$second" state QUEUED reason.code depends
run release "$first"
until_field "$second" state COMPLETED
until_field "$(job -d "after:$completes+1s" -- true)" state COMPLETED
until_field "$(job -d "afterok:$completes" -- true)" state COMPLETED
shows "it depended on job $in_vain, which is REFUSED" explain "$next"

# A time: it waits until then, over a kill.
soon=$(job --begin now+200 -- true)
tomorrow=$(job -b 2099-12-31T23:59 -- true)
again_after_kill --set auto_capture=off
expect_field "$tomorrow" state QUEUED reason.code begin
until_field "$soon" state COMPLETED
run cancel "$tomorrow"

# Who could not end before its deadline is not started; one that could, is.
until_field "$(job --deadline now+1hour -t 5 -- true)" state COMPLETED
for late in now+60 1970-01-01; do
    until_field "$(job --deadline "$late" -t 5 -- true)" state EXPIRED
done
expect_ok submit --gpu-memory 1G --hold --deadline now+60 -t 5 -- true
grep -q 'warning: it is given up, .* before its deadline now+60: say a later --deadline, or a shorter --time' "$T/err" ||
    fail "no warning: $(cat "$T/err")"
shows "is HELD: .* it is given up once released$" explain @
holds=$(job --exclusive -- sleep 100000)
until_field "$holds" state RUNNING
late=$(job --deadline now+800 -t 5 -- touch "$T/started")
shows '; it is given up in [0-9:]*, to be over before its deadline' explain "$late"
shows '^deadline: .*[0-9] s of node time, in [0-9:]*$' explain "$late"
shows '^Deadline   .*[0-9] s of node time, in [0-9:]*$' show "$late"
until_field "$late" state EXPIRED
run cancel "$holds"
shows "was given up: it could not end before its deadline any more" explain "$late"
[ ! -e started ] || fail 'it was started all the same'
expect_error 2 "deadline 'teatime' is not a time" submit --deadline teatime -- true
for begin in now+1fortnight now+ 25:00 2026-02-31 2026-1 'tea time' 22; do
    expect_error 2 "begin '$begin' is not a time" submit --gpu-memory 1G --begin "$begin" -- true
done
for begin in now now+90 now+1day 22:00 00:00:01 midnight noon tomorrow 2099-01-02; do
    expect_ok submit -H --gpu-memory 1G --begin "$begin" -- true
done

# What can never be is refused at once.
while read -r status dependency text; do
    expect_error "$status" "$text" submit --gpu-memory 1G -d "$dependency" -- true
done <<END
1 afterok:$fails job $fails is FAILED: afterok:$fails can never come true
1 afternotok:$completes job $completes is COMPLETED
1 afterok:999999 there is no job 999999
2 afterok:0 '0' is not the number of a job
2 afterok names no job
2 afterok: names no job
2 before:1 dependency 'before' is not known
2 afterok:1?afterok:2 all, with ','
2 after:1+x 'x' is no time
2 , names nothing
END
finish
