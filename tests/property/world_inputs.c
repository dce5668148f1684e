/* The inputs of a random world: the acts of users, jobs, GPUs and operators, and garbage. */
#include <stdio.h>
#include <string.h>

#include "promises.h"
#include "core/gpus/allotment.h"
#include "core/gpus/closing.h"
#include "core/verdict.h"

static uint64_t any_job(struct world *world)
{
    return world->next_job == 1 ? 0 : (uint64_t)random_range(&world->random, 1, (int64_t)world->next_job - 1);
}

/* Of one that is there, or its own. */
static void join_array(struct world *world, struct record_submitted *wants)
{
    struct random *r = &world->random;
    const struct record_submitted *other = &world->jobs[random_range(r, 1, (int64_t)world->next_job)].wants;
    bool joins = other->array && random_range(r, 0, 3);

    wants->array = joins ? other->array : world->next_job;
    wants->array_most = joins ? other->array_most : (uint32_t)random_range(r, 0, 3);
}

static void choose_gpus(struct world *world, struct record_submitted *wants)
{
    static const char *const types[] = {"", "a100", "H100|v100", "sm_90", "A100&<sm_90", "x|>=sm_90"};

    snprintf(wants->gpu_type, sizeof wants->gpu_type, "%s", types[random_range(&world->random, 0, 5)]);
    if (random_range(&world->random, 0, 2) == 0)
        wants->excluded_gpus = (uint64_t)random_range(&world->random, 0, 63);
}

static void need_no_gpu(struct record_submitted *wants)
{
    wants->gpus = wants->share = 0;
    wants->request_bytes = -1;
    wants->request_source = SOURCE_UNKNOWN;
    wants->exclusive = wants->external = false;
    wants->max_wait_ns = wants->waited_ns = 0;
}

static void submit(struct world *world)
{
    struct random *r = &world->random;
    struct record input = {.type = RECORD_SUBMITTED, .job = world->next_job};
    struct record_submitted *wants = &input.submitted;

    if (world->next_job == MAX_JOBS)
        return;
    wants->gpus = (uint32_t)(random_range(r, 0, 3) ? 1 : random_range(r, 1, 4));
    wants->request_bytes = random_range(r, 0, 3) ? random_range(r, 1, 44) * GIB : -1;
    wants->request_source =
        wants->request_bytes < 0 ? SOURCE_UNKNOWN : (uint32_t)random_range(r, SOURCE_DECLARED, SOURCE_ESTIMATED);
    wants->smact_permille = random_range(r, 0, 1) ? -1 : (int32_t)random_range(r, 0, 1000);
    wants->max_slowdown_permille = random_range(r, 0, 3) ? 0 : (int32_t)random_range(r, 1000, 3000);
    snprintf(wants->workload, sizeof wants->workload, "%s", random_range(r, 0, 4) ? "" : "w");
    if (random_range(r, 0, 3))
        snprintf(wants->workload, sizeof wants->workload, "%s%d",
                 random_range(r, 0, 1) ? "w" : "p:", (int)random_range(r, 0, 5));
    wants->exclusive = random_range(r, 0, 5) == 0;
    wants->uid = 1000 + (uint32_t)random_range(r, 0, world->user_count - 1);
    wants->share = (uint32_t)random_range(r, SHARE_ANY, SHARE_MPS);
    wants->held = random_range(r, 0, 9) == 0;
    if (random_range(r, 0, 1)) {
        wants->time_limit_ns = random_range(r, 1, 100) * NS_PER_SEC;
        wants->signal = (uint32_t)random_range(r, 0, 2);
        wants->signal_before_ns = wants->signal ? random_range(r, 0, wants->time_limit_ns - 1) : 0;
    }
    wants->requeue = random_range(r, 0, 1);
    wants->host_memory_bytes = (int64_t)(world->next_job % 4) * 6 * GIB;
    wants->external = random_range(r, 0, 5) == 0;
    wants->idle_limit_ns = wants->external ? 0 : (int64_t)(world->next_job % 3) * 40 * NS_PER_SEC;
    if (world->seed % 8 != 5 && !wants->external && world->next_job % 5 == 0) /* nobody edits it */
        wants->deadline_ns = world->now_ns + (int64_t)(world->next_job % 7) * 100 * NS_PER_SEC;
    wants->attached = !wants->external && random_range(r, 0, 7) == 0;
    wants->requeue &= !wants->attached;
    wants->held &= !wants->external;
    wants->max_wait_ns = wants->external ? random_range(r, 0, 60) * NS_PER_SEC : 0;
    wants->waited_ns = wants->external ? random_range(r, 0, 20) * 1000 * NS_PER_SEC : 0;
    if (world->seed % 8 == 6)
        choose_gpus(world, wants);
    if (world->seed % 8 == 7 && random_range(r, 0, 1))
        need_no_gpu(wants);
    if (random_range(r, 0, 3) == 0 && world->next_job > 1) /* like another */
        *wants = world->jobs[random_range(r, 1, (int64_t)world->next_job - 1)].wants;
    if (world->seed % 8 == 3 && !wants->external)
        join_array(world, wants);
    if (world->seed % 8 == 5 && random_range(r, 0, 2) == 0)
        wants->priority = (int32_t)random_range(r, -2, 2);
    if (!feed(world, &input))
        fail(world, "a good submission was refused");
    world->jobs[world->next_job++] = (struct world_job){.submitted = true, .wants = *wants};
    while ((world->seed % 8 == 2 || world->seed % 8 == 4) && random_range(r, 0, 2) == 0)
        depend(world, (uint64_t)random_range(r, 0, 3) ? world->next_job - 1 : any_job(world));
}

