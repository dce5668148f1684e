#include "slurm/step/step.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "slurm/shared/spool.h"
#include "slurm/step/request.h"

static void read_facts(struct step *step)
{
    int64_t restart = 0, guess = 0;

    /* A step of srun has these variables from the user; the prolog has them from Slurm, and has written them down. */
    spool_get_text(step->spool, step->job, "cluster", step->cluster, sizeof step->cluster);
    spool_get_text(step->spool, step->job, "node", step->node, sizeof step->node);
    /* Slurm tells its batch steps 0 always: the prolog has written it down. */
    if (spool_get(step->spool, step->job, "restart", &restart))
        step->restart = (uint32_t)restart;
    step->known = spool_get(step->spool, step->job, "gpus", &step->counts.gpus);
    spool_get(step->spool, step->job, "gpumem", &step->counts.memory_bytes);
    step->counts.guess = spool_get(step->spool, step->job, "guess", &guess) && guess != 0;
}

void step_read(struct step *step)
{
    char host[64] = "localhost";

    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    *step = (struct step){
        .socket = request_text("socket", ""),
        .spool = request_text("spool", ""),
        .name = request_text("step", ""),
        .job = (uint32_t)request_number("job", 0),
    };
    step->batch = strcmp(step->name, "batch") == 0;
    snprintf(step->cluster, sizeof step->cluster, "%s", request_text("SLURM_CLUSTER_NAME", "slurm"));
    snprintf(step->node, sizeof step->node, "%s", request_text("SLURMD_NODENAME", host));
    read_facts(step);
}

bool step_is_numbered(const struct step *step)
{
    return isdigit((unsigned char)step->name[0]);
}

int64_t step_memory_bytes(const struct step *step)
{
    return step->counts.gpus > 0 ? step->counts.memory_bytes / step->counts.gpus : 0;
}

bool step_node_is_ours(const struct step *step)
{
    return access(step->spool, F_OK) == 0;
}

void step_ask_slurm(const struct step *step)
{
    answer("count %s", step->node);
    answer_send();
    request_read();
}

/* "gpus" comes last, and says that the others are there. */
void step_write_down(struct step *step)
{
    int64_t gpus = request_number("gpus", 0), code = request_number("code", 0);

    if (code != 0) {
        answer("error slurmctld does not tell what it counts for job %u (%s)", step->job, strerror((int)-code));
        return;
    }
    if (gpus > 0) {
        spool_put(step->spool, step->job, "gpumem", request_number("gpumem", 0));
        spool_put(step->spool, step->job, "guess", request_number("guess", 0));
        spool_put(step->spool, step->job, "restart", request_number("restart", 0));
    }
    spool_put(step->spool, step->job, "gpus", gpus);
    read_facts(step);
}

void step_forget(const struct step *step)
{
    static const char *const facts[] = {"gpus", "gpumem", "guess", "restart", "cluster", "node", "status"};

    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        spool_forget(step->spool, step->job, facts[i]);
}
