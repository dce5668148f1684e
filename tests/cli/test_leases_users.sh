#!/bin/sh
# Nobody but root claims to be Slurm, and on Slurm's node nobody else submits.
. "$(dirname "$0")/users.sh"
. "$SOURCE/tests/cli/leases.sh"
homes
start_all a100x4-40g 20 --set engine=slurm --set gate=memory

# as_alice METHOD PATH [BODY]
cp "$SOURCE/tests/cli/leases.py" "$SOURCE/tests/cli/unix_http.py" "$T/alice"
chmod 644 "$T/alice/"*.py
as_alice() {
    answer=$(as alice /usr/bin/python3 -B "$T/alice/leases.py" "$CARMA_SOCKET" "$@")
    status=${answer%% *}
    answer=${answer#* }
}
for request in "GET /v1/leases" "GET /v1/leases/by-key" "POST /v1/leases" "POST /v1/leases/1/end" "PUT /v1/leases/1/steps/0"; do
    # shellcheck disable=SC2086
    as_alice $request '{}'
    expect 403 "$request of a user"
done
as_alice GET /v1/capacity
expect 200 "capacity"
[ "$(said gpus)" = 4 ] || fail "capacity: $answer"

as alice "$CARMA" submit -- true >out 2>err && fail "a user's job was taken: $(cat out)"
grep -q "this node is Slurm's: submit with sbatch" err || fail "a user's job: $(cat err)"

# A lease is its user's, whose name it shows; its user cannot end it.
ask POST /v1/leases '{"engine": "slurm", "cluster": "c", "job": 5, "restart": 0, "node": "n", "uid": 12001, "gpu_memory": 5368709120}'
expect 201 "a lease of alice's"
id=$(said id)
expect_field "$id" user alice
as alice "$CARMA" cancel "$id" >out 2>err && fail "its user cancelled a lease"
grep -q "scancel" err || fail "its user cancels: $(cat err)"
expect_ask 200 "its end" POST "/v1/leases/$id/end" '{"exit_status": 0}'
stop_daemon