/* The user's own jobs alone exchange their places. */
static void check_places(struct world *world, uint64_t moved, const uint64_t *places)
{
    uint64_t sum = 0, before = 0;

    for (uint64_t id = 1; id < world->next_job; id++) {
        const struct job *job = core_find_job(world->core, id);
        bool own = world->jobs[id].wants.uid == world->jobs[moved].wants.uid &&
                   world->jobs[id].wants.priority == world->jobs[moved].wants.priority;
        if (job && !own && job->place != places[id])
            fail(world, "job %" PRIu64 " has another place, as job %" PRIu64 " was moved", id, moved);
        sum += job ? job->place : 0;
        before += job ? places[id] : 0;
    }
    if (sum != before)
        fail(world, "the places are not those from before job %" PRIu64 " was moved", moved);
}

static void order_jobs(struct world *world)
{
    struct random *r = &world->random;
    struct record input = {.type = RECORD_ORDERED, .job = any_job(world)};
    uint64_t places[MAX_JOBS] = {0};
    const struct job *job;

    for (uint64_t id = 1; id < world->next_job; id++)
        places[id] = (job = core_find_job(world->core, id)) ? job->place : 0;
    input.ordered = (struct record_ordered){.last = input.job + (uint64_t)random_range(r, 0, 3),
                                            .where = (uint32_t)random_range(r, 0, ORDERED_BEFORE),
                                            .before = any_job(world)};
    if (feed(world, &input))
        check_places(world, input.job, places);
}

/* Refused of one that does not wait, and of what a job that has run must keep. */
static void edit_job(struct world *world)
{
    struct random *r = &world->random;
    struct record input = {.type = RECORD_EDITED, .job = any_job(world)};
    struct world_job *job = &world->jobs[input.job];
    struct record_submitted *wants = &input.edited.wants;

    *wants = job->wants;
    input.edited.begin_ns = random_range(r, 0, 2) ? -1 : random_range(r, 0, 1) * (world->now_ns + NS_PER_SEC);
    wants->priority = (int32_t)random_range(r, -2, 2);
    wants->exclusive ^= random_range(r, 0, 3) == 0;
    wants->gpus = random_range(r, 0, 3) ? wants->gpus : (uint32_t)random_range(r, 0, 3);
    if (random_range(r, 0, 1)) {
        wants->request_bytes = random_range(r, 1, 44) * GIB;
        wants->request_source = SOURCE_DECLARED;
    }
    if (!feed(world, &input))
        return;
    job->wants = *wants;
    if (input.edited.begin_ns >= 0) { /* in these worlds nobody waits for others */
        job->depends_count = input.edited.begin_ns > 0;
        job->depends[0] = (struct record_depends){.kind = DEPENDS_TIME, .delay_ns = input.edited.begin_ns};
    }
}

static uint64_t any_running(struct world *world)
{
    uint64_t start = any_job(world);

    for (uint64_t i = 0; i + 1 < world->next_job; i++) {
        uint64_t id = (start + i) % (world->next_job - 1) + 1;
        if (world->jobs[id].running)
            return id;
    }
    return 0;
}

