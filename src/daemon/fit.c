#include "daemon/fit.h"

#include "core/ledger.h"

/* The most memory that this many GPUs of the node have; 0: fewer GPUs. */
static int64_t memory_of_gpus(const struct core *core, uint32_t wanted)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < core_gpu_count(core); i++) {
        int64_t total = core_gpu(core, i)->total_bytes;
        uint32_t as_large = 0;
        for (uint32_t k = 0; k < core_gpu_count(core); k++)
            as_large += core_gpu(core, k)->total_bytes >= total;
        if (as_large >= wanted && total > most)
            most = total;
    }
    return most;
}

void fit_request(const struct core *core, struct record_submitted *wants)
{
    struct reason why;
    int64_t most;

    if ((wants->request_source != SOURCE_RECORDED && wants->request_source != SOURCE_ESTIMATED) ||
        core_could_ever_run(core, wants, &why))
        return;
    most = memory_of_gpus(core, wants->gpus);
    if (most > 0 && wants->request_bytes > most)
        wants->request_bytes = most;
}
