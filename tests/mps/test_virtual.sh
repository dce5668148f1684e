#!/bin/sh
# Usage: test_virtual.sh SOURCE BUILD
# The virtual control program answers as NVIDIA's of each driver that was recorded.
T=$(mktemp -d) || exit 99
trap 'rm -rf "$T"' EXIT
chmod 711 "$T"
[ "$(id -u)" -eq 0 ] || {
    echo "skipped: the recordings are of root's control programs"
    exit 77
}
CARMA_VNODE=$T/node
export CARMA_VNODE
status=0
for golden in "$1"/tests/golden/mps/*.txt; do
    driver=$(sed -n 's/^driver //p' "$golden")
    sed "s/^driver_version = .*/driver_version = $driver/" "$1/data/nodes/a100x4-40g.ini" >"$T/profile.ini"
    rm -f "$CARMA_VNODE"
    "$2/src/vnode/carma-vnode" create "$CARMA_VNODE" --profile "$T/profile.ini" >/dev/null || exit 99
    chmod 666 "$CARMA_VNODE"
    python3 -B "$1/tests/mps/record.py" "$driver" "$2/src/vnode/nvidia-cuda-mps-control" "$golden" || status=1
done
exit $status