/* Later than it was submitted; refused where it has a request, or has ended. */
static void job_is_estimated(struct world *world)
{
    struct random *r = &world->random;
    struct record input = {.type = RECORD_ESTIMATED, .job = any_job(world)};
    struct world_job *job = &world->jobs[input.job];

    input.estimated.request_bytes = random_range(r, 1, 44) * GIB;
    input.estimated.smact_permille = random_range(r, 0, 1) ? -1 : (int32_t)random_range(r, 0, 1000);
    if (feed(world, &input) != (input.job && !job->ended && job->wants.request_bytes < 0 && job->wants.gpus))
        fail(world, "job %" PRIu64 " was to be estimated, or not", input.job);
    if (!input.job || job->ended || job->wants.request_bytes >= 0 || !job->wants.gpus)
        return;
    job->wants.request_bytes = input.estimated.request_bytes;
    job->wants.request_source = SOURCE_ESTIMATED;
    if (input.estimated.smact_permille >= 0)
        job->wants.smact_permille = input.estimated.smact_permille;
}

static void end_job(const struct world *world, struct world_job *job)
{
    job->ended = true;
    job->ended_ns = world->now_ns;
}

/* Or, with a time, it has not been used since. One that is told to end for that stays so. */
void is_used(struct world_job *job, int64_t unused_ns)
{
    if (job->idle_step < IDLE_ENDED && job->unused_ns != unused_ns)
        job->idle_step = IDLE_NOT_TOLD;
    job->unused_ns = unused_ns;
}

/* By the job's user, another one, who is an administrator, or root. */
static void person_commands(struct world *world, uint64_t id, uint32_t command)
{
    struct random *r = &world->random;
    struct record input = {.type = RECORD_COMMANDED, .job = id};
    struct world_job *job = &world->jobs[input.job];
    bool by_owner = random_range(r, 0, 1), stops = job->asked_to_stop || job->asked_to_wait_again, may, was_suspended;

    input.commanded = (struct record_commanded){.command = command,
                                                .argument = (uint32_t)random_range(r, 0, RECORD_MAX_SIGNAL + 1),
                                                .uid = by_owner                ? job->wants.uid
                                                       : random_range(r, 0, 1) ? 0
                                                                               : job->wants.uid + 1};
    may = job->running && !job->asked_to_stop;
    was_suspended = job->suspended;
    switch (input.commanded.command) {
    case COMMAND_REQUEUE:
        may &= !job->wants.external;
        break;
    case COMMAND_SUSPEND:
        may &= !stops && (job->runs_now || job->suspended);
        break;
    case COMMAND_RESUME:
        may &= job->suspended && (!by_owner || job->suspended_by == job->wants.uid) && !is_among_reserved(world, job);
        break;
    default: /* the run's matter */
        feed(world, &input);
        return;
    }
    if (feed(world, &input) != may)
        fail(world, "command %" PRIu32 " to job %" PRIu64 " was taken, or not", input.commanded.command, input.job);
    if (!may)
        return;
    job->asked_to_wait_again |= input.commanded.command == COMMAND_REQUEUE;
    job->suspended = input.commanded.command == COMMAND_SUSPEND;
    if (job->suspended)
        is_used(job, 0);
    if (job->suspended && (!was_suspended || !by_owner))
        job->suspended_by = input.commanded.uid;
}

static void person_acts(struct world *world)
{
    static const uint32_t types[] = {RECORD_CANCELLED, RECORD_HELD, RECORD_RELEASED};
    struct record input = {.job = any_job(world)};
    struct world_job *job = &world->jobs[input.job];
    size_t at = (size_t)random_range(&world->random, 0, 2 * array_size(types) - 1);

    if (at >= array_size(types)) {
        person_commands(world, input.job, (uint32_t)random_range(&world->random, 0, COMMAND_COUNT));
        return;
    }
    input.type = types[at];
    if (!feed(world, &input) || input.type != RECORD_CANCELLED)
        return;
    job->asked_to_wait_again = job->suspended = false;
    if (job->running)
        job->asked_to_stop = true;
    else
        end_job(world, job);
}

bool may_be_tried_again(uint32_t cause)
{
    return cause == EXIT_GPU_OOM || cause == EXIT_GPU_HANDLE || cause == EXIT_MPS_FAULT || cause == EXIT_GPU_ERROR ||
           cause == EXIT_TIMEOUT || cause == EXIT_IDLE || cause == EXIT_LOST;
}

static struct record_failure *failure_of(struct world *world, struct world_job *job)
{
    const char *workload = job->wants.workload;
    size_t length = strlen(workload);

    if (length == 0)
        return &job->failure;
    return &world->failures[job->wants.uid - 1000]
                           [length == 1 ? WORKLOADS - 1 : workload[length - 1] - '0' + (length == 3 ? WORKLOADS : 0)];
}

