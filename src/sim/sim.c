/* The driver: a batch of inputs at one virtual time, one decision, its effects, on to the next time. */
#include "sim/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "core/learn/learn.h"
#include "core/ledger.h"
#include "core/quantum.h"
#include "core/user.h"
#include "sim/random.h"
#include "sim/sim_internal.h"

/* A job's memory grows in steps; a failed allocation asks for the next one (as in carma-train). */
#define CLIMB_STEPS 5

#define CHECKPOINT_NS (30 * NS_PER_SEC) /* from the signal to the job's end */

#define TIME_LIMIT_NS (INT64_C(365) * 24 * 3600 * NS_PER_SEC) /* a signal goes with one; nobody comes to it */

#define JITTER_LEAST 0.1 /* of its work stays, however unlikely the draw (as in carma-train) */

void sim_options_default(struct sim_options *options)
{
    *options = (struct sim_options){
        .share = SHARE_AUTO,
        .contention = contention_default,
        .load_ns = 12 * NS_PER_SEC,
        .climb_ns = 15 * NS_PER_SEC,
        .sample_period_ns = NS_PER_SEC,
    };
    core_config_default(&options->core);
}

/* ---- Records ---- */

static void observe(struct sim *sim, const struct record *record)
{
    if (sim->observer && sim->observer->on_record)
        sim->observer->on_record(sim->observer->user, record);
}

static int feed(struct sim *sim, struct record *record, struct error *err)
{
    int rc;

    record->at_ns = sim->now_ns;
    rc = core_apply(sim->core, record, err);
    if (rc == 0) {
        sim->inputs++;
        observe(sim, record);
    }
    return rc;
}

/* Input from the simulated world about GPUs and their jobs. The core refuses it only where one of the two is wrong, and
 * that ends the simulation. */
static void tell(struct sim *sim, struct record *record)
{
    struct error err;

    if (sim->trouble_rc == 0 && feed(sim, record, &err) != 0)
        sim->trouble_rc = error_set(&sim->trouble, EPROTO, "the simulator and the core disagree: %s", err.text);
}

static void job_ended(struct sim *sim, size_t job, uint32_t state)
{
    sim->rows[job].state = state;
    sim->rows[job].ended_ns = sim->now_ns;
    sim->ended++;
    if (sim->observer && sim->observer->on_ended)
        sim->observer->on_ended(sim->observer->user, sim->ended, sim->count);
}

/* ---- Runs ---- */

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void run_schedule(struct sim *sim, struct sim_run *run)
{
    int64_t loaded_ns = run->launched_ns + sim->options->load_ns, settled_ns = loaded_ns + sim->options->climb_ns;
    double left_ns = (double)sim->rows[run->job].work_ns - run->done_ns;

    if (run->phase == SIM_LOADING) {
        run->event_ns = loaded_ns;
        return;
    }
    left_ns = left_ns > 0 ? ceil(left_ns / run->rate) : 0;
    run->event_ns = left_ns < 4e18 - (double)run->updated_ns ? run->updated_ns + (int64_t)left_ns : INT64_MAX;
    if (run->phase == SIM_CLIMBING)
        run->event_ns = earliest(run->event_ns, settled_ns);
    run->event_ns = earliest(run->event_ns, earliest(run->report_ns, run->leave_ns));
}

void run_set_rate(struct sim *sim, struct sim_run *run, double rate)
{
    run->done_ns += run->rate * (double)(sim->now_ns - run->updated_ns);
    run->updated_ns = sim->now_ns;
    run->rate = rate;
    run_schedule(sim, run);
    heap_moved(&sim->heap, run);
}

/* As the daemon reads them (daemon/run/run_progress.c): a first report of 200 s once those that came or left have
 * loaded, then one in ten minutes. */
#define REPORT_SPAN_NS  (200 * NS_PER_SEC)
#define REPORT_PAUSE_NS (600 * NS_PER_SEC)

