#!/bin/sh
# The order among waiting jobs that people give: priorities, places, and what is edited, over a kill of carmad.
. "$(dirname "$0")/node.sh"
start_all h200x1 100 --set auto_capture=off

waits() { # OPTION...: a job that needs the GPU to itself
    submitted --exclusive --gpu-memory 1G "$@" -- sleep 1000
}

order() { # the waiting jobs by their places
    "$CARMA" queue --json -s waiting | python3 -S -E -c 'import json, sys
print(*(job["id"] for job in sorted(json.load(sys.stdin)["jobs"], key=lambda job: job["turn"]["place"])))'
}

expect_order() { # ID...
    [ "$(order)" = "$*" ] || fail "the order is $(order), not $*"
}

first=$(waits)
until_field "$first" state RUNNING
low=$(waits -p -2)
one=$(waits)
two=$(waits)
three=$(waits)
printf '#!/bin/sh\n#SBATCH --nice=100\nsleep 1000\n' >nice.sh
nice=$(submitted --exclusive --gpu-memory 1G nice.sh)
high=$(waits --priority 1)
expect_order "$high" "$one" "$two" "$three" "$nice" "$low"
expect_field "$low" priority -2 turn.why priority turn.own_place 6
shows "job $high goes first: it has priority 1, this one -2" explain "$low"
shows 'priority -2' show "$low"
again_after_kill --set auto_capture=off
expect_order "$high" "$one" "$two" "$three" "$nice" "$low"

# One's own jobs change places; an array goes as a whole. What cannot be.
array=$(waits -a 0-2)
run move "$two" --first
run move --last "$one"
run move "$array" --before "$three"
expect_order "$high" "$two" "$array" $((array + 1)) $((array + 2)) "$three" "$one" "$nice" "$low"
run move "${array}_1" --first
expect_order "$high" $((array + 1)) "$two" "$array" $((array + 2)) "$three" "$one" "$nice" "$low"
again_after_kill --set auto_capture=off
expect_order "$high" $((array + 1)) "$two" "$array" $((array + 2)) "$three" "$one" "$nice" "$low"
while read -r status text words; do
    # shellcheck disable=SC2086 # words
    expect_error "$status" "$(echo "$text" | tr '+' ' ')" $words
done <<END
1 job+$first+is+RUNNING:+only+one+that+waits move $first --first
1 has+priority+0+and+job+$low+-2 move $one --before $low
1 cannot+go+before+itself move $one --before $one
1 job+${array}_2+cannot+go+before+itself move $array --before ${array}_2
1 9999+is+none move $one --before 9999
1 job+$first+does+not+wait move $one --before $first
2 where+to? move $one
2 say+one+of+them move $one --first --last
2 names+several+jobs move $one --before 1-2
END

# What a waiting job asks for is changed as a whole or not at all, also of an array; the run goes by it.
expect_ok edit "$low" priority=0 job-name=other time=90 gpu-memory=2G exclusive=no signal=USR1@60 requeue=yes max-slowdown=1.5
again_after_kill --set auto_capture=off
expect_field "$low" priority 0 name other time_limit_ns 5400000000000 request_bytes 2147483648 exclusive false signal 10 \
    signal_before_ns 60000000000 requeue true
expect_order "$high" "$low" $((array + 1)) "$two" "$array" $((array + 2)) "$three" "$one" "$nice" # its place is as it came
run edit "$low" time= gpu-memory= signal= begin=now+2hours
expect_field "$low" time_limit_ns null reason.code begin
run edit "$low" begin= gpu-memory=1G
run edit "$array" priority=-1
expect_order "$high" "$low" "$two" "$three" "$one" $((array + 1)) "$array" "$nice" $((array + 2))
while read -r status text words; do
    # shellcheck disable=SC2086 # words
    expect_error "$status" "$(echo "$text" | tr '+' ' ')" $words
done <<END
1 job+$first+is+RUNNING edit $first time=5
1 can+never+run+here+then edit $low gpus=9
1 signal edit $low signal=USR1@60 time=0:30
2 begin edit $low begin=now+2hours,gpus=2
2 'array=1-3'+cannot+be+changed edit $low array=1-3
2 what+is+to+be+changed edit $low
2 which+job edit time=5
2 job-name+is+said+twice edit $one job-name=a job-name=b
2 not+a+size edit $low gpu-memory=much
END
expect_field "$low" gpus 1
shows 'edit: 1 job' edit -y -J other job-name=named
run cancel --me -y
mark=$(submitted -H --gpu-memory 1G -- sh -c 'trap "echo told; exit 1" USR1; while :; do sleep 0.1; done')
run edit "$mark" time=2:00 signal=USR1@60
run release "$mark"
run wait "$mark"
grep -q told "carma-$mark.out" || fail 'the run does not go by what was edited'
expect_error 2 'out of range: -10 to 10' submit -p 11 -- true
expect_error 2 "'gpu' is not a whole number" submit -p gpu -- true
finish
