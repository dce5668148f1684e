/* How this file works: workloads of one program share a history, in which completed ones are counted by bins.
 * set_likely makes its figure anew when one completes or is forgotten, or the distribution changes (programs_refresh,
 * of prior.c). A changed figure is noted (core.guesses_changed) for the jobs that wait. */
#include "core/guess/program_history.h"

#include <string.h>

#include "base/memory.h"
#include "core/state.h"

#define OCTAVE         8 /* bins */
#define PROGRAM_ENOUGH 3

struct program_history *program_of_new(struct user *user, const char *workload)
{
    const char *end = strchr(workload, ':');
    size_t length = end ? (size_t)(end - workload) : 0;
    struct program_history *program;

    if (length == 0)
        return NULL;
    HASH_FIND(hh, user->programs, workload, length, program);
    if (!program) {
        program = xcalloc(1, sizeof *program + length + 1);
        memcpy(program->name, workload, length);
        program->user = user;
        HASH_ADD_KEYPTR(hh, user->programs, program->name, length, program);
    }
    program->profiles++;
    return program;
}

static bool agree(const struct program_history *program)
{
    uint32_t first = 0, last = PRIOR_BINS - 1;

    while (first < last && !program->counts[first])
        first++;
    while (last > first && !program->counts[last])
        last--;
    return program->completed >= PROGRAM_ENOUGH && last - first <= 1;
}

static bool set_likely(const struct core *core, struct program_history *program)
{
    const uint32_t *parts = prior_of(core, program->user)->parts;
    uint32_t count = prior_bins(core->largest_gpu_bytes);
    int64_t weights[PRIOR_BINS] = {0}, sum = 0, likely = 0;

    for (uint32_t bin = 0; bin < count; bin++)
        sum += parts[bin];
    for (uint32_t bin = 0; bin < count; bin++) {
        uint32_t twice = bin + OCTAVE < count ? bin + OCTAVE : count - 1;
        weights[bin] += 2 * (int64_t)parts[bin] + sum * program->counts[bin];
        weights[twice] += sum * program->counts[bin];
    }
    if (agree(program))
        likely = prior_weighted_quantile(weights, core->config.prior_quantile_permille, core->largest_gpu_bytes);
    if (likely == program->likely_bytes)
        return false;
    program->likely_bytes = likely;
    return true;
}

static void refresh(struct core *core, struct program_history *program)
{
    if (!set_likely(core, program))
        return;
    core->openings++;
    core->guesses_changed = true;
}

bool programs_refresh(const struct core *core, struct user *user)
{
    bool changed = false;

    for (struct program_history *program = user->programs; program; program = program->hh.next)
        if (program->completed)
            changed |= set_likely(core, program);
    return changed;
}

void program_completed(struct core *core, const struct profile *profile, int64_t bytes)
{
    struct program_history *program = profile->program;

    if (!program)
        return;
    program->completed++;
    program->counts[prior_bin(bytes)]++;
    refresh(core, program);
}

void program_forget_profile(struct core *core, const struct profile *profile)
{
    struct program_history *program = profile->program;

    if (!program)
        return;
    if (--program->profiles == 0) {
        HASH_DEL(program->user->programs, program);
        free(program);
    } else if (profile->runs) {
        program->completed--;
        program->counts[prior_bin(profile->first_bytes)]--;
        refresh(core, program);
    }
}

int64_t program_likely_bytes(const struct job *job)
{
    const struct program_history *program = job->profile ? job->profile->program : NULL;

    return program && program->likely_bytes ? program->likely_bytes : job->user->likely_bytes;
}

int64_t program_careful_bytes(const struct job *job)
{
    int64_t likely = program_likely_bytes(job);

    return job->user->careful_bytes > likely ? job->user->careful_bytes : likely;
}

void programs_free(struct user *user)
{
    struct program_history *program, *next;

    HASH_ITER (hh, user->programs, program, next) {
        HASH_DEL(user->programs, program);
        free(program);
    }
}
