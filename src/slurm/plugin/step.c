#include "slurm/plugin/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slurm/plugin/http.h"
#include "slurm/plugin/plugin.h"
#include "slurm/plugin/record.h"
#include "slurm/plugin/spool.h"
#include "slurm/plugin/text.h"

enum { QUERY_WAIT_MS = 3000 };

static void read_variable(spank_t spank, const char *name, char *value, size_t size, const char *otherwise)
{
    const char *own = getenv(name); /* slurmstepd's, or that of a prolog or epilog */
    if (spank_getenv(spank, name, value, (int)size) != ESPANK_SUCCESS)
        snprintf(value, size, "%s", own != NULL ? own : otherwise);
}

void step_read_node(spank_t spank, char node[static 64])
{
    char host[64] = "localhost";
    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = '\0';
    read_variable(spank, "SLURMD_NODENAME", node, 64, host);
}

void step_read(spank_t spank, struct step *step)
{
    *step = (struct step){0};
    spank_get_item(spank, S_JOB_ID, &step->job);
    spank_get_item(spank, S_JOB_STEPID, &step->step);
    step_read_node(spank, step->node);
    read_variable(spank, "SLURM_CLUSTER_NAME", step->cluster, sizeof(step->cluster), "slurm");
    read_variable(spank, "SLURM_JOB_NAME", step->name, sizeof(step->name), "slurm");
    read_variable(spank, "SLURM_SUBMIT_DIR", step->directory, sizeof(step->directory), "/");
    text_clean(step->name);
    text_clean(step->directory);
    if (step->name[0] == '\0')
        strcpy(step->name, "slurm");
    if (step->directory[0] != '/')
        strcpy(step->directory, "/");
    /* A step of srun has these variables from the user; the prolog has them from Slurm, and has written them down. */
    spool_get_text(plugin_settings.spool, step->job, "cluster", step->cluster, sizeof(step->cluster));
    spool_get_text(plugin_settings.spool, step->job, "node", step->node, sizeof(step->node));
    int64_t restart = 0; /* Slurm tells its batch steps 0 always: the prolog has written it down */
    if (spool_get(plugin_settings.spool, step->job, "restart", &restart))
        step->restart = (uint32_t)restart;
    int64_t guess = 0;
    step->known = spool_get(plugin_settings.spool, step->job, "gpus", &step->counts.gpus);
    spool_get(plugin_settings.spool, step->job, "gpumem", &step->counts.memory_bytes);
    step->counts.guess = spool_get(plugin_settings.spool, step->job, "guess", &guess) && guess != 0;
}

void step_name(const struct step *step, char text[static 16])
{
    if (step->step == STEP_BATCH)
        strcpy(text, "batch");
    else if (step->step == STEP_EXTERN)
        strcpy(text, "extern");
    else if (step->step == STEP_INTERACTIVE)
        strcpy(text, "interactive");
    else
        snprintf(text, 16, "%u", step->step);
}

bool step_is_numbered(const struct step *step)
{
    return step->step != STEP_BATCH && step->step != STEP_EXTERN && step->step != STEP_INTERACTIVE;
}

void step_forget(uint32_t job)
{
    static const char *const facts[] = {"gpus", "gpumem", "guess", "restart", "cluster", "node", "status"};
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
        spool_forget(plugin_settings.spool, job, facts[i]);
}

bool step_node_is_ours(void)
{
    return access(plugin_settings.spool, F_OK) == 0;
}

/* What Slurm has counted, as facts of the spool; "gpus" comes last, and says that the others are there. */
void step_write_down(uint32_t job, const char *node)
{
    struct record record = {0};
    int code = record_ask(job, node, http_now_ms() + QUERY_WAIT_MS, &record);
    if (code != 0) {
        slurm_error("carma: slurmctld does not tell what it counts for job %u (%s)", job, strerror(-code));
        return;
    }
    if (record.counts.gpus > 0) {
        spool_put(plugin_settings.spool, job, "gpumem", record.counts.memory_bytes);
        spool_put(plugin_settings.spool, job, "guess", record.counts.guess);
        spool_put(plugin_settings.spool, job, "restart", record.restart);
    }
    if (record.counts.gpus > 0 || step_node_is_ours())
        spool_put(plugin_settings.spool, job, "gpus", record.counts.gpus);
}

bool step_is_ended_by_slurm(const struct step *step)
{
    struct record record = {0};
    return record_ask(step->job, step->node, http_now_ms() + QUERY_WAIT_MS, &record) == 0 && !record.running;
}