static void expect_reports(struct sim *sim, const struct sim_run *changed)
{
    for (uint32_t k = 0; k < changed->gpu_count; k++) {
        const struct sim_gpu *gpu = &sim->gpus[changed->sides[k].gpu];
        for (uint32_t i = 0; i < gpu->resident_count; i++) {
            struct sim_run *run = gpu->residents[i].run;
            run->report_ns = sim->now_ns + LEARN_LOADING_NS + REPORT_SPAN_NS;
            run_schedule(sim, run);
            heap_moved(&sim->heap, run);
        }
    }
}

/* The residents of the run's GPUs have changed: once they have been the same for long enough, the core can learn. */
static void expect_learning(struct sim *sim, const struct sim_run *run)
{
    if (!sim_config(sim)->learn)
        return;
    if (sim->due_first > sim->due_count / 2) {
        memmove(sim->dues, sim->dues + sim->due_first, (sim->due_count - sim->due_first) * sizeof *sim->dues);
        sim->due_count -= sim->due_first;
        sim->due_first = 0;
    }
    array_reserve(sim->dues, sim->due_capacity, sim->due_count + run->gpu_count);
    for (uint32_t k = 0; k < run->gpu_count; k++)
        sim->dues[sim->due_count++] =
            (struct sim_due){.gpu = run->sides[k].gpu, .due_ns = sim->now_ns + core_learning_delay_ns(sim->core)};
}

static void launch(struct sim *sim, const struct record *placed)
{
    size_t job = placed->job - 1;
    uint32_t count = placed->placed.count;
    struct sim_run *run = xcalloc(1, sizeof *run + count * sizeof *run->sides);

    *run = (struct sim_run){.job = job,
                            .launched_ns = sim->now_ns,
                            .updated_ns = sim->now_ns,
                            .share = placed->placed.share,
                            .fence_bytes = placed->placed.fence_bytes,
                            .threads = sim_threads(placed),
                            .done_ns = sim->rows[job].done_ns,
                            .report_ns = INT64_MAX,
                            .leave_ns = INT64_MAX,
                            .gpu_count = count};
    for (uint32_t k = 0; k < count; k++)
        run->sides[k] = (struct sim_side){.gpu = placed->placed.gpus[k], .rate = 1};
    if (sim->rows[job].first_launch_ns < 0)
        sim->rows[job].first_launch_ns = sim->now_ns;
    sim->rows[job].last_launch_ns = sim->now_ns;
    sim->runs[job] = run;
    run_schedule(sim, run);
    heap_add(&sim->heap, run);
    gpus_add(sim, run);
    expect_learning(sim, run);
    expect_reports(sim, run);
    tell(sim, &(struct record){.type = RECORD_STARTED, .job = placed->job});
}

static void leave(struct sim *sim, struct sim_run *run)
{
    heap_remove(&sim->heap, run);
    gpus_remove(sim, run);
    expect_learning(sim, run);
    expect_reports(sim, run);
    sim->runs[run->job] = NULL;
    free(run);
}

static void tell_end(struct sim *sim, size_t job, uint32_t cause)
{
    tell(sim, &(struct record){.type = RECORD_EXITED,
                               .job = job + 1,
                               .exited = {.cause = cause,
                                          .requested_bytes = -1,
                                          .free_bytes = -1,
                                          .used_bytes = -1,
                                          .failed_gpu = RECORD_NO_GPU}});
}

static void complete(struct sim *sim, struct sim_run *run)
{
    size_t job = run->job;

    leave(sim, run);
    tell_end(sim, job, EXIT_COMPLETED);
    job_ended(sim, job, JOB_COMPLETED);
}

/* It goes on from its checkpoint at its next launch. */
static void move_off(struct sim *sim, struct sim_run *run, double done_ns)
{
    struct sim_row *row = &sim->rows[run->job];
    size_t job = run->job;

    row->done_ns = done_ns;
    row->ran_ns += sim->now_ns - run->launched_ns;
    row->moved++;
    leave(sim, run);
    tell_end(sim, job, EXIT_TIMEOUT);
}

static void report(struct sim *sim, struct sim_run *run)
{
    run->report_ns += REPORT_PAUSE_NS;
    run_schedule(sim, run);
    heap_moved(&sim->heap, run);
    tell(sim, &(struct record){
                  .type = RECORD_PROGRESSED,
                  .job = run->job + 1,
                  .progressed = {.micro_steps_per_s = (int64_t)fmax(1, run->rate * 1e6), .span_ns = REPORT_SPAN_NS}});
}

