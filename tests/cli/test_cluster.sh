#!/bin/sh
# carma gpus|queue --cluster over two real carmads on virtual nodes, a node that hangs, one that is refused, and nodes
# that answer with garbage, too much, or a hostile JSON. An ssh of our own reaches them all.
. "$(dirname "$0")/node.sh"

mkdir "$T/fake" "$T/home"
program "$T/fake/ssh" <<EOF
#!/bin/sh
echo "\$*" >>"$T/asked"
while [ "\$1" != -- ]; do shift; done
case \$2 in
n1 | n2)
    CARMA_SOCKET=$T/\$2.socket
    PATH=$PREFIX/bin:\$PATH
    export CARMA_SOCKET PATH
    exec sh -c "\$3" ;;
left | right) # answers once the other has been asked, too
    touch "$T/met-\$2"
    until [ -e "$T/met-left" ] && [ -e "$T/met-right" ]; do sleep 0.05; done
    echo '{"gpus": []}' ;;
hung) exec sleep 1000 ;;
held) sleep 1000 & ;; # it has ended, but its pipes are open
refused)
    echo "Warning: a banner" >&2
    printf 'ssh: connect to host refused port 22: \033[31mConnection refused\n\n' >&2
    exit 255 ;;
garbage) printf '\033]0;owned\007\000\377{' ;;
array) echo '["gpus"]' ;;
flood) exec cat /dev/zero ;;
evil) cat "$T/evil.json" ;;
*) exit 3 ;;
esac
EOF
PATH=$T/fake:$PATH
export PATH
unset CARMA_NODES

# Numbers of whatever size, texts that steer a terminal, a name that is not its own, more rows than anybody reads.
python3 - >"$T/evil.json" <<'PYTHON'
import json
most = 2**63 - 1
steer = "\x1b[2J\u009b31m\u202e" + "x" * 1000
gpu = {"index": most, "name": steer, "used_bytes": -most, "total_bytes": most, "free_bytes": most, "power_mw": most, "jobs": [most],
       "sm_activity_permille": 1e300, "mps_server_bytes": most, "unmanaged_bytes": -most,
       "unmanaged": [{"job": 1, "used_bytes": most}] * 9, "metrics": {"sm_activity": {"value": most, "source": steer, "age_ns": most}}}
job = {"id": most, "slurm_job": 7, "name": steer, "user": steer, "state": "RUNNING", "letter": steer, "gpus": most, "reserved_bytes": most,
       "started_ns": -most, "submitted_ns": -most, "placements": [{"index": most}]}
print(json.dumps({"name": "n1", "now_ns": most, "gpus": [gpu] * 300, "jobs": [job] * 1003}))
PYTHON

# start_one NAME [ARGUMENT...]: a virtual node of that name and its daemon.
start_one() {
    name=$1
    shift
    CARMA_VNODE=$T/node-$name
    STATE=$T/state-$name
    CARMA_SOCKET=$T/$name.socket
    [ -e "$CARMA_VNODE" ] || start_node a100x4-40g 100
    start_daemon --config /dev/null "$@"
}
start_one n1
first=$daemon
start_one n2
runs 1 -J on-n2 --gpu-memory 5G -- sleep 1000
CARMA_VNODE=$T/node # of both, for end_node
CARMA_SOCKET=$T/none
all=n1,hung,n2,held,refused,garbage,array,flood,evil,n1

# All are asked at the same time.
run gpus --nodes left,right --node-timeout 30
grep 'no answer' "$T/out" && fail "$said: one after the other"

# json EXPRESSION: of the output.
json() {
    check "(lambda whole, nodes: $1)(said, {node['name']: node for node in said['nodes']})"
}

# Every node is in the answer once, in the list's order; one that does not answer has its reason.
expect_ok gpus --nodes "$all" --json
json '[node["name"] for node in whole["nodes"]] == "n1 hung n2 held refused garbage array flood evil".split()'
json '[len(nodes[name]["gpus"]) for name in ("n1", "n2")] == [4, 4]'
json 'nodes["n2"]["gpus"] != nodes["n1"]["gpus"]' # its job
json 'nodes["hung"] == {"name": "hung", "error": "no answer within 2 s"}'
json 'nodes["refused"]["error"].startswith("ssh: connect to host refused") and nodes["refused"]["error"].endswith("refused")'
json 'all(nodes[name]["error"] == "its answer is not JSON of carma'"'"'s" for name in ("garbage", "array", "held"))'
json 'nodes["flood"]["error"] == "answers with more than 8 MiB"'
json 'len(nodes["evil"]["gpus"][0]["name"]) <= 500 and nodes["evil"]["gpus"][0]["index"] == 2**43'
grep -q BatchMode=yes "$T/asked" || fail "ssh may ask for a password: $(head -1 "$T/asked")"

# clean: nothing in the output steers the terminal.
clean() {
    LC_ALL=C grep -q "[^ -~]" "$T/out" && fail "$said: bytes that are not for a terminal: $(LC_ALL=C grep -m 1 "[^ -~]" "$T/out" | head -c 200)"
    return 0
}
clean