/* Two GPUs, one after the other, and nothing that went well in between. The world counts GPUs from 1: 0 is not one. */
static void note_failed_gpu(struct world *world, struct world_job *job, const struct record_exited *exited)
{
    struct record_failure *before = failure_of(world, job);

    if (verdict_of(exited).cause == EXIT_COMPLETED)
        *before = (struct record_failure){0};
    if (exited->cause != EXIT_GPU_ERROR || exited->failed_gpu == RECORD_NO_GPU)
        return;
    /* unless others failed there, too */
    job->charged = before->gpu && before->gpu != exited->failed_gpu + 1 && job->placed_ns >= before->at_ns &&
                   !closing_is_suspect(core_gpu(world->core, exited->failed_gpu),
                                       core_find_job(world->core, (uint64_t)(job - world->jobs)));
    *before = (struct record_failure){.gpu = exited->failed_gpu + 1, .at_ns = world->now_ns};
}

static void job_ends(struct world *world)
{
    struct random *r = &world->random;
    struct record input = {.type = RECORD_EXITED, .job = any_running(world)};
    struct world_job *job = &world->jobs[input.job];
    uint64_t place;
    uint32_t crashes;

    if (!input.job)
        return;
    switch (random_range(r, 0, 9)) {
    case 0:
        input.type = RECORD_LOST;
        input.lost.final = random_range(r, 0, 3) == 0;
        break;
    case 1:
        input.type = RECORD_LAUNCH_FAILED; /* refused where it has started already */
        break;
    default:
        input.exited.cause = (uint32_t)random_range(r, 0, EXIT_CAUSE_COUNT - 1);
        input.exited.status = input.exited.cause != EXIT_COMPLETED;
        input.exited.requested_bytes = random_range(r, 0, 1) ? random_range(r, 0, 8) * GIB : -1;
        input.exited.free_bytes = -1;
        input.exited.used_bytes = random_range(r, -1, 80) * GIB;
        input.exited.used_bytes = input.exited.used_bytes < 0 ? -1 : input.exited.used_bytes;
        input.exited.evidence = random_range(r, 0, 2) ? 0 : (uint32_t)random_range(r, 0, 127);
        input.exited.failed_gpu =
            job->gpu_count && job->runs % 3 ? job->gpus[job->runs % job->gpu_count] : RECORD_NO_GPU;
        break;
    }
    place = core_find_job(world->core, input.job)->place;
    crashes = core_find_job(world->core, input.job)->crashes;
    if (!feed(world, &input)) {
        if (input.type != RECORD_LAUNCH_FAILED)
            fail(world, "the end of job %" PRIu64 " was refused", input.job);
        return;
    }
    job->running = job->runs_now = job->suspended = false;
    if (job->asked_to_wait_again) { /* however it ended, and charged with nothing */
        const struct job *waits = core_find_job(world->core, input.job);
        job->asked_to_wait_again = false;
        if (!waits || waits->state != JOB_QUEUED || waits->place != place || waits->crashes != crashes || waits->retry)
            fail(world, "job %" PRIu64 " was requeued, and does not wait in its place", input.job);
        return;
    }
    job->cause = input.type == RECORD_LOST ? EXIT_LOST : verdict_of(&input.exited).cause;
    job->charged = false;
    if (input.type == RECORD_EXITED && !job->asked_to_stop)
        note_failed_gpu(world, job, &input.exited);
    job->timeouts += job->cause == EXIT_TIMEOUT && !job->moves;
    job->losses += job->cause == EXIT_LOST || job->cause == EXIT_MPS_FAULT || job->cause == EXIT_GPU_ERROR;
    job->completed = input.type == RECORD_EXITED && job->cause == EXIT_COMPLETED && !job->asked_to_stop;
    if (input.type == RECORD_LAUNCH_FAILED || (input.type == RECORD_LOST && input.lost.final) ||
        !may_be_tried_again(job->cause) || job->asked_to_stop)
        end_job(world, job);
}

