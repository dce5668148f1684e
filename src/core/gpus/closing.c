/* How this file works: the end of a run that died soon after its start is noted on the GPU that failed (note_dead), one
 * that lasted opens its GPUs. A GPU is closed to users or to everybody as a row of record_closing is full, until a time
 * that decide.c wakes for and closing_try ends. A job's own retry avoids the GPU that failed under it for the same time
 * (avoided_until_ns). qualify.c asks closing_is_closed_to. */
#include "core/gpus/closing.h"

#include <string.h>

#include "base/digest.h"
#include "base/memory.h"
#include "core/gpus/allotment.h"
#include "core/learn/learn.h"
#include "core/share/sharing.h"
#include "core/state.h"

const struct record_failure *closing_failure_of(const struct job *job)
{
    return job->profile ? &job->profile->failure : &job->run->failure;
}

void closing_set_failure(struct job *job, uint32_t gpu, int64_t at_ns)
{
    struct record_failure *failure = job->profile ? &job->profile->failure : &job_run(job)->failure;

    *failure = (struct record_failure){.gpu = gpu, .at_ns = at_ns};
}

uint32_t closing_failed_gpu(const struct job *job)
{
    return job->run->crash_cause == EXIT_GPU_ERROR ? closing_failure_of(job)->gpu : RECORD_NO_GPU;
}

uint32_t closing_workloads_gpu(const struct job *job)
{
    return closing_failure_of(job)->gpu;
}

/* Half a digest tells three workloads apart well enough. A job without a workload is like no other. */
static uint32_t workload_of(const struct job *job)
{
    uint32_t half = (uint32_t)(job->profile ? digest_of_text(job->profile->workload) : job->id);

    return half ? half : 1;
}

static uint32_t user_count(const struct record_closing *closing)
{
    return closing->count / CLOSING_NUMBERS;
}

static int64_t last_ns(const struct closing_user *user)
{
    return user->last_s * NS_PER_SEC;
}

static bool is_full(const struct closing_user *user)
{
    return user->workloads[CLOSING_STARTS - 1];
}

/* The last user came with one workload, where it is not closed to these users alone. */
static bool is_for_nobody(const struct gpu *gpu)
{
    return user_count(&gpu->closing) == CLOSING_USERS && !is_full(&gpu->closing.users[CLOSING_USERS - 1]);
}

int64_t closing_until_ns(const struct gpu *gpu, uint32_t uid)
{
    const struct closing_user *users = gpu->closing.users;
    uint32_t count = user_count(&gpu->closing);
    int64_t until_ns = 0;

    for (uint32_t i = 0; i < count; i++)
        if ((is_for_nobody(gpu) || (users[i].uid == uid && is_full(&users[i]))) &&
            last_ns(&users[i]) + CLOSING_NS > until_ns)
            until_ns = last_ns(&users[i]) + CLOSING_NS;
    return until_ns;
}

int64_t closing_next_ns(const struct gpu *gpu)
{
    int64_t next_ns = 0;

    for (uint32_t i = 0; i < user_count(&gpu->closing); i++) {
        int64_t until_ns = closing_until_ns(gpu, gpu->closing.users[i].uid);
        if (until_ns && (!next_ns || until_ns < next_ns))
            next_ns = until_ns;
    }
    return next_ns;
}

static bool has_lasted(const struct job *job, uint32_t gpu, int64_t now_ns)
{
    return now_ns - job->placed_ns > CLOSING_START_NS && job_placement_on(job, gpu)->observed_bytes > 0;
}

static bool is_cancelled(const struct gpu *gpu, const struct closing_user *user, int64_t now_ns)
{
    bool cancelled = now_ns - last_ns(user) > 2 * CLOSING_NS;

    for (uint32_t i = 0; i < gpu->resident_count; i++)
        cancelled |= gpu->residents[i]->placed_ns > last_ns(user) && has_lasted(gpu->residents[i], gpu->number, now_ns);
    return cancelled;
}

/* More than half of the GPUs are closed to everybody, with this one, which is. */
static bool is_last_half(const struct core *core, const struct gpu *gpu)
{
    uint32_t usable = !gpu_is_open(gpu), closed = usable;

    for (uint32_t i = 0; i < core->gpu_count; i++) {
        usable += gpu_is_open(core->gpus[i]);
        closed += gpu_is_open(core->gpus[i]) && is_for_nobody(core->gpus[i]);
    }
    return closed > usable / 2;
}

/* Those to whom it is closed already stay so for no longer. */
static void close_to_these(struct closing_user *users, uint32_t now_s)
{
    for (uint32_t i = 0; i < CLOSING_USERS; i++) {
        if (is_full(&users[i]))
            continue;
        users[i].last_s = now_s;
        for (uint32_t k = 1; k < CLOSING_STARTS; k++)
            if (!users[i].workloads[k])
                users[i].workloads[k] = users[i].workloads[k - 1];
    }
}

static void drop_user(struct gpu *gpu, uint32_t i)
{
    struct closing_user *users = gpu->closing.users;

    memmove(&users[i], &users[i + 1], (user_count(&gpu->closing) - i - 1) * sizeof *users);
    gpu->closing.count -= CLOSING_NUMBERS;
}

static uint32_t longest_ago(const struct closing_user *users)
{
    uint32_t oldest = 0;

    for (uint32_t i = 1; i < CLOSING_USERS; i++)
        if (users[i].last_s < users[oldest].last_s)
            oldest = i;
    return oldest;
}

