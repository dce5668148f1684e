/* How this file works: workloads of one program share a kin, in which completed ones are counted by bins. set_likely
 * makes its figure anew when one completes or is forgotten, or the distribution changes (kins_refresh, of prior.c). A
 * changed figure is noted (core.guesses_changed) for the jobs that wait. */
#include "core/guess/kin.h"

#include <string.h>

#include "base/memory.h"
#include "core/state.h"

#define OCTAVE     8 /* bins */
#define KIN_ENOUGH 3

struct kin *kin_of_new(struct user *user, const char *workload)
{
    const char *end = strchr(workload, ':');
    size_t length = end ? (size_t)(end - workload) : 0;
    struct kin *kin;

    if (length == 0)
        return NULL;
    HASH_FIND(hh, user->kins, workload, length, kin);
    if (!kin) {
        kin = xcalloc(1, sizeof *kin + length + 1);
        memcpy(kin->program, workload, length);
        kin->user = user;
        HASH_ADD_KEYPTR(hh, user->kins, kin->program, length, kin);
    }
    kin->profiles++;
    return kin;
}

static bool agree(const struct kin *kin)
{
    uint32_t first = 0, last = PRIOR_BINS - 1;

    while (first < last && !kin->counts[first])
        first++;
    while (last > first && !kin->counts[last])
        last--;
    return kin->completed >= KIN_ENOUGH && last - first <= 1;
}

static bool set_likely(const struct core *core, struct kin *kin)
{
    const uint32_t *parts = prior_of(core, kin->user)->parts;
    uint32_t count = prior_bins(core->largest_gpu_bytes);
    int64_t weights[PRIOR_BINS] = {0}, sum = 0, likely = 0;

    for (uint32_t bin = 0; bin < count; bin++)
        sum += parts[bin];
    for (uint32_t bin = 0; bin < count; bin++) {
        uint32_t twice = bin + OCTAVE < count ? bin + OCTAVE : count - 1;
        weights[bin] += 2 * (int64_t)parts[bin] + sum * kin->counts[bin];
        weights[twice] += sum * kin->counts[bin];
    }
    if (agree(kin))
        likely = prior_weighted_quantile(weights, core->config.prior_quantile_permille, core->largest_gpu_bytes);
    if (likely == kin->likely_bytes)
        return false;
    kin->likely_bytes = likely;
    return true;
}

static void refresh(struct core *core, struct kin *kin)
{
    if (!set_likely(core, kin))
        return;
    core->openings++;
    core->guesses_changed = true;
}

bool kins_refresh(const struct core *core, struct user *user)
{
    bool changed = false;

    for (struct kin *kin = user->kins; kin; kin = kin->hh.next)
        if (kin->completed)
            changed |= set_likely(core, kin);
    return changed;
}

void kin_completed(struct core *core, const struct profile *profile, int64_t bytes)
{
    struct kin *kin = profile->kin;

    if (!kin)
        return;
    kin->completed++;
    kin->counts[prior_bin(bytes)]++;
    refresh(core, kin);
}

void kin_forget_profile(struct core *core, const struct profile *profile)
{
    struct kin *kin = profile->kin;

    if (!kin)
        return;
    if (--kin->profiles == 0) {
        HASH_DEL(kin->user->kins, kin);
        free(kin);
    } else if (profile->runs) {
        kin->completed--;
        kin->counts[prior_bin(profile->first_bytes)]--;
        refresh(core, kin);
    }
}

int64_t kin_likely_bytes(const struct job *job)
{
    const struct kin *kin = job->profile ? job->profile->kin : NULL;

    return kin && kin->likely_bytes ? kin->likely_bytes : job->user->likely_bytes;
}

int64_t kin_careful_bytes(const struct job *job)
{
    int64_t likely = kin_likely_bytes(job);

    return job->user->careful_bytes > likely ? job->user->careful_bytes : likely;
}

void kins_free(struct user *user)
{
    struct kin *kin, *next;

    HASH_ITER (hh, user->kins, kin, next) {
        HASH_DEL(user->kins, kin);
        free(kin);
    }
}