static void job_moves(struct world *world)
{
    struct random *r = &world->random;
    struct record input = {.job = any_running(world)};
    struct world_job *job = &world->jobs[input.job];
    uint32_t at;

    if (!input.job)
        return;
    if (random_range(r, 0, 2) == 0) {
        input.type = random_range(r, 0, 4) ? RECORD_STARTED : RECORD_ADOPTED;
    } else if (random_range(r, 0, 15) == 0 &&
               !is_on(job, at = (uint32_t)random_range(r, 0, core_gpu_count(world->core) - 1))) {
        job->was_on[at] = true;
        job->stray_bytes[at] += random_range(r, 0, 2) * GIB;
        input.type = RECORD_STRAYED;
        input.strayed = (struct record_memory){.gpu = at, .bytes = job->stray_bytes[at]};
    } else if (job->wants.idle_limit_ns && job->gpu_count && random_range(r, 0, 3) == 0) {
        input.type = RECORD_UNUSED;
        input.unused.since_ns = random_range(r, 0, 3) ? random_range(r, job->placed_ns, world->now_ns) : 0;
    } else if (random_range(r, 0, 3) == 0 || job->gpu_count == 0) {
        input.type = RECORD_PROGRESSED;
        input.progressed = (struct record_progressed){.micro_steps_per_s = random_range(r, 1, 4) * 1000000,
                                                      .span_ns = random_range(r, 1, 300) * NS_PER_SEC,
                                                      .total = random_range(r, 0, 9) ? 100 : 0};
    } else {
        at = (uint32_t)random_range(r, 0, job->gpu_count - 1);
        job->seen_bytes[at] += random_range(r, 0, 2) * GIB / 2;
        input.type = job->seen_bytes[at] ? RECORD_OBSERVED : RECORD_FIRST_USE;
        input.memory = (struct record_memory){.gpu = job->gpus[at], .bytes = job->seen_bytes[at]};
    }
    if (!feed(world, &input))
        return;
    if (input.type == RECORD_UNUSED)
        is_used(job, input.unused.since_ns);
    if ((input.type != RECORD_STARTED && input.type != RECORD_ADOPTED))
        return;
    job->runs_now = true;
    if (!job->started_ns)
        job->started_ns = world->now_ns;
}

static void sample_gpu(struct world *world, uint32_t g)
{
    struct random *r = &world->random;
    struct record input = {.type = RECORD_SAMPLE};
    int64_t total = core_gpu(world->core, g)->total_bytes;

    input.sample.gpu = g;
    input.sample.unmanaged_bytes = random_range(r, 0, 9)   ? 0
                                   : random_range(r, 0, 3) ? random_range(r, 1, 12) * GIB
                                                           : -1;
    input.sample.used_bytes = random_range(r, 0, total);
    if (core_gpu(world->core, g)->resident_count == 0 && random_range(r, 0, 3))
        input.sample.used_bytes = 0;
    input.sample.smact_permille = (int32_t)random_range(r, -1, 1000);
    input.sample.smocc_permille = (int32_t)random_range(r, -1, 1000);
    input.sample.dram_permille = (int32_t)random_range(r, -1, 1000);
    input.sample.others = !random_range(r, 0, 9);
    if (!feed(world, &input))
        fail(world, "a good sample was refused");
}

static void gpu_comes_or_goes(struct world *world)
{
    uint32_t g = (uint32_t)random_range(&world->random, 0, core_gpu_count(world->core) - 1);
    const struct gpu *gpu = core_gpu(world->core, g);
    struct record input = {.type = gpu->lost ? RECORD_GPU_BACK : RECORD_GPU_LOST};

    input.gpu.gpu = g;
    input.gpu.total_bytes = gpu->total_bytes;
    input.gpu.share = gpu->share;
    input.gpu.instance = gpu->instance;
    input.gpu.part_permille = gpu->part_permille;
    if (input.type == RECORD_GPU_BACK && !world->core->reserved_job) /* the job with a promise that goes by the present
                                                                        state */
        input.gpu.share = (uint32_t)random_range(&world->random, SHARE_ANY, SHARE_AUTO);
    memcpy(input.gpu.uuid, gpu->uuid, sizeof input.gpu.uuid);
    memcpy(input.gpu.name, gpu->name, sizeof input.gpu.name);
    input.gpu.compute = gpu->compute;
    if (!feed(world, &input))
        fail(world, "a GPU could not come or go");
}

static void administrator_drains_or_resumes(struct world *world)
{
    uint32_t g = (uint32_t)random_range(&world->random, 0, core_gpu_count(world->core));
    bool node = g == core_gpu_count(world->core),
         open = node ? !world->core->drained : !core_gpu(world->core, g)->drained;
    struct record input = {.type = open ? RECORD_GPU_DRAINED : RECORD_GPU_RESUMED,
                           .drained = {.gpu = node ? RECORD_NO_GPU : g, .uid = 1000 + g}};

    snprintf(input.drained.why, sizeof input.drained.why, "%s", open ? "its fan" : "");
    if (!feed(world, &input))
        fail(world, "a GPU could not be drained or resumed");
}

/* "Reserved for ada": now, or soon; some overlap another, or are over already. Half of them, where a job runs, are of
 * its GPU, have begun, and come while it is suspended. */
