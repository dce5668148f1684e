/* How this file works: counts in bins (parts) are kept for each user; prior_refresh measures the quantiles of all anew
 * and folds other users' in, after a run (prior_completed), a setting or another largest GPU. A changed figure is noted
 * (core.guesses_changed) for the jobs that wait. need.c asks prior_request last of all sources. */
#include "core/guess/prior.h"

#include <string.h>

#include "base/fold.h"
#include "base/memory.h"
#include "base/units.h"
#include "core/guess/program_history.h"
#include "core/state.h"

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

/* ---- Users ---- */

const struct prior *prior_of(const struct core *core, const struct user *user)
{
    return user->own ? user->own : &core->prior;
}

static void measure(const struct core *core, struct prior *prior)
{
    int64_t weights[PRIOR_BINS], careful;

    if (!prior)
        return;
    for (uint32_t bin = 0; bin < PRIOR_BINS; bin++)
        weights[bin] = prior->parts[bin];
    prior->likely_bytes =
        prior_weighted_quantile(weights, core->config.prior_quantile_permille, core->largest_gpu_bytes);
    careful = prior_weighted_quantile(weights, PRIOR_CAREFUL_PERMILLE, core->largest_gpu_bytes);
    prior->careful_bytes = careful > prior->likely_bytes ? careful : prior->likely_bytes;
}

static int ascending(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The users' figures are ascending; `mine` is the user's among them, -1: is not. */
static int64_t fold(const struct core *core, int64_t own, const int64_t *figures, size_t count, int64_t mine)
{
    int64_t folded = fold_users(own, figures, count, mine);

    return folded < core->largest_gpu_bytes ? folded : core->largest_gpu_bytes;
}

/* `changed`: what a program's workloads are likely to need has changed already. */
static void fold_all(struct core *core, bool changed)
{
    CLEANUP(free_ptr) int64_t *likely = xcalloc(HASH_COUNT(core->users) + 1, sizeof *likely);
    CLEANUP(free_ptr) int64_t *careful = xcalloc(HASH_COUNT(core->users) + 1, sizeof *careful);
    size_t count = 0;

    for (const struct user *user = core->users; user; user = user->hh.next) {
        if (!user->told)
            continue;
        likely[count] = user->told->likely_bytes;
        careful[count++] = user->told->careful_bytes;
    }
    qsort(likely, count, sizeof *likely, ascending);
    qsort(careful, count, sizeof *careful, ascending);
    for (struct user *user = core->users; user; user = user->hh.next) {
        const struct prior *own = prior_of(core, user), *told = user->told;
        int64_t one = fold(core, own->likely_bytes, likely, count, told ? told->likely_bytes : -1),
                other = fold(core, own->careful_bytes, careful, count, told ? told->careful_bytes : -1);
        other = other > one ? other : one;
        changed |= one != user->likely_bytes || other != user->careful_bytes;
        user->likely_bytes = one;
        user->careful_bytes = other;
    }
    if (!changed)
        return;
    core->openings++;
    core->guesses_changed = true;
}

void prior_refresh(struct core *core)
{
    bool changed = false;

    measure(core, &core->prior);
    for (struct user *user = core->users; user; user = user->hh.next) {
        measure(core, user->own);
        measure(core, user->told);
        changed |= programs_refresh(core, user);
    }
    fold_all(core, changed);
}

/* The user's distribution begins with the first workload. */
static void count_workload(const struct core *core, struct prior **of_user, int64_t bytes)
{
    struct prior *prior = *of_user;
    uint32_t sum = 0;

    if (!prior) {
        prior = *of_user = xmalloc(sizeof *prior);
        *prior = core->prior;
    }
    prior->parts[prior_bin(bytes)] += PRIOR_WORKLOAD_PARTS;
    for (uint32_t bin = 0; bin < PRIOR_BINS; bin++)
        sum += prior->parts[bin];
    for (uint32_t bin = 0; sum > MOST_PARTS && bin < PRIOR_BINS; bin++)
        prior->parts[bin] -= prior->parts[bin] / 2;
    measure(core, prior);
}

void prior_completed(struct core *core, const struct job *job, int64_t bytes, int64_t at_ns)
{
    bool tells = at_ns - job->placed_ns >= PRIOR_TELLS_NS;

    if (!core->config.learn || bytes <= 0 || (job->profile && job->profile->runs))
        return;
    count_workload(core, &job->user->own, bytes);
    if (tells)
        count_workload(core, &job->user->told, bytes);
    if (job->profile) {
        job->profile->tells = tells;
        program_completed(core, job->profile, bytes);
    }
    fold_all(core, programs_refresh(core, job->user));
}

void prior_take_back(struct prior *prior, int64_t bytes)
{
    uint32_t *parts = &prior->parts[prior_bin(bytes)];

    *parts -= *parts < PRIOR_WORKLOAD_PARTS ? *parts : PRIOR_WORKLOAD_PARTS;
}

void prior_forget(struct user *user)
{
    free(user->own);
    free(user->told);
    user->own = user->told = NULL;
}

/* ---- Requests ---- */

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

bool prior_is_sane(const uint32_t *parts, uint32_t count)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count && i < PRIOR_BINS; i++)
        sum += parts[i];
    return count == PRIOR_BINS && sum > 0 && sum <= 2 * MOST_PARTS;
}
