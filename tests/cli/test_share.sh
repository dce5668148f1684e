#!/bin/sh
# Fair turns as users see them: places and reasons, expected starts, shares over a restart and in a replay.
. "$(dirname "$0")/users.sh"
homes
start_node a100x4-40g 100
start() { # ARGUMENT...
    start_daemon --config /dev/null --set admin_group=carma-admins --set auto_capture=off --set learn=no "$@"
}
start

submit() { # USER JOBS SECONDS
    for _ in $(seq "$2"); do
        as "$1" "$CARMA" submit --parsable --exclusive --gpu-memory 10G -- "$TRAIN" --memory 5G --seconds "$3" >/dev/null
    done
}
explained() { # ID TEXT: alice is told so
    allowed alice explain "$1"
    grep -q "$2" "$T/out" || fail "$said: no '$2' in: $(cat "$T/out")"
}
# shares EXPRESSION: holds of the users (u, by name, in their order).
shares() {
    allowed bob share --json
    check "(lambda u: $1)({user['user']: user for user in said['users']})"
}

submit alice 6 100000
submit bob 2 100000
for job in 1 2 3 4; do until_field $job state RUNNING; done
explained 5 "^turn: place 3 of 4 (1 of alice's 2); bob's job 7 goes first: bob has nothing running, alice has 4$"
explained 8 "^turn: place 2 of 4 (2 of bob's 2); bob's job 7 goes first: it came earlier$"
explained 8 "^start: not known: no job has ended here that tells how long job 1 runs, and it has no time limit$"
run_as bob queue
grep -q '^ 7 .* PD .* 1  ' "$T/out" || fail "no place of job 7: $(cat "$T/out")"
run_as bob show 7
grep -q '^Turn  *place 1 of 4 (1 of bob.s 2)$' "$T/out" || fail "$said: $(cat "$T/out")"
shares 'list(u) == ["bob", "alice"] and u["alice"]["running"] == 4 and u["alice"]["held_gpu_permille"] == 4000'
shares 'u["alice"]["due_permille"] == 500 and u["alice"]["use_permille"] == 1000 and u["bob"]["use_gpu_ns"] == 0'

# With a time limit the start is known; with runs that have ended, its spread.
as alice "$CARMA" cancel 1-6 >/dev/null
for job in 7 8; do until_field $job state RUNNING; done
as bob "$CARMA" cancel 7-8 >/dev/null
submit alice 8 300
as alice "$CARMA" wait 9-16 >/dev/null
submit bob 5 2000
until_field 20 state RUNNING
allowed bob explain --json 21
check 'said["start"]["by"] == "node"' \
    '0 < said["start"]["low_ns"] <= said["start"]["median_ns"] <= said["start"]["high_ns"] < 3600e9'

# Shares: by an administrator, or by the setting, which goes before.
refused bob "for administrators" admin share bob 3
refused carol "no user 'mallory' has had a job here" admin share mallory 3
run_as carol admin share bob 3
expect_output "bob has a share of 3"
allowed carol admin share 12003 2
shares 'u["bob"]["share"] == 3 and u["alice"]["share"] == 1 and u["bob"]["due_permille"] == 1000'
used=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["users"][-1]["use_gpu_ns"])' <"$T/out")
stop_daemon
start --set shares=alice=5,12002=4
shares 'u["alice"]["share"] == 5 and u["bob"]["share"] == 4 and u["alice"]["configured"]'
refused carol "the setting 'shares' gives bob a share of 4: change it there" admin share bob 2
stop_daemon
start --set share_groups=lab=alice+12002,rest=carol --set shares=@lab=3
shares 'u["alice"]["group"] == u["bob"]["group"] == "lab" and u["bob"]["due_permille"] == 1000'
check '[(g["group"], g["share"], g["use_permille"]) for g in said["groups"]] == [("lab", 3, 1000)]'
run_as bob share
[ "$(awk 'NR > 1 {print $1, $2}' "$T/out" | tr '\n' ' ')" = "lab 3 bob 4 alice 5 " ] || fail "$said: $(cat "$T/out")"
stop_daemon
start --set starvation_timeout=1s
shares "u['alice']['share'] == 5 and u['bob']['share'] == 4 and 0.99 < u['alice']['use_gpu_ns'] / $used <= 1"
wait_for 'as alice "$CARMA" explain 21 | grep -q "^kept: GPU [0-3] is kept for it, for .* more at most$"' ||
    fail "no GPU is kept for job 21: $(as alice "$CARMA" explain 21)"
stop_daemon
expect_ok admin verify --state "$STATE"
expect_ok simulate --replay "$STATE"
