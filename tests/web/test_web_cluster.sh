#!/bin/sh
# Usage: test_web_cluster.sh CARMA SOURCE BUILD [PICTURES]
# The dashboard's page of all nodes: one with a carmad, some with canned answers, one that is refused, one that is hostile.
# PICTURES: a folder for pictures of it (script/screenshots).
. "$(dirname "$0")/../cli/node.sh"
. "$SOURCE/tests/web/prepare.sh"
mkdir "$T/fake"
cat >"$T/fake/ssh" <<EOF
#!/bin/sh
while [ "\$1" != -- ]; do shift; done
case \$2 in
gpu01)
    CARMA_SOCKET=$CARMA_SOCKET
    PATH=$PREFIX/bin:\$PATH
    export CARMA_SOCKET PATH
    exec sh -c "\$3" ;;
gpu0[23])
    case \$3 in
    *gpus*) cat "$T/gpus-\$2.json" ;;
    *) cat "$T/queue-\$2.json" ;;
    esac ;;
gpu05) echo '{"gpus": [null, "x", ["y"]], "jobs": "<img src=x onerror=alert(1)>"}' ;;
*)
    echo "ssh: connect to host \$2 port 22: No route to host" >&2
    exit 255 ;;
esac
EOF
cat >"$T/fake/squeue" <<'EOF'
#!/bin/sh
now=$(date +%s)
printf '%s\n' "1841_[4-9]|1|$((now - 2400))|ada|gres:gpumem:12G|Resources|sweep-lr" "1847|1|$((now - 620))|grace|gres:gpumem:31G,gpubig:1|Priority|<img src=x onerror=alert(1)>" \
    "1850|2|$((now - 95))|alan|gres:gpumem:80G,gpubig:4|Dependency|finetune-7b"
EOF
chmod +x "$T/fake/ssh" "$T/fake/squeue"
python3 - "$T" <<'PYTHON'
import json, sys
gib = 1 << 30
def gpu(index, used, sm, jobs):
    return {"index": index, "name": "NVIDIA A100-SXM4-40GB", "used_bytes": int(used * gib), "total_bytes": int(39.6 * gib),
            "free_bytes": int((39.2 - used) * gib), "sm_activity_permille": sm, "power_mw": 60000 + 240 * sm, "jobs": jobs}
def job(id, slurm, name, user, index, reserved, minutes):
    return {"id": id, "slurm_job": slurm, "cluster": "lab", "engine": "slurm", "name": name, "user": user, "state": "RUNNING", "gpus": 1,
            "placements": [{"index": index}], "reserved_bytes": int(reserved * gib), "started_ns": 10**18 - minutes * 60 * 10**9}
for node, gpus, jobs in [
    ("gpu02", [gpu(0, 21.4, 640, [12, 14]), gpu(1, 9.1, 310, [13]), gpu(2, 30.2, 880, [15]), gpu(3, 0, 0, [])],
     [job(12, 1832, "resnet50", "ada", 0, 12, 71), job(13, 1838, "bert-base", "grace", 1, 10.5, 34), job(14, 1841, "sweep-lr", "ada", 0, 12, 22),
      job(15, 1829, "llama-lora", "alan", 2, 31, 143)]),
    ("gpu03", [gpu(0, 12.2, 420, [7]), gpu(1, 33.1, 930, [8]), {**gpu(2, 0, 0, []), "lost": True, "power_mw": None, "sm_activity_permille": None}, gpu(3, 11.8, 380, [9])],
     [job(7, 1841, "sweep-lr", "ada", 0, 12, 21), job(8, 1829, "llama-lora", "alan", 1, 34, 143), job(9, 1841, "sweep-lr", "ada", 3, 12, 20)])]:
    json.dump({"now_ns": 10**18, "gpus": gpus}, open(f"{sys.argv[1]}/gpus-{node}.json", "w"))
    json.dump({"now_ns": 10**18, "jobs": jobs}, open(f"{sys.argv[1]}/queue-{node}.json", "w"))
PYTHON
PATH=$T/fake:$PATH
export PATH
start_all a100x4-40g 60 --set share=mps
runs 1 -J local --gpu-memory 9G -- "$TRAIN" --memory 8G --sm-activity 0.5 --seconds 1000000
open_dashboard "$T/address" "$CARMA"
alone=$address
# shellcheck disable=SC2317 # open_dashboard calls it
cluster() {
    exec "$CARMA" "$@" --nodes gpu01,gpu02,gpu03,gpu04,gpu05 --node-timeout 30
}
open_dashboard "$T/cluster.address" cluster
node "$SOURCE/tests/web/cluster.mjs" "$address" "$alone" "${4-}" || fail "the page of all nodes: see above"
