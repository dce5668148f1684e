/* How the jobs of a GPU share it, where that is `auto`: as far as MPS can be had here. */
#include "base/share.h"
#include "daemon/node/node_internal.h"
#include "gpu/nvml/abi.h"

static bool one_process_only(const struct gpu_reading *reading)
{
    return reading->compute_mode == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS ||
           reading->compute_mode == NVML_COMPUTEMODE_EXCLUSIVE_THREAD;
}

enum share_mode node_share_of(const struct node *node, uint32_t number, const struct gpu_reading *reading,
                              const char **why)
{
    const struct config *config = &node->daemon->config;
    enum share_mode mode = config_share_of(config, number, reading->uuid);

    *why = "";
    if (mode != SHARE_AUTO)
        return mode;
    if (*node->daemon->no_mps) {
        *why = node->daemon->no_mps;
        return one_process_only(reading) ? SHARE_EXCLUSIVE : SHARE_TIME_SLICE;
    }
    if (one_process_only(reading)) {
        *why = "one user at a time: its compute mode lets one process use it, which is an MPS server (nvidia-smi -c "
               "DEFAULT lets several users time-slice)";
        return SHARE_MPS;
    }
    if (config->mps_pipe_directory) {
        *why = "one user at a time: the administrator's MPS daemon (mps_pipe_directory) serves one after the other";
        return SHARE_MPS;
    }
    return reading->kind == GPU_INSTANCE ? SHARE_MPS : SHARE_AUTO; /* an instance has one server */
}