/* As the monitor would tell it: memory that is observed for the first time, or that has grown. */
static void tell_memory(struct sim *sim, const struct sim_run *run, uint32_t side, int64_t *observed_bytes,
                        int64_t bytes)
{
    bytes = quantum_memory(bytes);
    if (bytes <= *observed_bytes)
        return;
    tell(sim, &(struct record){.type = *observed_bytes ? RECORD_OBSERVED : RECORD_FIRST_USE,
                               .job = run->job + 1,
                               .memory = {.gpu = run->sides[side].gpu, .bytes = bytes}});
    *observed_bytes = bytes;
}

/* Memory that the job may allocate on the GPU: the free part within its fence. */
static int64_t room_for(const struct sim *sim, const struct sim_run *run, uint32_t side)
{
    int64_t free_bytes = gpus_free_bytes(sim, run->sides[side].gpu);

    return run->fence_bytes >= 0 && run->fence_bytes < free_bytes ? run->fence_bytes : free_bytes;
}

/* The job does not get the memory that it needs: it held the steps so far, and asked for the next one. */
static void crash(struct sim *sim, struct sim_run *run, uint32_t side)
{
    const struct sim_use *use = sim_use_of(&sim->jobs[run->job], side);
    int64_t free_bytes = room_for(sim, run, side), held = 0, next = use->need_bytes, seen = 0;
    struct record record = {.type = RECORD_EXITED, .job = run->job + 1};

    for (int64_t step = 1; step < CLIMB_STEPS; step++) {
        int64_t level = use->resident_bytes / CLIMB_STEPS * step;
        if (level > free_bytes) {
            next = level;
            break;
        }
        held = level;
    }
    tell_memory(sim, run, side, &seen, held);
    record.exited = (struct record_exited){.cause = EXIT_GPU_OOM,
                                           .status = 1,
                                           .requested_bytes = next - held,
                                           .free_bytes = free_bytes - held,
                                           .used_bytes = -1,
                                           .failed_gpu = RECORD_NO_GPU};
    sim->rows[run->job].crashes++;
    sim->oom++;
    leave(sim, run);
    tell(sim, &record);
}

/* The job's memory is there, or it is not. */
static void climbed(struct sim *sim, struct sim_run *run)
{
    for (uint32_t k = 0; k < run->gpu_count; k++)
        if (sim_use_of(&sim->jobs[run->job], k)->need_bytes > room_for(sim, run, k)) {
            crash(sim, run, k);
            return;
        }
    gpus_hold(sim, run);
    for (uint32_t k = 0; k < run->gpu_count; k++) {
        const struct sim_use *use = sim_use_of(&sim->jobs[run->job], k);
        int64_t seen = 0;
        tell_memory(sim, run, k, &seen, use->resident_bytes);
        tell_memory(sim, run, k, &seen, use->need_bytes);
    }
    run_schedule(sim, run);
    heap_moved(&sim->heap, run);
}

static void pass_event(struct sim *sim, struct sim_run *run)
{
    double done_ns = run->done_ns + run->rate * (double)(sim->now_ns - run->updated_ns);

    if (run->phase == SIM_LOADING)
        gpus_train(sim, run);
    else if (done_ns >= (double)sim->rows[run->job].work_ns - 0.5)
        complete(sim, run);
    else if (run->leave_ns <= sim->now_ns)
        move_off(sim, run, done_ns);
    else if (run->report_ns <= sim->now_ns)
        report(sim, run);
    else
        climbed(sim, run);
}

/* ---- Turns ---- */

/* As the daemon refuses jobs beyond a user's limit. */
static bool is_one_too_many(const struct sim *sim, uint32_t uid)
{
    uint32_t most = sim_config(sim)->per_user.max_queued;

    return most && core_job_count_of(sim->core, uid) >= most;
}

