/* How this file works: `sources` has one row for each source of a waiting job's figure, the most trusted first; the
 * first row that knows counts. Decisions go by the questions below it: what must be free for the job beside others, or
 * on an idle GPU (qualify.c, decide.c); what is expected of an autocluster (waiting/autocluster.c). What earlier
 * runs say is counted in learn.c, what other workloads say in guess/. The record of a placement keeps figure and
 * source. After that the job itself tells: while it runs (overuse.c, decide.c: shrink_reservations), and when it ran
 * out (crash.c).
 *
 * To add a source: a member of enum memory_source (record.h), a function that answers -1 where it does not know, and a
 * row where it is trusted. A figure that changes while jobs wait calls autocluster_workload_changed or
 * autocluster_guesses_changed, which wake those that may fit now. */
#include "core/need/need.h"

#include "base/units.h"
#include "core/guess/program_history.h"
#include "core/learn/learn.h"
#include "core/share/sharing.h"
#include "core/state.h"

#define UNKNOWN (-1)

/* ---- A waiting job's memory ---- */

/* More than any GPU has would mean to wait for ever. So the job runs, and its failure shows that it does not fit. */
static int64_t on_any_gpu(const struct core *core, int64_t bytes)
{
    return bytes < core->largest_gpu_bytes ? bytes : core->largest_gpu_bytes;
}

static int64_t within_limits(const struct core *core, const struct job *job, int64_t bytes)
{
    int64_t most = user_most_bytes(core, job->wants);

    return bytes < most ? bytes : most;
}

/* Its history; NULL: none counts. */
static const struct profile *history_of(const struct core *core, const struct job *job)
{
    return core->config.learn ? job->profile : NULL;
}

static bool is_declared(const struct job *job)
{
    return job->wants->request_source == SOURCE_DECLARED;
}

/* A request is taken at its word, unless the last run of the workload by such a request has shown that it was too
 * small. A job's own observed need says more than that. */
static int64_t outgrown_request(const struct core *core, const struct job *job)
{
    const struct profile *history = history_of(core, job);
    int64_t outgrown;

    if (!history || !is_declared(job) || job->reservation_source == SOURCE_OBSERVED ||
        history->outgrown_bytes <= job->reserved_bytes)
        return UNKNOWN;
    outgrown = within_limits(core, job, history->outgrown_bytes);
    return outgrown > job->reserved_bytes ? outgrown : UNKNOWN;
}

static int64_t earlier_runs(const struct core *core, const struct job *job)
{
    const struct profile *history = history_of(core, job);

    if (!history || is_declared(job) || job->crashes > 0 ||
        (!history->runs && (!history->peak_bytes || job->wants->request_bytes >= 0)))
        return UNKNOWN;
    return on_any_gpu(core, learned_bytes(history));
}

static int64_t earlier_estimate(const struct core *core, const struct job *job)
{
    const struct profile *history = history_of(core, job);

    if (!history || is_declared(job) || !history->estimated_bytes || job->crashes > 0 || !job_need_is_unknown(job))
        return UNKNOWN;
    return within_limits(core, job, history->estimated_bytes);
}

static int64_t earlier_peak(const struct core *core, const struct job *job)
{
    const struct profile *history = history_of(core, job);

    if (!history || is_declared(job) || job->reserved_bytes < 0 || history->peak_bytes <= job->reserved_bytes)
        return UNKNOWN;
    return on_any_gpu(core, history->peak_bytes);
}

/* The job's own: its request, its estimate, or what its last run or crash has shown. The guess of an earlier start may
 * have changed since. */
static int64_t own_figure(const struct core *core, const struct job *job)
{
    (void)core;
    return job->reservation_source != SOURCE_PRIOR || job->crashes ? job->reserved_bytes : UNKNOWN;
}

static int64_t guess(const struct core *core, const struct job *job)
{
    return prior_request(core, job->wants, program_likely_bytes(job));
}

#define OWN SOURCE_COUNT /* as the job's figure says */

static const struct {
    uint32_t source;
    int64_t (*bytes)(const struct core *core, const struct job *job);
} sources[] = {
    {SOURCE_LEARNED, outgrown_request}, /* the most trusted first */
    {SOURCE_LEARNED, earlier_runs},
    {SOURCE_ESTIMATED, earlier_estimate},
    {SOURCE_LEARNED, earlier_peak},
    {OWN, own_figure},
    {SOURCE_PRIOR, guess},
};

int64_t need_memory(const struct core *core, const struct job *job, uint32_t *source)
{
    uint32_t ignored;

    source = source ? source : &ignored;
    for (size_t i = 0; i < array_size(sources) && job->wants->gpus; i++) {
        int64_t bytes = sources[i].bytes(core, job);
        if (bytes >= 0) {
            *source = sources[i].source == OWN ? job->reservation_source : sources[i].source;
            return bytes;
        }
    }
    *source = SOURCE_UNKNOWN;
    return UNKNOWN;
}

bool need_is_guessed(const struct core *core, const struct job *job)
{
    uint32_t source;

    need_memory(core, job, &source);
    return source == SOURCE_PRIOR;
}

/* ---- What the GPU must have ---- */

bool job_may_be_fenced(const struct core *core, const struct job *job)
{
    bool by_mps = job->wants->share == SHARE_ANY || job->wants->share == SHARE_MPS;

    return core->config.memory_fence && core->mps_count && by_mps && !job->run->unfenced && job->reserved_bytes >= 0;
}

