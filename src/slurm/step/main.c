/* carma-slurm-step: what Slurm's plugin does for a step, in a process of its own. Started by the plugin for one
 * conversation (slurm/plugin/helper.h), each about one of the times when Slurm calls it:
 *
 *     prolog    before a job's first step here: what Slurm has counted for it is asked and written down
 *     start     a task begins: it joins its job's lease, which is asked for before the task is there
 *     exit      a task has ended: of a batch script that is the job's end
 *     epilog    the last word on a job, also after a slurmstepd that was killed
 *
 * All of it may be done twice: the plugin begins anew where this process was killed. It is root's, and neither the
 * user's environment nor his limits are here. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slurm/plugin/helper.h"
#include "slurm/shared/spool.h"
#include "slurm/step/ending.h"
#include "slurm/step/grant.h"
#include "slurm/step/others.h"
#include "slurm/step/request.h"

static bool asked(void)
{
    return request_number("asked", 0) != 0;
}

static int prolog(struct step *step)
{
    const char *cluster = request_text("SLURM_CLUSTER_NAME", NULL);

    step_forget(step);
    step_read(step);
    if (cluster)
        spool_put_text(step->spool, step->job, "cluster", step->cluster);
    spool_put_text(step->spool, step->job, "node", step->node);
    step_ask_slurm(step);
    step_write_down(step);
    return 0;
}

static void know_counts(struct step *step)
{
    if (step->known)
        return;
    step_ask_slurm(step);
    step_write_down(step);
}

/* Now and then slurmd runs no prolog for a job that starts again on a node that it had. The epilog has removed what
 * the first one wrote. */
static void make_up_for_prolog(struct step *step)
{
    char node[64];

    know_counts(step); /* or slurmctld has not answered the prolog */
    /* A batch step's environment is Slurm's, another's the user's word. */
    if (!step->batch || spool_get_text(step->spool, step->job, "node", node, sizeof node))
        return;
    spool_put_text(step->spool, step->job, "cluster", step->cluster);
    spool_put_text(step->spool, step->job, "node", step->node);
}

/* Its options are the user's word, and the job's lease is what all of its steps share. */
static void warn_of_more(const struct step *step)
{
    const int64_t each = step_memory_bytes(step);

    if (!step->batch &&
        (request_number("asked_gpus", 0) > step->counts.gpus || request_number("asked_memory", 0) > each))
        answer("error job %u has %lld MiB of GPU memory on %lld of this node's GPUs, and its steps get no more: ask "
               "for more by the options of sbatch or salloc",
               step->job, (long long)(each >> 20), (long long)step->counts.gpus);
}

/* Slurm counts no GPU for the job. The steps of one component of a heterogeneous job inherit the options of the others.
 */
static int go_without(const struct step *step)
{
    if (!asked() || request_text("SLURM_HET_SIZE", NULL))
        return 0;
    if (!step->known)
        ending_hand_back(step, -ENODATA, "slurmctld does not tell what it counts for it");
    else
        answer("error Slurm counts no GPU for job %u on %s, so this step cannot have one: give --carma-mem or "
               "--carma-gpus to sbatch or salloc",
               step->job, step->node);
    return 1;
}

/* The plugin says the task when Slurm has made it. */
static int start(struct step *step)
{
    bool ahead = step->counts.gpus > 0, hidden;
    struct grant grant = {0};
    int code;

    if (ahead)
        grant = grant_ask(step);
    request_read();
    make_up_for_prolog(step);
    hidden = step->counts.gpus == 0 && step_node_is_ours(step) && !request_number("others_all", 0);
    if (step->counts.gpus > 0 || asked() || hidden)
        answer("set CUDA_VISIBLE_DEVICES="); /* whatever happens: no GPU that carmad has not given */
    code = hidden && step->known ? others_hide_gpus((pid_t)request_number("pid", 0)) : 0;
    if (code)
        answer("debug job %u could open the device nodes of GPUs: %s", step->job, strerror(-code));
    if (step->counts.gpus == 0)
        return go_without(step);
    warn_of_more(step);
    if (!ahead)
        grant = grant_ask(step);
    code = grant.code ? grant.code : grant_join(step, &grant);
    if (code)
        ending_hand_back(step, code, grant.why.text);
    json_decref(grant.lease);
    return code ? 1 : 0;
}