static void submitted(const struct sim *sim, size_t job, struct record *record)
{
    const struct sim_job *wanted = &sim->jobs[job];

    *record =
        (struct record){.type = RECORD_SUBMITTED,
                        .job = job + 1,
                        .submitted = {.gpus = wanted->gpus,
                                      .request_bytes = wanted->request_bytes,
                                      .request_source = wanted->request_source,
                                      .smact_permille = wanted->expected_permille > 0 ? wanted->expected_permille : -1,
                                      .max_slowdown_permille = wanted->max_slowdown_permille,
                                      .uid = wanted->uid,
                                      .share = wanted->share,
                                      .exclusive = wanted->exclusive,
                                      .excluded_gpus = wanted->excluded_gpus}};
    if (sim->options->checkpoints) {
        record->submitted.requeue = true;
        record->submitted.signal = SIGUSR1;
        record->submitted.signal_before_ns = CHECKPOINT_NS;
        record->submitted.time_limit_ns = TIME_LIMIT_NS;
    }
    snprintf(record->submitted.workload, sizeof record->submitted.workload, "%s", wanted->workload);
}

static int give_share(struct sim *sim, const struct sim_job *job, struct error *err)
{
    const struct user *user = user_find(sim->core, job->uid);
    struct record record = {.type = RECORD_SHARE_GIVEN};

    record.share_given =
        (struct record_share_given){.uid = job->uid, .share = job->user_share, .group_share = job->group_share};
    memcpy(record.share_given.group, job->group, sizeof job->group);
    if (!job->user_share ||
        (job->user_share == (user ? user->share : 1) && user_is_in(user, job->group, job->group_share)))
        return 0;
    return feed(sim, &record, err);
}

static int submit(struct sim *sim, size_t job, struct error *err)
{
    struct record record;
    int rc;

    if (is_one_too_many(sim, sim->jobs[job].uid)) {
        job_ended(sim, job, JOB_REFUSED);
        return 0;
    }
    rc = give_share(sim, &sim->jobs[job], err);
    if (rc)
        return rc;
    submitted(sim, job, &record);
    return feed(sim, &record, err);
}

static void sample(struct sim *sim, uint32_t gpu)
{
    struct record record = {.type = RECORD_SAMPLE, .at_ns = sim->now_ns};

    gpus_sample(sim, gpu, &record.sample);
    if (core_sample_is_due(sim->core, &record))
        tell(sim, &record);
}

/* Whether decisions wait for a change that the monitor sees. */
static bool watches_load(const struct sim *sim)
{
    return core_waiting_count(sim->core) && core_watches_load(sim->core);
}

static void sample_due(struct sim *sim)
{
    for (; sim->due_first < sim->due_count && sim->dues[sim->due_first].due_ns <= sim->now_ns; sim->due_first++)
        sample(sim, sim->dues[sim->due_first].gpu);
}

static void feed_samples(struct sim *sim)
{
    uint32_t kept = 0;

    sample_due(sim);
    if (!watches_load(sim) && sim->fed_once)
        return;
    sim->fed_once = true; /* a GPU that was never measured is given to nobody */
    for (uint32_t i = 0; i < sim->unsettled_count; i++) {
        uint32_t gpu = sim->unsettled[i];
        sample(sim, gpu);
        if (window_settled(sim, &sim->gpus[gpu]))
            sim->gpus[gpu].unsettled = false;
        else
            sim->unsettled[kept++] = gpu;
    }
    sim->unsettled_count = kept;
}

static void act(struct sim *sim, const struct record *decision)
{
    if (decision->type == RECORD_PLACED) {
        if (decision->placed.slowdown_permille > sim->predicted_permille)
            sim->predicted_permille = decision->placed.slowdown_permille;
        launch(sim, decision);
    } else if (decision->type == RECORD_MOVED) {
        struct sim_run *run = sim->runs[decision->job - 1];
        run->leave_ns = sim->now_ns + CHECKPOINT_NS;
        run_schedule(sim, run);
        heap_moved(&sim->heap, run);
    } else if (decision->type == RECORD_GAVE_UP) {
        job_ended(sim, decision->job - 1, JOB_GPU_OOM);
    } else if (decision->type == RECORD_REFUSED) {
        job_ended(sim, decision->job - 1, JOB_REFUSED);
    }
}

