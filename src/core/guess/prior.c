#include "core/guess/prior.h"

#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "core/core_internal.h"
#include "core/fence.h"

#define FIRST_BIN_BYTES (512 * MIB)
#define BINS_OF_OCTAVE  8
#define MOST_PARTS      (300 * PRIOR_WORKLOAD_PARTS)

/* In ten thousandths, as python/make_memory_prior.py prints them: 4,068 measured training runs of 1,017 public vision
 * models with batches of 8 to 128, on GPUs of 40 GB. Source: GPUMemNet's measurements of TIMM (data/NOTICE). */
static const uint32_t shipped_parts[PRIOR_BINS] = {
    [14] = 5,   [15] = 42,  [16] = 108, [17] = 275, [18] = 351, [19] = 339, [20] = 307, [21] = 319, [22] = 305,
    [23] = 292, [24] = 283, [25] = 504, [26] = 374, [27] = 386, [28] = 312, [29] = 315, [30] = 256, [31] = 231,
    [32] = 204, [33] = 437, [34] = 305, [35] = 334, [36] = 285, [37] = 187, [38] = 214, [39] = 209, [40] = 170,
    [41] = 305, [42] = 278, [43] = 278, [44] = 174, [45] = 199, [46] = 192, [47] = 135, [48] = 167, [49] = 224,
    [50] = 205, [51] = 88,  [52] = 67,  [53] = 52,  [54] = 41,  [55] = 33,  [56] = 27,  [57] = 40,  [58] = 29,
    [59] = 21,  [60] = 16,  [61] = 12,  [62] = 10,  [63] = 8,   [64] = 6,   [65] = 10,  [66] = 7,   [67] = 5,
    [68] = 4,   [69] = 3,   [70] = 2,   [71] = 2,   [72] = 1,   [73] = 2,   [74] = 2,   [75] = 1,   [76] = 1,
    [77] = 1,   [80] = 3,
};

static int64_t upper_edge(uint32_t bin)
{
    uint32_t above = bin - 1;
    int64_t octave_bytes;

    if (bin == 0)
        return FIRST_BIN_BYTES;
    octave_bytes = FIRST_BIN_BYTES << above / BINS_OF_OCTAVE;
    return octave_bytes + octave_bytes / BINS_OF_OCTAVE * (above % BINS_OF_OCTAVE + 1);
}

void prior_init(struct prior *prior)
{
    memcpy(prior->parts, shipped_parts, sizeof shipped_parts);
}

uint32_t prior_bins(int64_t largest_bytes)
{
    uint32_t count = 1;

    while (count < PRIOR_BINS && upper_edge(count - 1) < largest_bytes)
        count++;
    return count;
}

uint32_t prior_bin(int64_t bytes)
{
    uint32_t bin = 0;

    while (bin < PRIOR_BINS - 1 && upper_edge(bin) < bytes)
        bin++;
    return bin;
}

/* The upper edge of the bin in which the quantile lies: nobody knows where within it. */
int64_t prior_weighted_quantile(const int64_t *weights, int64_t permille, int64_t largest_bytes)
{
    uint32_t count = prior_bins(largest_bytes);
    int64_t sum = 0, below = 0;

    for (uint32_t bin = 0; bin < count; bin++)
        sum += weights[bin];
    for (uint32_t bin = 0; sum && bin < count; bin++) {
        below += weights[bin];
        if (below * 1000 >= sum * permille)
            return upper_edge(bin) < largest_bytes ? upper_edge(bin) : largest_bytes;
    }
    return largest_bytes; /* all workloads so far were larger */
}

void prior_refresh(struct core *core)
{
    struct prior *prior = &core->prior;
    int64_t weights[PRIOR_BINS], likely, careful;
    bool changed = kins_refresh(core);

    for (uint32_t bin = 0; bin < PRIOR_BINS; bin++)
        weights[bin] = prior->parts[bin];
    likely = prior_weighted_quantile(weights, core->config.prior_quantile_permille, core->largest_gpu_bytes);
    careful = prior_weighted_quantile(weights, PRIOR_CAREFUL_PERMILLE, core->largest_gpu_bytes);
    careful = careful > likely ? careful : likely;
    if (likely == prior->likely_bytes && careful == prior->careful_bytes && !changed)
        return;
    prior->changed = ++core->openings;
    prior->likely_bytes = likely;
    prior->careful_bytes = careful;
    alike_guesses_changed(core);
}

void prior_completed(struct core *core, const struct job *job, int64_t bytes)
{
    struct prior *prior = &core->prior;
    uint32_t sum = 0;

    if (!core->config.learn || bytes <= 0 || (job->profile && job->profile->runs))
        return;
    prior->parts[prior_bin(bytes)] += PRIOR_WORKLOAD_PARTS;
    for (uint32_t bin = 0; bin < PRIOR_BINS; bin++)
        sum += prior->parts[bin];
    for (uint32_t bin = 0; sum > MOST_PARTS && bin < PRIOR_BINS; bin++)
        prior->parts[bin] -= prior->parts[bin] / 2;
    if (job->profile)
        kin_completed(core, job->profile, bytes);
    prior_refresh(core);
}

static int64_t within_limits(const struct core *core, const struct record_submitted *wants, int64_t bytes)
{
    int64_t most = user_most_bytes(core, wants);

    return bytes < most ? bytes : most;
}

int64_t prior_request(const struct core *core, const struct record_submitted *wants, int64_t likely_bytes)
{
    const struct core_config *config = &core->config;

    if (!config->learn || config->memory_view != MEMORY_RESERVE || config->prior_quantile_permille == 0 ||
        wants->exclusive)
        return -1;
    return within_limits(core, wants, likely_bytes);
}

bool prior_speaks_for(const struct core *core, const struct job *job)
{
    uint32_t source;

    learned_reservation(core, job, &source);
    return source == SOURCE_PRIOR;
}

int64_t prior_fence_bytes(const struct core *core, const struct job *job, const struct record_placed *placed)
{
    int64_t fence = fence_around(within_limits(core, job->wants, kin_careful_bytes(core, job)));

    for (uint32_t i = 0; i < placed->count; i++) {
        int64_t free_bytes = gpu_free_bytes(core, core->gpus[placed->gpus[i]]);
        if (free_bytes < fence)
            fence = free_bytes;
    }
    return fence;
}

bool prior_is_sane(const uint32_t *parts, uint32_t count)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count && i < PRIOR_BINS; i++)
        sum += parts[i];
    return count == PRIOR_BINS && sum > 0 && sum <= 2 * MOST_PARTS;
}
