/* The words of MPS servers' logs (gpu/mps/server_log.h) on the processes of jobs. Read where one user alone writes the
 * log: in his domain on all GPUs. A process is known to be a job's since its memory was read, or it is looked for when
 * it is named. */
#include "base/nodetime.h"
#include "daemon/run/mps_jobs_internal.h"

#define SHORTLY_WALL_NS (10 * NS_PER_SEC) /* before the end: a program that ran out takes a while to come to it */
#define LOOKED_FOR_MOST 16                /* at a time: anything may stand in the log */

void mps_jobs_note_process(struct mps_jobs *mps_jobs, uint64_t job, pid_t pid)
{
    struct mps_client *mps_client = mps_client_of(mps_jobs, job);

    if (mps_client)
        mps_client->processes[mps_client->process_count++ % MPS_PROCESSES] = pid;
}

static bool has_process(const struct mps_client *mps_client, pid_t pid)
{
    for (uint32_t i = 0; i < mps_client->process_count && i < MPS_PROCESSES; i++)
        if (mps_client->processes[i] == pid)
            return true;
    return false;
}

static bool is_known(const struct mps_jobs *mps_jobs, pid_t pid)
{
    for (const struct mps_client *mps_client = mps_jobs->mps_clients; mps_client; mps_client = mps_client->next)
        if (has_process(mps_client, pid))
            return true;
    return false;
}

void mps_jobs_read_words(struct domain *domain)
{
    struct mps_jobs *mps_jobs = domain->mps_jobs;
    uint32_t count;

    if (!domain->wide || domain->uid == EVERYBODY)
        return;
    count = mps_log_look(&domain->log, mps_domain_log_directory(domain->mps), nodetime_monotonic_wall_ns());
    for (uint32_t i = 0; i < count && i < LOOKED_FOR_MOST; i++) {
        pid_t client = domain->log.words[(domain->log.count - 1 - i) % MPS_LOG_WORDS].client;
        uint64_t job = is_known(mps_jobs, client) ? 0 : mps_jobs->job_of(mps_jobs->daemon, client);
        if (job)
            mps_jobs_note_process(mps_jobs, job, client);
    }
}

void mps_jobs_words_of(const struct mps_jobs *mps_jobs, uint64_t job, int64_t ended_ns, struct mps_words *words)
{
    const struct mps_client *mps_client = mps_client_of(mps_jobs, job);
    struct domain *domain = mps_client ? mps_client->domain : NULL;
    double ago_wall_ns = (double)(nodetime_now_ns() - ended_ns) / nodetime_scale();
    int64_t since_ns = nodetime_monotonic_wall_ns() - SHORTLY_WALL_NS - (int64_t)ago_wall_ns;

    *words = (struct mps_words){0};
    if (!domain)
        return;
    mps_jobs_read_words(domain);
    for (uint32_t i = 0; i < domain->log.count && i < MPS_LOG_WORDS; i++) {
        const struct mps_log_word *word = &domain->log.words[i];
        bool its = has_process(mps_client, word->client);
        if (word->at_ns < since_ns)
            continue;
        words->refused |= its && word->says == MPS_LOG_REFUSED;
        words->faulted |= its && word->says == MPS_LOG_FATAL;
        words->other_faulted |= !its && word->says == MPS_LOG_FATAL;
    }
}