bool job_wants_idle(const struct core *core, const struct job *job)
{
    /* Under reservations a job without any request can only get a whole GPU. */
    bool unknown = core->config.memory_view == MEMORY_RESERVE && need_memory(core, job, NULL) < 0;
    /* The thesis recovers on idle GPUs; the other ways come to that when another guess was wrong too, and nothing would
     * keep the job to its next one. The same holds for a job that should be retried, but whose user had no budget left
     * to go before others. */
    bool alone =
        (job->retry || job->run->crash_is_oom) && job->oom_crashes &&
        (core->config.oom_retry == OOM_RETRY_EXCLUSIVE || (job->oom_crashes > 1 && !job_may_be_fenced(core, job)));

    return job->wants->exclusive || alone || job->victims || !core->policy->shares || unknown;
}

int64_t job_needed_bytes(const struct core *core, const struct job *job)
{
    int64_t reservation = need_memory(core, job, NULL);

    if (core->policy->waives_load && core->config.memory_view == MEMORY_MONITOR)
        return 0;
    if (reservation < 0) /* thesis 6.2.2: the floor stands in for an estimate */
        return core->config.floor_bytes;
    /* gpu_free_bytes has taken the margin off already under reservations */
    return reservation + (core->config.memory_view == MEMORY_MONITOR ? core->config.margin_bytes : 0);
}

/* Without a fence, only the job itself keeps to its guessed request. */
static bool is_unfenced_guess(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    return need_is_guessed(core, job) &&
           (!core->config.memory_fence || job->run->unfenced || sharing_mode_of(core, job, gpu) != SHARE_MPS);
}

int64_t job_needed_bytes_on(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    return is_unfenced_guess(core, job, gpu) ? program_careful_bytes(job) : job_needed_bytes(core, job);
}

int64_t job_idle_bytes(const struct core *core, const struct job *job, uint32_t *source)
{
    int64_t reservation = need_memory(core, job, source);

    if (*source == SOURCE_PRIOR)
        return 0; /* a guess keeps it from no GPU */
    /* Its margin may say more than the GPU has: the run itself fitted. */
    return *source == SOURCE_LEARNED && job->profile->peak_bytes < reservation ? job->profile->peak_bytes : reservation;
}

/* ---- While it runs ---- */

static int64_t within_gpus(const struct core *core, const struct job *job, int64_t bytes)
{
    for (uint32_t i = 0; i < job->placement_count; i++) {
        int64_t total = core->gpus[job->placements[i].gpu]->total_bytes;
        if (bytes > total)
            bytes = total;
    }
    return bytes;
}

int64_t need_observed(const struct core *core, const struct job *job)
{
    return within_gpus(core, job, job_peak_bytes(job));
}

/* Where no request was given, there is less to go by. */
int64_t need_settled(const struct core *core, const struct job *job)
{
    int64_t peak = job_peak_bytes(job);

    return within_gpus(core, job, job_need_is_unknown(job) ? peak + peak / 4 : peak + peak / 10);
}

int64_t need_estimated(const struct core *core, const struct job *job)
{
    int64_t peak = job_peak_bytes(job), request = job->wants->request_bytes;

    return within_gpus(core, job, request > peak ? request : peak);
}

/* ---- After it ran out ---- */

#define OOM_RETRY_STEP_BYTES (5 * GIB) /* thesis 7.2 */

/* No guess asks for more than a GPU has that is there: a lost one may have been exchanged for a smaller one. */
static int64_t most_there(const struct core *core, const struct job *job)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < core->gpu_count; i++)
        if (!core->gpus[i]->lost && core->gpus[i]->total_bytes > most)
            most = core->gpus[i]->total_bytes;
    return within_limits(core, job, most ? most : core->largest_gpu_bytes);
}

/* At least twice the last one, and for the last try all that there is. Less where that is more than is free anywhere,
 * and the rest is still clearly more than the last one and what the job is known to need. */
static int64_t doubled(const struct core *core, const struct job *job, int64_t free_bytes)
{
    int64_t last = job->reserved_bytes, most = most_there(core, job);

    if (last < 0)
        return -1;
    if (job->crashes >= core->config.max_retries)
        return most;
    if (free_bytes < 2 * last && free_bytes >= last + last / 2 && free_bytes >= job->run->crash_needed_bytes)
        return free_bytes;
    return 2 * last < most ? 2 * last : most;
}

/* The reservation for the next attempt: a crash proves that the last one was too small. */
int64_t need_after_crash(const struct core *core, const struct job *job, int64_t free_bytes)
{
    int64_t reservation = job->reserved_bytes, largest = user_most_bytes(core, job->wants),
            learned = job->run->crash_needed_bytes;

    if (core->config.oom_retry == OOM_RETRY_STEP || (core->config.oom_retry == OOM_RETRY_INFORMED && learned < 0))
        learned = job->run->crash_available_bytes + OOM_RETRY_STEP_BYTES;
    else if (core->config.oom_retry == OOM_RETRY_EXCLUSIVE && reservation < 0)
        return reservation;
    if (core->config.oom_retry == OOM_RETRY_INFORMED && doubled(core, job, free_bytes) > learned)
        learned = doubled(core, job, free_bytes);
    if (learned > largest)
        learned = largest;
    return learned > reservation ? learned : reservation;
}

/* It keeps its request, even where its reservation has shrunk since, and gets the memory that it is now known to
 * need. One that met a guess gets twice as much. */
int64_t need_after_harm(const struct core *core, const struct job *job, int64_t free_bytes)
{
    int64_t reservation = job->reserved_bytes;

    if (reservation >= 0 && job->wants->request_bytes > reservation)
        reservation = job->wants->request_bytes;
    if (job->run->crash_fenced && core->config.oom_retry == OOM_RETRY_INFORMED &&
        doubled(core, job, free_bytes) > reservation)
        reservation = doubled(core, job, free_bytes);
    return reservation >= 0 && job->run->crash_needed_bytes > reservation ? job->run->crash_needed_bytes : reservation;
}