static void decide(struct sim *sim)
{
    struct record timer = {.type = RECORD_TIMER, .at_ns = sim->now_ns};
    struct record_list *decisions = &sim->decisions;
    bool only_time;

    decisions->count = 0;
    feed_samples(sim);
    only_time = sim->inputs == sim->decided_inputs; /* time has passed, which may be an input of its own */
    if (only_time)
        core_apply(sim->core, &timer, NULL);
    core_decide(sim->core, sim->now_ns, decisions);
    sim->decision_count += decisions->count;
    if (only_time && decisions->count)
        observe(sim, &timer);
    for (size_t i = 0; i < decisions->count; i++)
        observe(sim, &decisions->items[i]);
    sim->decided_inputs = sim->inputs;
    for (size_t i = 0; i < decisions->count; i++)
        act(sim, &decisions->items[i]);
}

/* When something happens next; INT64_MAX: never. */
static int64_t next_time(const struct sim *sim)
{
    const struct sim_run *run = heap_first(&sim->heap);
    int64_t period_ns = sim->options->sample_period_ns, tick_ns, next_ns;

    next_ns = core_next_wake_ns(sim->core, sim->now_ns);
    if (run && run->event_ns < next_ns)
        next_ns = run->event_ns;
    if (sim->arrived < sim->count && sim->jobs[sim->arrived].arrival_ns < next_ns)
        next_ns = sim->jobs[sim->arrived].arrival_ns;
    if (sim->due_first < sim->due_count && sim->dues[sim->due_first].due_ns < next_ns)
        next_ns = sim->dues[sim->due_first].due_ns;
    if (sim->unsettled_count && watches_load(sim)) {
        tick_ns = (sim->now_ns / period_ns + 1) * period_ns;
        if (tick_ns < next_ns)
            next_ns = tick_ns;
    }
    return next_ns;
}

/* The jobs that are left will never run: notes why the first of them will not. */
static void note_why_stuck(struct sim *sim)
{
    for (size_t i = 0; i < sim->count && !*sim->never_ended_why; i++) {
        struct reason reason = core_reason(sim->core, i + 1, sim->now_ns);
        if (core_find_job(sim->core, i + 1))
            reason_format(&reason, sim->now_ns, sim->never_ended_why);
    }
}

static int turns(struct sim *sim, struct error *err)
{
    int rc = 0;

    while (rc == 0 && sim->ended < sim->count) {
        struct sim_run *run;
        int64_t next_ns = next_time(sim);
        if (next_ns == INT64_MAX) {
            note_why_stuck(sim);
            break;
        }
        sim->now_ns = next_ns > sim->now_ns ? next_ns : sim->now_ns;
        while ((run = heap_first(&sim->heap)) && run->event_ns <= sim->now_ns)
            pass_event(sim, run);
        while (rc == 0 && sim->arrived < sim->count && sim->jobs[sim->arrived].arrival_ns <= sim->now_ns)
            rc = submit(sim, sim->arrived++, err);
        if (rc == 0)
            decide(sim);
        if (rc == 0 && sim->trouble_rc) {
            *err = sim->trouble;
            rc = sim->trouble_rc;
        }
    }
    return rc;
}

/* ---- Begin and end ---- */

static bool is_part(double value)
{
    return value >= 0 && value <= 1;
}

static int check_job(const struct sim *sim, size_t i, struct error *err)
{
    const struct sim_job *job = &sim->jobs[i];

    if (job->arrival_ns < (i ? sim->jobs[i - 1].arrival_ns : 0))
        return error_set(err, EINVAL, "job %zu arrives at %" PRId64 " ns, before %s: sort jobs by arrival", i + 1,
                         job->arrival_ns, i ? "the job ahead of it" : "time 0");
    if (job->work_ns <= 0)
        return error_set(err, EINVAL, "job %zu has %" PRId64 " ns of work: give it some", i + 1, job->work_ns);
    if (job->gpus == 0 || job->gpus > sim->gpu_count)
        return error_set(err, EINVAL, "job %zu needs %" PRIu32 " GPUs, the node has %" PRIu32, i + 1, job->gpus,
                         sim->gpu_count);
    for (uint32_t k = 0; k < job->use_count; k++)
        if (!is_part(job->uses[k].activity) || !is_part(job->uses[k].occupancy) || !is_part(job->uses[k].dram) ||
            job->uses[k].resident_bytes < 0 || job->uses[k].need_bytes < job->uses[k].resident_bytes)
            return error_set(err, EINVAL, "job %zu does something on GPU %" PRIu32 " that no job can do", i + 1, k);
    return job->use_count ? 0 : error_set(err, EINVAL, "job %zu does nothing on its GPUs", i + 1);
}