static void note_dead(struct core *core, const struct job *job, const struct record *ended)
{
    struct gpu *gpu = core->gpus[ended->exited.failed_gpu];
    struct closing_user *users = gpu->closing.users;
    uint32_t workload = workload_of(job), before = closing_workloads_gpu(job), kept = 0, i = 0, k = 0;

    if (closing_until_ns(gpu, job->wants->uid) || (before != RECORD_NO_GPU && before != gpu->number))
        return;
    for (i = 0; i < user_count(&gpu->closing); i++)
        if (!is_cancelled(gpu, &users[i], ended->at_ns))
            users[kept++] = users[i];
    if (kept < i)
        gpu_opens(core, gpu);
    gpu->closing.count = kept * CLOSING_NUMBERS;
    for (i = 0; i < kept && users[i].uid != job->wants->uid; i++)
        ;
    if (i == CLOSING_USERS) { /* it is closed to three others */
        drop_user(gpu, longest_ago(users));
        gpu_opens(core, gpu);
        i = --kept;
    }
    if (i == kept) {
        users[i] = (struct closing_user){.uid = job->wants->uid};
        gpu->closing.count += CLOSING_NUMBERS;
    }
    users[i].last_s = (uint32_t)(ended->at_ns / NS_PER_SEC);
    while (users[i].workloads[k] && users[i].workloads[k] != workload)
        k++; /* the last place is free: it is open to him */
    users[i].workloads[k] = workload;
    if (is_for_nobody(gpu) && is_last_half(core, gpu))
        close_to_these(users, users[i].last_s);
}

void closing_note_end(struct core *core, const struct job *job, const struct record *ended)
{
    if (ended->exited.cause == EXIT_GPU_ERROR) {
        if (ended->at_ns - job->placed_ns <= CLOSING_START_NS && ended->exited.failed_gpu != RECORD_NO_GPU)
            note_dead(core, job, ended);
        return;
    }
    for (uint32_t i = 0; i < job->placement_count; i++)
        if (has_lasted(job, job->placements[i].gpu, ended->at_ns))
            closing_open(core, core->gpus[job->placements[i].gpu]);
}

void closing_open(struct core *core, struct gpu *gpu)
{
    if (closing_next_ns(gpu))
        gpu_opens(core, gpu);
    gpu->closing = (struct record_closing){0};
}

void closing_try(struct core *core, struct gpu *gpu, int64_t now_ns)
{
    if (closing_until_ns(gpu, CLOSING_EVERYBODY)) {
        if (closing_next_ns(gpu) <= now_ns)
            closing_open(core, gpu);
        return;
    }
    for (uint32_t i = user_count(&gpu->closing); i-- > 0;) {
        struct closing_user *user = &gpu->closing.users[i];
        int64_t until_ns = closing_until_ns(gpu, user->uid);
        if (!until_ns || until_ns > now_ns)
            continue;
        if (user_count(&gpu->closing) == CLOSING_USERS) { /* it was not his workloads alone that closed it */
            drop_user(gpu, i);
        } else {
            memmove(user->workloads, user->workloads + 1, sizeof user->workloads - sizeof user->workloads[0]);
            user->workloads[CLOSING_STARTS - 1] = 0;
        }
        gpu_opens(core, gpu);
    }
}

bool closing_is_suspect(const struct gpu *gpu, const struct job *job)
{
    uint32_t others = 0;

    for (uint32_t i = 0; i < user_count(&gpu->closing); i++) {
        const struct closing_user *user = &gpu->closing.users[i];
        others += user->uid != job->wants->uid;
        for (uint32_t k = 0; k < CLOSING_STARTS && user->uid == job->wants->uid; k++)
            others += user->workloads[k] && user->workloads[k] != workload_of(job);
    }
    return others >= CLOSING_STARTS - 1;
}

int64_t closing_avoids_until_ns(const struct core *core, const struct job *job)
{
    return closing_failed_gpu(job) < core->gpu_count ? job->run->crashed_ns + CLOSING_NS : 0;
}

void closing_look_at_avoided(const struct core *core, uint32_t number, int64_t at_ns)
{
    struct gpu *gpu = number < core->gpu_count ? core->gpus[number] : NULL;

    if (gpu && (!gpu->avoided_until_ns || at_ns < gpu->avoided_until_ns))
        gpu->avoided_until_ns = at_ns;
}

void closing_note_avoided(struct core *core, const struct job *job)
{
    closing_look_at_avoided(core, closing_failed_gpu(job), closing_avoids_until_ns(core, job));
}

/* Seldom: all that wait are looked at for the next. */
static void note_next_avoided(struct core *core, int64_t now_ns)
{
    for (const struct job *job = core->waiting.head; job; job = job->next)
        if (closing_avoids_until_ns(core, job) > now_ns)
            closing_note_avoided(core, job);
}

void closing_end_avoided(struct core *core, int64_t now_ns)
{
    bool ended = false;

    core->decided_ns = now_ns;
    for (uint32_t i = 0; i < core->gpu_count; i++) {
        struct gpu *gpu = core->gpus[i];
        if (!gpu->avoided_until_ns || gpu->avoided_until_ns > now_ns)
            continue;
        gpu->avoided_until_ns = 0;
        gpu_opens(core, gpu);
        ended = true;
    }
    if (ended)
        note_next_avoided(core, now_ns);
}

bool closing_is_closed_to(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    uint32_t others = 0, uid = job->wants->uid;

    if (closing_until_ns(gpu, uid))
        return true;
    if (closing_failed_gpu(job) != gpu->number || core->decided_ns >= closing_avoids_until_ns(core, job))
        return false;
    for (uint32_t i = 0; i < core->gpu_count; i++)
        others += i != gpu->number && !closing_until_ns(core->gpus[i], uid) && gpu_could_take(job, core->gpus[i]) &&
                  !allotment_against(core, job, core->gpus[i]);
    return others >= job->wants->gpus;
}
