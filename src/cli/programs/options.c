#include "cli/programs/programs.h"

#include "cli/cli.h"
#include "cli/cluster/cluster.h"
#include "cli/commands.h"

/* carma-bench gets them by their names: their keys are but different. TIME and N are checked here (cmd_program.c). */
static const struct argp_option collocate_options[] = {
    {"mode", 0x200, "LIST", 0, "how the jobs share: time-slice, mps, mig (default: all that the GPU offers)", 0},
    {"degrees", 0x201, "LIST", 0, "how many at once: 1,2,4 or 1-7 (default: 1-4, or none with --mix)", 0},
    {"commands", 0x202, "FILE", 0, "several commands instead of one: lines NAME: COMMAND, for /bin/sh", 0},
    {"mix", 0x203, "NAMES", 0, "also these commands at once, e.g. small+small+large; may be given several times", 0},
    {"epochs", 0x204, "N", 0, "epochs of a command, of equal length (default: 1)", 1},
    {"epoch-pattern", 0x205, "REGEX", 0, "an epoch ends with each line of output that this matches", 1},
    {"time-limit", 0x206, "TIME", 0, "stop a run that takes longer, e.g. 10m", 1},
    {"gpu", 0x207, "GPU", 0, "index or UUID (default: the first one)", 2},
    {"mps-control", 0x208, "FILE", 0, "the MPS control program (default: nvidia-cuda-mps-control on the PATH)", 2},
    {"nvml", 0x209, "FILE", 0, "the NVML library (default: $CARMA_NVML_LIBRARY, else libnvidia-ml.so.1)", 2},
    {"output", 0x20a, "DIR", 0, "keep the jobs' output and the results as JSON there", 3},
    {"json", CLI_JSON_KEY, NULL, 0, "print the results as JSON", 3},
    {0},
};

const struct argp bench_collocate_argp = {
    .options = collocate_options,
    .args_doc = "-- COMMAND...\n--commands FILE",
    .doc = "Measure the effects of sharing a GPU on training jobs: each command alone, then several at once. They "
           "share by time-slicing (no MPS), under an MPS daemon of its own, and on the MIG instances that there are. "
           "Prints time per epoch, "
           "throughput (1: as fast as one after another), SM activity, memory, PCIe traffic, power and energy."
           "\vNothing else should run on the GPU. A run whose jobs fail, for lack of memory say, is reported and the "
           "others go on; the exit status is then 1. docs/bench.md explains the figures.",
};

static const struct argp_option monitor_options[] = {
    {"light", 0x20b, "COMMAND", 0, "one epoch of a light load, for /bin/sh (default: --load light)", 0},
    {"heavy", 0x20c, "COMMAND", 0, "one epoch of a heavy load (default: --load heavy)", 0},
    {"repeat", 0x20d, "N", 0, "run each load beside each source so often (default: 3)", 0},
    {"period", 0x20e, "TIME", 0, "time between two looks at the GPU (default: 1s)", 0},
    {"kernel", 0x20f, NULL, 0, "instead: the metrics as a kernel's blocks and threads grow", 1},
    {"point", 0x210, "TIME", 0, "with --kernel: how long each size runs (default: 3s)", 1},
    {"load", 0x211, "light|heavy", 0, "instead: only run one epoch of this built-in load on the GPU", 1},
    {"gpu", 0x207, "GPU", 0, "index or UUID (default: the first one)", 2},
    {"nvml", 0x209, "FILE", 0, "the NVML library (default: $CARMA_NVML_LIBRARY, else libnvidia-ml.so.1)", 2},
    {"dcgm", 0x212, "FILE", 0, "the DCGM library (default: $CARMA_DCGM_LIBRARY, else libdcgm.so.4, else .3)", 2},
    {"output", 0x20a, "DIR", 0, "keep the runs' output and the results as JSON there", 3},
    {"json", CLI_JSON_KEY, NULL, 0, "print the results as JSON (docs/formats/cli.md)", 3},
    {0},
};

const struct argp bench_monitor_argp = {
    .options = monitor_options,
    .doc = "Measure the cost of watching a GPU: epoch time of a light and a heavy load, processor time, memory and "
           "bytes logged. The loads run beside no tool, NVML's utilisation, GPM, DCGM, Nsight Systems and PyTorch's "
           "profiler, as far as they are present. Or, with --kernel, measure the metrics of kernels that fill more and "
           "more of the GPU."
           "\vNothing else should run on the GPU. On a virtual node (CARMA_VNODE) the loads are carma-train's, and "
           "the measurements are simulated. Exit status: 69 where there is no GPU.",
};

static const struct argp_option dashboard_options[] = {
    {"port", DASHBOARD_KEY_PORT, "N", 0, "listen on port N of 127.0.0.1 (default: one that is free)", 0},
    {"no-open", DASHBOARD_KEY_NO_OPEN, NULL, 0, "open no browser", 0},
    CLUSTER_OPTIONS,
    {0},
};

const struct argp dashboard_argp = {
    .options = dashboard_options,
    .doc = "Show the GPUs and the queue in a browser.\vPrints an address that lets one browser in, once. Until Ctrl-C "
           "it passes the page's requests on to the daemon, as yours. Only this machine can reach it, and of its users "
           "only you. With --cluster it begins with a page of all nodes, which it asks itself.",
};
