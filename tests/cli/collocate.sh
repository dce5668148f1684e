# For tests of carma bench collocate: sourced after node.sh.
# shellcheck shell=sh
CARMA_NVML_LIBRARY=$PREFIX/lib/carma/vnode/libnvidia-ml.so.1
TMPDIR=$T/tmp
export CARMA_NVML_LIBRARY TMPDIR
mkdir "$TMPDIR"
unset CUDA_VISIBLE_DEVICES CUDA_MPS_PIPE_DIRECTORY

# The virtual control program; it is written down which GPUs each daemon gets.
program "$T/mps-control" <<END
#!/bin/sh
[ "\${1-}" != -d ] || echo "\$CUDA_VISIBLE_DEVICES" >>"$T/mps-started"
exec "$BUILD/src/vnode/nvidia-cuda-mps-control" "\$@"
END

# Nothing of a bench is left: no job, no daemon, no directory.
expect_nothing_left() {
    for pid in $(own_processes); do
        grep -qF "CARMA_VNODE=$CARMA_VNODE" "/proc/$pid/environ" 2>/dev/null || continue
        case $(cat "/proc/$pid/comm" 2>/dev/null) in
        carma-* | nvidia-*) fail "$said: still runs: $(tr '\0' ' ' <"/proc/$pid/cmdline")" ;;
        esac
    done
    [ -z "$(ls "$TMPDIR")" ] || fail "$said: left behind: $(ls "$TMPDIR")"
}
