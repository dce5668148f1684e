#include "slurm/plugin/record.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* Slurm's programs have these functions */
#include <slurm/slurm.h>
#pragma GCC visibility pop

#include "slurm/plugin/run.h"

struct question {
    uint32_t job;
    const char *node;
};

/* As the parent reads it: another process of the same program. */
struct answer {
    int code;
    struct record record;
};

static void read_job(const slurm_job_info_t *job, const char *node, struct record *record)
{
    /* A pointer to it since Slurm 23.11. */
    __typeof__(slurm_hostlist_create("")) nodes = slurm_hostlist_create(job->nodes != NULL ? job->nodes : "");
    int at = nodes != NULL ? slurm_hostlist_find(nodes, node) : -1;

    if (at >= 0 && (uint32_t)at < job->gres_detail_cnt && job->gres_detail_str[at] != NULL)
        record->counts = counts_of_gres(job->gres_detail_str[at]);
    record->restart = job->restart_cnt;
    record->running = (job->job_state & JOB_STATE_BASE) == JOB_RUNNING && !(job->job_state & JOB_COMPLETING);
    if (nodes != NULL)
        slurm_hostlist_destroy(nodes);
}

/* The answer has all tasks of an array and all components of a heterogeneous job: the number is that of one of them. */
static void ask(const void *what, int to)
{
    const struct question *question = what;
    struct answer answer = {.code = -ENOENT};
    job_info_msg_t *jobs = NULL;

    if (slurm_load_job(&jobs, question->job, SHOW_DETAIL) != SLURM_SUCCESS)
        answer.code = errno == ESLURM_INVALID_JOB_ID ? -ENOENT : -EAGAIN;
    for (uint32_t i = 0; jobs != NULL && i < jobs->record_count && answer.code != 0; i++)
        if (jobs->job_array[i].job_id == question->job) {
            read_job(&jobs->job_array[i], question->node, &answer.record);
            answer.code = 0;
        }
    if (write(to, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
        _exit(1);
}

int record_ask(uint32_t job, const char *node, int64_t deadline_ms, struct record *record)
{
    struct question question = {.job = job, .node = node};
    struct text said = {0};
    struct answer answer;
    int code = run_work(ask, &question, deadline_ms, &said);

    if (code == 0 && said.length == sizeof(answer)) {
        memcpy(&answer, said.bytes, sizeof(answer));
        *record = answer.record;
        code = answer.code;
    } else if (code == 0) {
        code = -EPROTO;
    }
    text_release(&said);
    return code;
}