static void administrator_allots(struct world *world)
{
    struct random *r = &world->random;
    struct record input = {.type = RECORD_GPUS_ALLOTTED, .allotted.number = core_next_allotment(world->core)};
    struct record_allotted *allotted = &input.allotted;
    uint32_t first = (uint32_t)random_range(r, 0, core_gpu_count(world->core) - 1);
    uint64_t still = random_range(r, 0, 1) ? world->next_job - 1 : 0;

    while (still > 0 && (!world->jobs[still].runs_now || !world->jobs[still].running || !world->jobs[still].gpu_count))
        still--;
    if (still) {
        person_commands(world, still, COMMAND_SUSPEND);
        first = world->jobs[still].gpus[0];
    }
    allotted->from_ns = world->now_ns + random_range(r, -2, still ? 0 : 10) * 100 * NS_PER_SEC;
    allotted->until_ns = allotted->from_ns + random_range(r, 0, 10) * 100 * NS_PER_SEC;
    while (first < core_gpu_count(world->core) && random_range(r, 0, 3))
        allotted->gpus[allotted->gpu_count++] = first++;
    while (allotted->user_count < 2 && random_range(r, 0, 4))
        allotted->users[allotted->user_count++] = 1000 + (uint32_t)random_range(r, 0, world->user_count - 1);
    if (allotted->number < MAX_ALLOTMENTS && feed(world, &input))
        world->allotments[allotted->number] = *allotted;
    if (still)
        person_commands(world, still, COMMAND_RESUME);
}

static void administrator_takes_back(struct world *world)
{
    uint32_t count, at;
    const struct record_allotted *allotments = core_allotments(world->core, &count);
    struct record input = {.type = RECORD_ALLOTMENT_ENDED};

    if (count == 0)
        return;
    at = (uint32_t)random_range(&world->random, 0, count - 1);
    input.allotment_ended.number = allotments[at].number;
    if (!feed(world, &input))
        fail(world, "reservation %" PRIu32 " could not be taken back", input.allotment_ended.number);
    world->allotments[input.allotment_ended.number].until_ns = 0;
}

static void mps_fails_or_serves(struct world *world)
{
    uint32_t g = (uint32_t)random_range(&world->random, 0, core_gpu_count(world->core) - 1);
    struct world_user *user = &world->users[g % 2];
    struct record input = {.type = RECORD_SHARE_FAULT};

    input.share_fault = (struct record_share_fault){.gpu = g, .faulted = !core_gpu(world->core, g)->share_faulted};
    if (random_range(&world->random, 0, 1)) {
        user->share_faulted = !user->share_faulted;
        input.share_fault =
            (struct record_share_fault){.of_user = true, .uid = 1000 + g % 2, .faulted = user->share_faulted};
    }
    if (!feed(world, &input))
        fail(world, "an MPS server could not fail or serve");
}

/* An administrator takes back what is known of a user, or of a program's workload. */
static void forget(struct world *world)
{
    struct record input = {.type = RECORD_FORGOTTEN, .forgotten = {.of_user = random_range(&world->random, 0, 1)}};
    uint32_t user = (uint32_t)random_range(&world->random, 0, world->user_count - 1);

    input.forgotten.uid = 1000 + user;
    if (!input.forgotten.of_user)
        snprintf(input.forgotten.workload, sizeof input.forgotten.workload, "p:0");
    if (!feed(world, &input))
        fail(world, "a good word to forget was refused");
    if (input.forgotten.of_user)
        memset(world->failures[user], 0, sizeof world->failures[user]);
    for (uint32_t u = 0; u < USERS && !input.forgotten.of_user; u++)
        world->failures[u][WORKLOADS] = (struct record_failure){0};
}

static void give_share(struct world *world)
{
    struct record input = {.type = RECORD_SHARE_GIVEN};

    input.share_given.uid = 1000 + (uint32_t)random_range(&world->random, 0, world->user_count - 1);
    input.share_given.share = (uint32_t)random_range(&world->random, 0, 5);
    if (random_range(&world->random, 0, 1))
        snprintf(input.share_given.group, sizeof input.share_given.group, "group %d", (int)input.share_given.uid % 2);
    input.share_given.group_share = (uint32_t)random_range(&world->random, 0, 2);
    if (feed(world, &input) !=
        (input.share_given.share > 0 && !*input.share_given.group == !input.share_given.group_share))
        fail(world, "a share of %" PRIu32 " was refused or taken", input.share_given.share);
}

