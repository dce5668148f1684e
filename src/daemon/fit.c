#include "daemon/fit.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/gpus/suits.h"
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

/* RECORD_NO_GPU: there is none such. */
static uint32_t number_of(const struct core *core, const char *name)
{
    char *end;
    unsigned long long number = strtoull(name, &end, 10);

    if (*name && !*end)
        return number < core_gpu_count(core) ? (uint32_t)number : RECORD_NO_GPU;
    for (uint32_t i = 0; i < core_gpu_count(core); i++)
        if (strcmp(core_gpu(core, i)->uuid, name) == 0)
            return i;
    return RECORD_NO_GPU;
}

/* An item is "3", "0-2" or a UUID. The check of the submission has refused ranges that go backwards. */
static int exclude(const struct core *core, char *item, uint64_t *excluded, struct error *err)
{
    char *dash = isdigit((unsigned char)*item) ? strchr(item, '-') : NULL;
    const char *upto = dash ? dash + 1 : item;
    uint32_t first, last;

    if (dash)
        *dash = '\0';
    first = number_of(core, item);
    last = number_of(core, upto);
    if (first == RECORD_NO_GPU || last == RECORD_NO_GPU)
        return error_set(err, EINVAL, "exclude_gpu: there is no GPU %.60s here: carma gpus lists them",
                         first == RECORD_NO_GPU ? item : upto);
    if (last >= GPU_EXCLUDED_MOST)
        return error_set(err, EINVAL, "exclude_gpu: GPU %.60s cannot be excluded: only 0 to %d can", upto,
                         GPU_EXCLUDED_MOST - 1);
    for (; first <= last; first++)
        *excluded |= UINT64_C(1) << first;
    return 0;
}

int fit_excluded(const struct core *core, const char *list, uint64_t *excluded, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrdup(list ? list : "");
    char *rest = NULL;
    int status = 0;

    *excluded = 0;
    for (char *item = strtok_r(copy, ",", &rest); item && !status; item = strtok_r(NULL, ",", &rest))
        status = exclude(core, item, excluded, err);
    return status;
}