static int check(struct sim *sim, struct error *err)
{
    const struct sim_options *options = sim->options;
    int rc = 0;

    if (sim->count == 0)
        return error_set(err, EINVAL, "there are no jobs to simulate");
    if (options->mig_slices && !sim_mig_instances(options->mig_slices))
        return error_set(err, EINVAL, "no MIG instance has %" PRIu32 " slices: 1, 2, 3, 4 or 7", options->mig_slices);
    if (sim->node->gpu_count == 0 || sim->node->total_bytes <= 0 || options->sample_period_ns <= 0 ||
        options->core.window_ns <= 0 || options->load_ns < 0 || options->climb_ns < 0 || !(options->jitter >= 0))
        return error_set(err, EINVAL, "the node or an option of the simulation is out of range");
    for (size_t i = 0; rc == 0 && i < sim->count; i++)
        rc = check_job(sim, i, err);
    return rc;
}

static int begin(struct sim *sim, struct error *err)
{
    struct record configured = {.type = RECORD_RECONFIGURED, .config = sim->options->core};
    int rc;

    sim->core = core_new();
    rc = feed(sim, &configured, err);
    for (uint32_t i = 0; rc == 0 && i < sim->gpu_count; i++) {
        struct record record = {.type = RECORD_GPU_BACK,
                                .gpu = {.gpu = i,
                                        .total_bytes = sim->gpu_bytes,
                                        .share = sim->options->share,
                                        .part_permille = sim->options->mig_slices * 1000 / 7}};
        snprintf(record.gpu.uuid, sizeof record.gpu.uuid, "GPU-simulated-%" PRIu32, i);
        rc = feed(sim, &record, err);
    }
    return rc;
}

static void draw_jobs(struct sim *sim)
{
    sim->rows = xcalloc(sim->count, sizeof *sim->rows);
    sim->runs = xcalloc(sim->count, sizeof *sim->runs);
    for (size_t i = 0; i < sim->count; i++) {
        double factor = 1;
        if (sim->options->jitter > 0)
            factor = fmax(JITTER_LEAST, 1 + sim->options->jitter * random_normal(sim->options->seed, i));
        sim->rows[i] = (struct sim_row){.first_launch_ns = -1,
                                        .last_launch_ns = -1,
                                        .ended_ns = -1,
                                        .state = JOB_QUEUED,
                                        .work_ns = (int64_t)fmax(1, (double)sim->jobs[i].work_ns * factor)};
    }
}

static void release(struct sim *sim)
{
    for (size_t i = 0; i < sim->count && sim->runs; i++)
        free(sim->runs[i]);
    free(sim->runs);
    heap_release(&sim->heap);
    gpus_release(sim);
    core_free(sim->core);
    record_list_release(&sim->decisions);
}

int sim_run(const struct sim_job *jobs, size_t count, const struct sim_node *node, const struct sim_options *options,
            const struct sim_observer *observer, struct sim_result *result, struct error *err)
{
    struct sim sim = {.jobs = jobs, .count = count, .node = node, .options = options, .observer = observer};
    int rc;

    sim.instances = options->mig_slices ? sim_mig_instances(options->mig_slices) : 1;
    sim.gpu_count = node->gpu_count * sim.instances;
    sim.gpu_bytes = options->mig_slices ? sim_mig_bytes(node->total_bytes, options->mig_slices) : node->total_bytes;
    rc = check(&sim, err);
    if (rc)
        return rc;
    sim.begin_ns = sim.now_ns = jobs[0].arrival_ns;
    gpus_init(&sim);
    draw_jobs(&sim);
    rc = begin(&sim, err);
    if (rc == 0)
        rc = turns(&sim, err);
    if (rc == 0) {
        gpus_finish(&sim);
        result_fill(&sim, result);
    } else {
        free(sim.rows);
    }
    release(&sim);
    return rc;
}