static void garbage(struct world *world)
{
    CLEANUP(free_ptr) char *before = core_dump(world->core);
    struct record input = {0};
    struct error err;

    for (size_t i = 0; i < sizeof input; i++)
        ((unsigned char *)&input)[i] =
            (unsigned char)(random_range(&world->random, 0, 2) ? 0 : random_next(&world->random));
    input.type = (uint32_t)random_range(&world->random, 0, RECORD_TYPE_COUNT + 2);
    input.job = (uint64_t)random_range(&world->random, 0, (int64_t)world->next_job + 3);
    if (input.type == RECORD_SUBMITTED || input.type == RECORD_GPU_BACK || input.type == RECORD_TIMER ||
        input.type == RECORD_SHARE_FAULT || input.type == RECORD_SAMPLE || input.type == RECORD_GPU_LOST ||
        input.type == RECORD_WAITED || input.type == RECORD_FORGOTTEN || input.type == RECORD_GPU_OPENED ||
        input.type == RECORD_SHARE_GIVEN || input.type == RECORD_GPU_DRAINED || input.type == RECORD_GPU_RESUMED ||
        input.type == RECORD_GPU_TRIED || input.type == RECORD_GPUS_ALLOTTED || input.type == RECORD_ALLOTMENTS_DUE ||
        (record_is_state(input.type) && world->core->restoring) || world->jobs[input.job].submitted)
        return; /* might make sense */
    if (core_apply(world->core, &input, &err) == 0)
        fail(world, "garbage was taken for '%s'", record_type_name(input.type));
    CLEANUP(free_ptr) char *after = core_dump(world->core);
    if (strcmp(before, after) != 0)
        fail(world, "a refused record changed the state");
}

static struct core_config random_config(struct random *r)
{
    struct core_config config;
    size_t count = 0;

    while (policies[count])
        count++;
    core_config_default(&config);
    snprintf(config.policy, sizeof config.policy, "%s", policies[random_range(r, 0, (int64_t)count - 1)]->name);
    config.memory_view = (uint32_t)random_range(r, 0, 1);
    config.floor_bytes = random_range(r, 0, 6) * GIB;
    config.margin_bytes = random_range(r, 0, 2) * GIB;
    config.smact_cap_permille = (int32_t)random_range(r, 0, 10) * 100;
    config.decide_period_ns = random_range(r, 0, 1) * 30 * NS_PER_SEC;
    config.settle_ns = random_range(r, 0, 1) * 30 * NS_PER_SEC;
    config.max_retries = (uint32_t)random_range(r, 0, 4);
    config.max_requeues = (uint32_t)random_range(r, 0, 3);
    config.requeue_lost = random_range(r, 0, 3) == 0;
    config.per_user.max_running = random_range(r, 0, 2) ? 0 : (uint32_t)random_range(r, 1, 6);
    config.per_user.max_gpus = random_range(r, 0, 2) ? 0 : (uint32_t)random_range(r, 1, 6);
    config.per_user.max_memory_bytes = random_range(r, 0, 2) ? 0 : random_range(r, 1, 160) * GIB;
    config.per_user.max_retries = random_range(r, 0, 1) ? 0 : (uint32_t)random_range(r, 1, 5);
    config.max_jobs_per_gpu = (uint32_t)random_range(r, 1, 8);
    config.max_without_gpu = config.max_jobs_per_gpu % 4;
    config.most.host_memory_bytes = config.max_jobs_per_gpu % 3 == 1 ? 24 * GIB : 0;
    config.smocc_cap_permille = random_range(r, 0, 1) ? 1000 : (int32_t)random_range(r, 0, 1000);
    config.dram_cap_permille = random_range(r, 0, 1) ? 1000 : (int32_t)random_range(r, 0, 1000);
    config.caps_together = random_range(r, 0, 1);
    config.window_ns = random_range(r, 0, 30) * NS_PER_SEC;
    config.paced = random_range(r, 0, 3) == 0;
    config.decide_period_ns += config.paced ? NS_PER_SEC : 0;
    config.collocate_extra_ns = random_range(r, 0, 1) * 30 * NS_PER_SEC;
    config.oom_retry = (uint32_t)random_range(r, 0, OOM_RETRY_INFORMED);
    config.mps_multiuser = random_range(r, 0, 3) == 0;
    config.mps_domain = (uint32_t)random_range(r, 0, MPS_DOMAIN_COUNT - 1);
    config.mps_max_clients = (uint32_t)random_range(r, 1, 4);
    config.mps_threads_percent = config.mps_max_clients < 3 ? 100 : config.max_jobs_per_gpu % 3 * 50; /* 0: auto */
    config.backfill = random_range(r, 0, 1) ? 0 : (uint32_t)random_range(r, 1, 8);
    config.order = random_range(r, 0, 1) ? ORDER_FAIR : ORDER_FIFO;
    config.starvation_timeout_ns = random_range(r, 0, 1000) * NS_PER_SEC;
    config.max_slowdown_permille = random_range(r, 0, 1) ? 0 : (int32_t)random_range(r, 1000, 4000);
    config.learn = random_range(r, 0, 1);
    config.memory_fence = (uint32_t)random_range(r, 0, 1);
    config.gate = random_range(r, 0, 4) ? GATE_ALL : GATE_MEMORY;
    config.prior_quantile_permille = random_range(r, 0, 1) ? (int32_t)random_range(r, 1, 999) : 0;
    config.shrink_after_ns = random_range(r, 0, 1) * random_range(r, 1, 100) * NS_PER_SEC;
    return config;
}

