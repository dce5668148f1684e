#!/bin/sh
# Usage: test_calibrate.sh CARMA SOURCE BUILD FAKE_CUDA FAKE_STEP
# carma calibrate on a virtual node, with a CUDA driver's library and a tiny step of the tests' own.
. "$(dirname "$0")/lib.sh"
BUILD=$3
STEP=$(realpath "$5") || exit 99
CARMA_CUDA_LIBRARY=$(realpath "$4")
CARMA_NVML_LIBRARY=$BUILD/src/vnode/libnvidia-ml.so.1
CARMA_VNODE=$T/node
export CARMA_CUDA_LIBRARY CARMA_NVML_LIBRARY CARMA_VNODE
unset CUDA_VISIBLE_DEVICES FAKE_CUDA FAKE_STEP FAKE_CUDA_CONTEXT_MIB
mkdir -p "$T/bin" "$T/prefix/lib/carma" "$T/prefix/share/carma"
ln -s "$BUILD/src/gpu/carma-monitor" "$T/prefix/lib/carma"
ln -s "$SOURCE/python" "$T/prefix/share/carma/python"
CARMA_PREFIX=$T/prefix
export CARMA_PREFIX
printf '#!/bin/sh\n[ "$1" = -c ] && exec "%s" "$@"\nexec "%s" "$@"\n' "$STEP" "$(command -v python3)" >"$T/bin/python3"
chmod +x "$T/bin/python3"
PATH=$T/bin:$PATH

# No GPU: one line, status 69.
CARMA_CUDA_LIBRARY=$T/none expect_error 69 "no GPU is usable here" calibrate
expect_error 1 "cuInit: CUDA_ERROR_UNKNOWN (999)" calibrate

"$BUILD/src/vnode/carma-vnode" create "$CARMA_VNODE" --profile "$SOURCE/data/nodes/a100x4-40g.ini" >/dev/null || exit 99
FAKE_CUDA=none expect_error 69 "finds none" calibrate
FAKE_CUDA=broken expect_error 1 "cuDevicePrimaryCtxRetain: CUDA_ERROR_UNKNOWN" calibrate
FAKE_STEP=fails expect_error 1 "needs PyTorch with CUDA" calibrate
FAKE_STEP=garbage expect_error 1 "instead of its linear step" calibrate

# The real python3 takes no module of the directory where somebody else has put it.
mkdir -p "$T/planted/carma"
echo "open('$T/taken', 'w')" | tee "$T/planted/json.py" >"$T/planted/carma/__init__.py"
(cd "$T/planted" && PATH=${PATH#*:} "$CARMA" calibrate >"$T/out" 2>&1) && fail "calibrate without PyTorch's GPU: $(cat "$T/out")"
[ -e "$T/taken" ] && fail "calibrate imports a module of the working directory"

# Its measurements agree with the fakes: 1500 MiB of context, 260 more with cuDNN, the allocator's reserve taken off.
expect_ok calibrate
[ -s "$T/err" ] && fail "$said: says '$(cat "$T/err")'"
cat >"$T/wanted" <<'END'
# Made by carma calibrate (docs/formats/profile.md).
# An empty CUDA context takes 400 MiB of it.
name = calibrated
gpu = NVIDIA A100-SXM4-40GB
source = measured by carma calibrate with PyTorch 2.4.1+cu121
context = 1500MiB
cudnn = 260MiB
cublas_workspace = 8320KiB
memory = 40536MiB
sm_count = 108
sm_clock_mhz = 1410
bandwidth_gbps = 1555
END
diff "$T/wanted" "$T/out" >&2 || fail "$said: another profile"
shows "context 1.5 GiB, with cuDNN 260 MiB more; written to $T/box.profile" calibrate --output "$T/box.profile"
sed 's/calibrated/box/' "$T/wanted" | diff - "$T/box.profile" >&2 || fail "$said: another file"
expect_error 1 "No such file" calibrate --output "$T/no/where"
expect_ok calibrate --output "$T/größer 2"
grep -q '^name = gr__*er_2$' "$T/größer 2" || fail "$said: $(cat "$T/größer 2")"

# carma estimate can use it; a fault in it is reported with its line.
printf '#!/bin/sh\n#CARMA --gpu-memory 12G\ntrue\n' >"$T/job.sh"
shows '(box): fits into the 39.6 GiB that jobs' estimate "$T/job.sh" --profile "$T/box.profile"
echo "cache = 1G" >>"$T/box.profile"
expect_error 1 "box.profile:13: unknown key 'cache'" estimate "$T/job.sh" --profile "$T/box.profile"

# Not on a GPU in use.
mkfifo "$T/input" "$T/output"
PYTHONPATH=$T "$STEP" -c tiny_step <"$T/input" >"$T/output" &
exec 8>"$T/input"
read -r _ <"$T/output"
expect_error 1 "in use, 1 of its processes" calibrate
exec 8>&-
wait

shows '^a100-40g-thesis  NVIDIA A100-SXM4-40GB ' calibrate --list
grep -q '^h200 .* assumed ' "$T/out" || fail "$said: no H200"
expect_error 2 "goes alone" calibrate --list --output x
expect_error 2 "takes no arguments" calibrate x
