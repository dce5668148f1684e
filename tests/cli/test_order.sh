#!/bin/sh
# The order among waiting jobs that people give: priorities, over a kill of carmad.
. "$(dirname "$0")/node.sh"
start_node h200x1 100
start_daemon --set auto_capture=off

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
expect_error 2 'out of range: -10 to 10' submit -p 11 -- true
expect_error 2 "'gpu' is not a whole number" submit -p gpu -- true
finish