void reconfigure(struct world *world)
{
    struct record input = {.type = RECORD_RECONFIGURED};

    input.config = random_config(&world->random);
    /* A change of view while jobs run could only be checked against reservations made under another: keep it. */
    if (core_job_count(world->core))
        input.config.memory_view = core_configuration(world->core)->memory_view;
    if (core_job_count(world->core) && strcmp(input.config.policy, "exclusive") == 0)
        snprintf(input.config.policy, sizeof input.config.policy, "lug");
    if (!feed(world, &input))
        fail(world, "a good configuration was refused");
    world->reconfigured |= core_gpu_count(world->core) > 0;
    world->lax |= input.config.mps_multiuser || input.config.mps_domain == MPS_DOMAIN_NODE;
    world->reservation.job = 0; /* was made under the other */
}

static void wake_up(struct world *world)
{
    int64_t wake_ns = core_next_wake_ns(world->core, world->now_ns);
    struct record input = {.type = RECORD_TIMER};

    if (wake_ns <= world->now_ns)
        fail(world, "the next wake is not in the future");
    if (wake_ns != INT64_MAX)
        world->now_ns = wake_ns;
    feed(world, &input);
}

/* In which nobody comes or goes, and all that run report their steps: at first quickly, then most slowly. */
static void hours_pass(struct world *world)
{
    for (int64_t turn = 0; turn < 4; turn++) {
        world->now_ns += 700 * NS_PER_SEC;
        for (uint64_t id = 1; id < world->next_job; id++) {
            int64_t speed = turn && random_range(&world->random, 0, 3) ? 1 : 4;
            struct record report = {.type = RECORD_PROGRESSED, .job = id};
            report.progressed = (struct record_progressed){speed * 1000000, 200 * NS_PER_SEC, 100};
            if (world->jobs[id].running && !world->jobs[id].ended)
                feed(world, &report);
        }
    }
}

void random_input(struct world *world)
{
    struct random *r = &world->random;

    if (world->seed % 16 == 7 && random_range(r, 0, 2))
        hours_pass(world);
    world->now_ns += random_range(r, 0, 20) * NS_PER_SEC;
    switch (random_range(r, 0, 19)) {
    case 0 ... 4:
        submit(world);
        break;
    case 5 ... 6:
        if (world->seed % 8 == 5 && random_range(r, 0, 1))
            (random_range(r, 0, 1) ? order_jobs : edit_job)(world);
        else
            person_acts(world);
        break;
    case 7 ... 9:
        job_ends(world);
        break;
    case 10 ... 12:
        job_moves(world);
        break;
    case 13 ... 16:
        sample_gpu(world, (uint32_t)random_range(r, 0, core_gpu_count(world->core) - 1));
        break;
    case 17:
        if (random_range(r, 0, 9) == 0)
            gpu_comes_or_goes(world);
        else if (random_range(r, 0, 4) == 0)
            mps_fails_or_serves(world);
        else if (world->seed % 4 == 1 && random_range(r, 0, 3) == 0)
            administrator_drains_or_resumes(world);
        else if (world->seed % 4 > 1 && random_range(r, 0, 1))
            (random_range(r, 0, 3) ? administrator_allots : administrator_takes_back)(world);
        else if (random_range(r, 0, 1))
            job_is_estimated(world);
        else
            wake_up(world);
        break;
    case 18:
        if (random_range(r, 0, 19) == 0)
            reconfigure(world);
        else if (random_range(r, 0, 9) == 0)
            forget(world);
        else if (random_range(r, 0, 4) == 0)
            give_share(world);
        break;
    default:
        garbage(world);
        break;
    }
}
