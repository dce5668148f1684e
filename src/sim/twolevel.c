/* Slurm above one core for each node. Slurm counts GRES, chooses the node and starts a job there. The node's core
 * places it at once or refuses it (gate = memory: SM activity and slowdown only rank the GPUs that have the memory). */
#include "base/memory.h"
#include "base/units.h"
#include "core/crash.h"
#include "core/learn.h"
#include "core/ledger.h"
#include "sim/sim_internal.h"
#include "sim/slurm.h"

#define REQUEUE_NS (3 * NS_PER_SEC) /* after an out-of-memory failure */

/* gpusm of each GPU: more than its SMs, as jobs that are busy half of the time slow one another little. Chosen for
 * about 0.1 refusals a job, with 5,000 other jobs on 100 GPUs at 1.2 and 2 times their load. Mean JCT in hours,
 * refusals a job: 1000 1.21, 0.01 and 6.50, 0.01; 1250 0.92, 0.10 and 5.04, 0.13; 1500 1.06, 0.37 and 4.42, 0.78;
 * 2000 1.27, 1.55 and 3.79, 8.27. */
#define GPUSM_PERMILLE 1250

/* Users ask for more time than they need, and sharing makes jobs slower. */
#define LIMIT_FACTOR 3

/* Memory of a GPU that requests can have. */
static int64_t whole_gpu(const struct sim *sim)
{
    return sim->gpu_bytes - sim->options->core.margin_bytes;
}

void twolevel_configure(struct core_config *config)
{
    config->gate = GATE_MEMORY;
    config->decide_period_ns = config->collocate_extra_ns = 0;
    config->paced = false;
}

void twolevel_init(struct sim *sim)
{
    int64_t gpus = sim->core_gpus;
    const int64_t counts[SLURM_GRES_COUNT] = {
        [SLURM_GPUMEM] = gpus * whole_gpu(sim), [SLURM_GPUBIG] = gpus, [SLURM_GPUSM] = gpus * GPUSM_PERMILLE};

    sim->requests = xcalloc(sim->count, sizeof *sim->requests);
    sim->slurm = slurm_new(sim->core_count, counts, sim->count);
}

/* ---- What a job asks of Slurm ---- */

/* A job without a request, or that ran out of memory twice, has its GPUs alone, since nobody can count it. */
static bool is_alone(const struct sim *sim, size_t job)
{
    return sim->jobs[job].exclusive || sim->rows[job].crashes > 1 || sim->requests[job] < 0;
}

static struct slurm_ask ask_of(const struct sim *sim, size_t job)
{
    const struct sim_job *wanted = &sim->jobs[job];
    int64_t whole = whole_gpu(sim), each = sim->requests[job],
            activity = wanted->expected_permille > 0 ? wanted->expected_permille : LEARN_PRIOR_PERMILLE;
    struct slurm_ask ask = {.limit_ns = LIMIT_FACTOR * (sim->options->load_ns + wanted->work_ns)};

    if (is_alone(sim, job) || each > whole)
        each = whole;
    ask.counts[SLURM_GPUMEM] = each * wanted->gpus;
    if (sim->options->scheme >= SIM_SLURM_GPUBIG && each > whole / 2)
        ask.counts[SLURM_GPUBIG] = wanted->gpus;
    if (sim->options->scheme >= SIM_SLURM_GPUSM)
        ask.counts[SLURM_GPUSM] = (is_alone(sim, job) ? 1000 : activity) * wanted->gpus;
    return ask;
}

static void queue(struct sim *sim, size_t job, int64_t begin_ns)
{
    struct slurm_ask ask = ask_of(sim, job);

    if (!slurm_submit(sim->slurm, job, &ask, begin_ns, sim->now_ns))
        sim_job_ended(sim, job, JOB_REFUSED);
}

void twolevel_arrived(struct sim *sim, size_t job)
{
    sim->requests[job] = sim->jobs[job].request_bytes;
    queue(sim, job, sim->now_ns);
}

/* ---- On its node ---- */

void twolevel_ended(struct sim *sim, size_t job)
{
    slurm_ended(sim->slurm, job);
}

/* The node's core says the job's least need; the rest is Slurm's. */
void twolevel_crashed(struct sim *sim, size_t job, uint32_t core)
{
    const struct job *crashed = core_find_job(sim->cores[core], job + 1);
    struct record verdict;

    if (!crashed)
        return; /* the core did not take the record: sim->trouble */
    crash_judge(sim->cores[core], crashed, sim->now_ns, &verdict);
    sim_tell(sim, core, &(struct record){.type = RECORD_CANCELLED, .job = job + 1});
    slurm_ended(sim->slurm, job);
    if (verdict.type == RECORD_GAVE_UP || sim->rows[job].crashes > sim_config(sim)->max_retries) {
        sim_job_ended(sim, job, JOB_GPU_OOM);
        return;
    }
    sim->requests[job] = verdict.requeued.reserved_bytes;
    queue(sim, job, sim->now_ns + REQUEUE_NS);
}

static const struct record *decision_for(const struct sim *sim, size_t job)
{
    for (size_t i = 0; i < sim->decisions.count; i++)
        if (sim->decisions.items[i].job == job + 1)
            return &sim->decisions.items[i];
    return NULL;
}

static void refuse(struct sim *sim, size_t job, uint32_t core)
{
    bool idle = core_job_count(sim->cores[core]) == 1;

    sim_tell(sim, core, &(struct record){.type = RECORD_CANCELLED, .job = job + 1});
    sim->rows[job].refusals++;
    sim->refusals++;
    if (idle) { /* nothing that it could wait for */
        slurm_ended(sim->slurm, job);
        sim_job_ended(sim, job, JOB_REFUSED);
    } else {
        slurm_refused(sim->slurm, job, sim->now_ns);
    }
}

static void start(struct sim *sim, size_t job, uint32_t core)
{
    const struct record *decision;
    struct record record;

    sim_submitted(sim, job, &record);
    record.submitted.request_bytes = sim->requests[job];
    record.submitted.exclusive = is_alone(sim, job);
    sim_tell(sim, core, &record);
    for (uint32_t i = 0; i < sim->core_gpus; i++)
        sim_sample(sim, core * sim->core_gpus + i);
    sim->decisions.count = 0;
    core_decide(sim->cores[core], sim->now_ns, &sim->decisions);
    sim->decision_count += sim->decisions.count;
    decision = decision_for(sim, job);
    if (!decision) {
        refuse(sim, job, core);
        return;
    }
    if (decision->type == RECORD_REFUSED)
        slurm_ended(sim->slurm, job);
    sim_act(sim, core, decision);
}

void twolevel_decide(struct sim *sim)
{
    uint32_t node;
    size_t job;

    sim_sample_due(sim);
    while (sim->trouble_rc == 0 && slurm_start(sim->slurm, sim->now_ns, &job, &node))
        start(sim, job, node);
}