# As a table, each row with its node; below it the nodes without an answer.
COLUMNS=160
export COLUMNS
expect_ok gpus --nodes "$all"
clean
[ "$(grep -c '^n1 ' "$T/out")" -eq 4 ] && [ "$(grep -c '^n2 ' "$T/out")" -eq 4 ] || fail "$said: $(head -20 "$T/out")"
[ "$(grep -c '^evil ' "$T/out")" -eq 256 ] || fail "$said: $(grep -c '^evil ' "$T/out") rows of the hostile node"
grep -qx 'hung: no answer within 2 s' "$T/out" || fail "$said: no reason of hung: $(tail -8 "$T/out")"
grep -q '^refused: ssh: connect to host refused port 22: .*Connection refused$' "$T/out" || fail "$said: $(tail -8 "$T/out")"

# Jobs that wait are Slurm's, those that run the nodes'.
program "$T/fake/squeue" <<'EOF'
#!/bin/sh
[ "$SLURM_TIME_FORMAT" = %s ] || exit 9
printf '%s\n' '12_[1-3]|2|0|ada|gres:gpumem:5G|Resources|a|b' "9|1|$(($(date +%s) - 90))|bob|N/A|Dependency|$(printf '\033c')" 'slurm is odd'
EOF
expect_ok queue --nodes n1,n2,refused --json
json 'whole["slurm"]["waiting"][0] == {"job": "12_[1-3]", "nodes": 2, "submitted_s": 0, "user": "ada", "gres": "gres:gpumem:5G", "reason": "Resources", "name": "a|b"}'
json 'len(whole["slurm"]["waiting"]) == 2'
json 'nodes["n1"]["jobs"] == [] and nodes["n2"]["jobs"][0]["name"] == "on-n2" and "error" in nodes["refused"]'
expect_ok queue --nodes n1,n2,refused
clean
grep -q '^n2  *-  *1  *on-n2 .* R ' "$T/out" || fail "$said: no job of n2: $(cat "$T/out")"
expect_out '^-  *12_\[1-3\]  *-  *a|b  *ada  *PD .*Resources (gres:gpumem:5G on 2 nodes)$'
expect_out '^-  *9  .* bob  *PD .* 1:[23][0-9]  *Dependency'
if /usr/bin/python3 -c 'import pyte' 2>/dev/null; then
    /usr/bin/python3 -B "$SOURCE/tests/cli/cluster_top.py" "$CARMA" || fail "cluster_top.py"
else
    echo "no pyte here (script/packages test): carma top --cluster is not tested"
fi
expect_ok queue --nodes evil
clean
[ "$(grep -c '^evil  *7 ' "$T/out")" -eq 1000 ] && grep -q '^and 3 more' "$T/out" || fail "$said: $(wc -l <"$T/out") lines"
printf '#!/bin/sh\necho "slurm_load_jobs error: no controller" >&2; exit 1\n' >"$T/fake/squeue"
shows '^jobs that wait at Slurm: squeue: slurm_load_jobs error: no controller$' queue --nodes n1,n2

# The leases of one job stand together, before jobs that are not Slurm's.
cat >"$T/evil.json" <<'EOF'
{"jobs": [{"id": 1, "name": "local"}, {"id": 2, "slurm_job": 30, "name": "late"}, {"id": 3, "slurm_job": 4, "name": "early"}]}
EOF
run queue --nodes n2,evil
[ "$(awk 'NR > 1 && NR < 6 { print $4 }' "$T/out" | xargs)" = "early late on-n2 local" ] || fail "$said: order: $(cat "$T/out")"

# Where the nodes are from: the setting, or sinfo, which has a node once for each of its partitions.
printf '#!/bin/sh\nprintf "n2 \\nn1\\nn2\\n"\n' | program "$T/fake/sinfo"
run gpus --cluster --json
json '[node["name"] for node in whole["nodes"]] == ["n2", "n1"]'
CARMA_NODES=n1 run gpus --cluster --json
json 'list(nodes) == ["n1"]'
printf '#!/bin/sh\necho "sinfo: error: no configuration" >&2; exit 1\n' >"$T/fake/sinfo"
expect_error 1 'sinfo: error: no configuration' gpus --cluster
expect_error 1 "'-V' is not a node's name" gpus --nodes=-V
expect_error 1 "is not a node's name" queue --nodes 'n1,a;b'
expect_error 1 "no node is named" queue --nodes ,
expect_error 1 "more than 1024 nodes" gpus --nodes "$(seq -s, 1025)"
expect_error 2 'not a number of seconds' gpus --node-timeout 0
ends 1 gpus --nodes hung,refused --node-timeout 0.5
grep -qx 'hung: no answer within 0.5 s' "$T/out" || fail "$said: $(cat "$T/out")"

# A node with a TCP listener, by this machine's carma and the token.
stop_daemon
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
(umask 077 && python3 -c 'import secrets; print(secrets.token_hex(32))' >"$T/token")
start_one n2 --set listen="127.0.0.1:$port" --set token_file="$T/token"
CARMA_VNODE=$T/node
run gpus --json --nodes "n1,tcp://127.0.0.1:$port"
json '"CARMA_TOKEN_FILE" in whole["nodes"][1]["error"] and len(nodes["n1"]["gpus"]) == 4'
CARMA_TOKEN_FILE=$T/token run gpus --json --nodes "n1,tcp://127.0.0.1:$port"
json 'len(whole["nodes"][1]["gpus"]) == 4'
kill "$first"
wait "$first" || fail "the first carmad ends with status $?"