static int end_of_task(struct step *step)
{
    char *output = NULL;
    int64_t before = 0;
    int status;
    bool stopped;

    request_read();
    status = (int)request_number("status", 0);
    know_counts(step); /* an epilog that came late has removed what the prolog wrote */
    if (step->counts.gpus == 0)
        return 0;
    if (!step->batch) {
        /* The lease is the allocation's, which may have more steps. Where there is no batch script, the epilog tells
         * carmad the first failure. */
        if (!spool_get(step->spool, step->job, "status", &before) || before == 0)
            spool_put(step->spool, step->job, "status", status);
        return 0;
    }
    /* A script whose steps were ended may end by itself, whatever its status: by scancel or the job's time limit. */
    if (!request_text("code", NULL))
        step_ask_slurm(step);
    stopped = request_number("code", -1) == 0 && !request_number("running", 0);
    if (status != 0 && !stopped)
        output = ending_output(step);
    ending_of_lease(step, status, stopped, true, output);
    free(output);
    return 0;
}

static int epilog(struct step *step)
{
    int64_t status = 0;
    bool told = spool_get(step->spool, step->job, "status", &status);
    bool left = !spool_await(step->spool, step->job, step->restart, "end", 0); /* to the agent, with its output */

    /* Where slurmd was killed, the epilog of an earlier start may come when the job has begun again. */
    if ((step->known && step->counts.gpus == 0) || left ||
        ending_of_lease(step, told ? (int)status : SIGTERM, !told, false, NULL))
        step_forget(step);
    return 0;
}

static const struct {
    const char *verb;
    int (*serve)(struct step *step);
} verbs[] = {{"prolog", prolog}, {"start", start}, {"exit", end_of_task}, {"epilog", epilog}};

/* Slurm ends a job whose task waits to begin. The plugin must not ask by another helper: that one might get a lease,
 * and the job might be in the queue again already. It would run twice. */
static void end_with_the_job(int signal)
{
    static const char answer[] = "end 1\n";
    ssize_t ignored = write(STDOUT_FILENO, answer, sizeof answer - 1);

    (void)signal;
    (void)ignored;
    _exit(EXIT_FAILURE);
}

/* Slurm signals all processes of a job, and its user may by `scancel --full`: no other signal is for the helper. The
 * plugin has blocked them from its first instruction on. */
static void mind_signals(bool starts)
{
    sigset_t others;

    sigfillset(&others);
    if (starts) {
        signal(SIGTERM, end_with_the_job);
        sigdelset(&others, SIGTERM);
    }
    sigprocmask(SIG_SETMASK, &others, NULL);
}

int main(int argc, char **argv)
{
    struct step step;

    if (argc != 3 || strcmp(argv[1], HELPER_VERSION) != 0) {
        printf(HELPER_NAME " " HELPER_VERSION "\nis started by Slurm's plugin of its own version: docs/slurm.md\n");
        return EXIT_FAILURE;
    }
    if (getuid() != 0) { /* also where somebody has made it setuid */
        fputs(HELPER_NAME ": only root may start it, as Slurm's plugin does\n", stderr);
        return EXIT_FAILURE;
    }
    umask(077);
    answer(HELPER_NAME " " HELPER_VERSION);
    answer_send();
    mind_signals(strcmp(argv[2], "start") == 0);
    request_read();
    step_read(&step);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(argv[2], verbs[i].verb) == 0)
            answer("end %d", verbs[i].serve(&step));
    answer_send();
    return 0;
}
