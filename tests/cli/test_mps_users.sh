#!/bin/sh
# MPS for several users: a domain each, unless one is for all. The domain of earlier GPUs goes on for its jobs.
. "$(dirname "$0")/users.sh"
start_node "$(profile_of 555.58.02)" 100
chmod 666 "$CARMA_VNODE"
. "$SOURCE/tests/cli/faults.sh"
. "$SOURCE/tests/cli/mps.sh"
homes

# train USER: submits a job without end that says its number as $job, and waits until its memory was observed.
train() {
    allowed "$1" submit --parsable -- "$TRAIN" --memory 4G --sm-activity 0.3 --seconds 1000000
    job=$(cat "$T/out")
    until_field "$job" placements.0.observed_bytes $((4 << 30))
}

# domain_of UID: the directory of the user's only domain.
domain_of() {
    (cd "$DOMAINS" && echo uid-"$1"-*)
}

start
runs 1 -G 2 --exclusive -- sleep 100000
train alice
train bob
train alice
train bob
# beside JOB OTHER: on its GPU.
beside() {
    expect_field "$1" placements.0.uuid "$(field "$2" placements.0.uuid)"
}
beside 4 2
beside 5 3
[ "$(field 2 placements.0.uuid)" != "$(field 3 placements.0.uuid)" ] || fail "alice and bob share a GPU by MPS"
until_controls 4

# until_servers USER COUNT: waits for COUNT that run as the user.
until_servers() {
    wait_for '[ "$(controls | sed "s|.*|/proc/&|" | xargs -r stat -c %u | grep -c "^$(uid_of "$1")\$")" -eq "$2" ]' "$@" ||
        fail "not $2 servers run as $1"
}

# is_domain_of USER OTHER: with both jobs of the user, a server that runs as him, and no place where the other may write.
# The other neither talks to the daemon nor becomes a client, whose fault would be the jobs'.
is_domain_of() {
    uid=$(uid_of "$1")
    domain=$(domain_of "$uid")
    until_clients 2
    until_servers "$1" 1
    as "$1" ls "$DOMAINS/$domain/pipe" >/dev/null || fail "$1 cannot look into $domain"
    for place in "$DOMAINS/$domain" "$DOMAINS/$domain/pipe" "$DOMAINS/$domain/log"; do
        as "$2" test -w "$place" && fail "$2 may write in $1's $place"
    done
    pipe=$DOMAINS/$domain/pipe
    for pair in "$1:0" "$2:1"; do
        echo get_server_list | as "${pair%:*}" env CUDA_MPS_PIPE_DIRECTORY="$pipe" "$CONTROL" >/dev/null 2>"$T/err"
        [ $? -eq "${pair#*:}" ] || fail "${pair%:*}, in $1's domain: $(cat "$T/err")"
    done
    as "$2" env CUDA_MPS_PIPE_DIRECTORY="$pipe" CUDA_VISIBLE_DEVICES="$(field $((uid - 11999)) placements.0.uuid)" "$TRAIN" \
        --memory 200M --seconds 1000 --fail illegal-access --fail-at 60 >"$T/out" 2>&1
    grep -q 'time sharing' "$T/out" || fail "$2, a client of $1's: $(cat "$T/out")"
}
is_domain_of alice bob
is_domain_of bob alice
for job in 2 3 4 5; do
    expect_field $job state RUNNING attempts 1
done

# The next daemon knows the user of each: his ends with his jobs, hers goes on.
stop_daemon KILL
start
cancel 1 3 5
stop_daemon
until_servers bob 0
until_servers alice 1
start
cancel 2 4

# A GPU is lost beside a job of hers. The next job begins a domain of the other three; hers goes on in the one before.
train alice
first=$job
before=$(domain_of 12001)
lost=$((($(field "$first" placements.0.index) + 1) % 4))
"$PREFIX/bin/carma-vnode" inject gpu-lost --gpu $lost
until_gpu $lost lost True
train alice
after=$(cd "$DOMAINS" && printf '%s\n' uid-12001-* | grep -vxF "$before")
[ "$(tr ',' '\n' <"$DOMAINS/$after/gpus" | grep -c GPU)" -eq 3 ] || fail "the next domain is '$after', for $(cat "$DOMAINS/$after/gpus")"
for domain in "$before" "$after"; do
    until_clients 1
done
until_servers alice 2
expect_field "$first" attempts 1

# It comes back: so does the domain of four, because its job never left it; the other lasts as long as its job.
"$PREFIX/bin/carma-vnode" clear
until_gpu $lost lost False
second=$job
train alice
domain=$before
until_clients 2
domain=$after
until_clients 1
cancel "$second"
train alice # an idle one makes room
until_servers alice 1
cancel "$first" $((second + 1)) $((second + 2))
expect_field "$first" attempts 1
end_daemon
until_controls 0

# One server for all.
start --set mps_multiuser=yes
exclusive=$(submitted -G 3 --exclusive -- sleep 100000)
until_field "$exclusive" state RUNNING
train alice
train bob
beside "$job" $((job - 1))
domain=$(cd "$DOMAINS" && echo all-*)
until_clients 2
until_controls 2
cancel "$exclusive" $((job - 1)) "$job"
stop_daemon
until_controls 0
