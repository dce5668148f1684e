#include "slurm/plugin/record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* Slurm's programs have these functions */
#include <slurm/slurm.h>
#pragma GCC visibility pop

#include "slurm/plugin/helper.h"

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
static void tell(uint32_t job, const char *node, int to)
{
    struct answer answer = {.code = -ENOENT};
    job_info_msg_t *jobs = NULL;

    if (slurm_load_job(&jobs, job, SHOW_DETAIL) != SLURM_SUCCESS)
        answer.code = errno == ESLURM_INVALID_JOB_ID ? -ENOENT : -EAGAIN;
    for (uint32_t i = 0; jobs != NULL && i < jobs->record_count && answer.code != 0; i++)
        if (jobs->job_array[i].job_id == job) {
            read_job(&jobs->job_array[i], node, &answer.record);
            answer.code = 0;
        }
    _exit(write(to, &answer, sizeof(answer)) == (ssize_t)sizeof(answer) ? 0 : 1);
}

/* Slurm's library cannot be told to hurry: a child of this process asks, which can be killed. */
int record_ask(uint32_t job, const char *node, int64_t deadline_ms, struct record *record)
{
    struct answer answer = {.code = -EPROTO};
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    pid_t child = fork();
    if (child == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        signal(SIGPIPE, SIG_DFL);
        tell(job, node, ends[1]);
    }
    int code = child < 0 ? -errno : 0;
    close(ends[1]);
    if (code == 0) {
        ssize_t got = helper_read(ends[0], &answer, sizeof(answer), deadline_ms);
        code = got == (ssize_t)sizeof(answer) ? answer.code : got < 0 ? (int)got : -EPROTO;
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    close(ends[0]);
    if (code == 0)
        *record = answer.record;
    return code;
}
