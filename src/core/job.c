/* How this file works: `states` has each state with its name and successors, and job_state_after says to which state a
 * record brings a job: `stays` of its row in records.def has the states that it leaves as they are, the switch all
 * others. apply.c refuses a record that leads nowhere. To add a state: enum job_state (job.h), a row, and the records
 * that lead there. */
#include "core/job.h"

#include "base/memory.h"
#include "core/verdict.h"

#define BIT(state) (1u << (state))

static const struct {
    const char *name;
    const char *letter; /* as in squeue and gflow */
    uint32_t successors;
} states[JOB_STATE_COUNT] = {
    [JOB_HELD] = {"HELD", "H", BIT(JOB_QUEUED) | BIT(JOB_CANCELLED)},
    [JOB_QUEUED] = {"QUEUED", "PD",
                    BIT(JOB_HELD) | BIT(JOB_PLACED) | BIT(JOB_CANCELLED) | BIT(JOB_REFUSED) | BIT(JOB_EXPIRED)},
    [JOB_PLACED] = {"PLACED", "CF",
                    BIT(JOB_RUNNING) | BIT(JOB_STOPPING) | BIT(JOB_REQUEUING) | BIT(JOB_CRASHED) | BIT(JOB_COMPLETED) |
                        BIT(JOB_FAILED) | BIT(JOB_LOST) | BIT(JOB_EXPIRED)},
    [JOB_RUNNING] = {"RUNNING", "R",
                     BIT(JOB_SUSPENDED) | BIT(JOB_STOPPING) | BIT(JOB_REQUEUING) | BIT(JOB_CRASHED) |
                         BIT(JOB_COMPLETED) | BIT(JOB_FAILED) | BIT(JOB_LOST) | BIT(JOB_EXPIRED)},
    [JOB_STOPPING] = {"STOPPING", "CG", BIT(JOB_CANCELLED) | BIT(JOB_LOST)},
    [JOB_CRASHED] = {"CRASHED", "RQ",
                     BIT(JOB_QUEUED) | BIT(JOB_GPU_OOM) | BIT(JOB_FAILED) | BIT(JOB_CANCELLED) | BIT(JOB_LOST) |
                         BIT(JOB_TIMEOUT) | BIT(JOB_RETURNED)},
    [JOB_COMPLETED] = {"COMPLETED", "CD", 0},
    [JOB_FAILED] = {"FAILED", "F", 0},
    [JOB_GPU_OOM] = {"GPU_OOM", "OOM", 0},
    [JOB_CANCELLED] = {"CANCELLED", "CA", 0},
    [JOB_LOST] = {"LOST", "NF", 0},
    [JOB_REFUSED] = {"REFUSED", "RF", 0},
    [JOB_TIMEOUT] = {"TIMEOUT", "TO", 0},
    [JOB_RETURNED] = {"RETURNED", "RT", 0},
    [JOB_EXPIRED] = {"EXPIRED", "EX", 0},
    [JOB_SUSPENDED] = {"SUSPENDED", "S",
                       BIT(JOB_RUNNING) | BIT(JOB_STOPPING) | BIT(JOB_REQUEUING) | BIT(JOB_CRASHED) |
                           BIT(JOB_COMPLETED) | BIT(JOB_FAILED) | BIT(JOB_LOST) | BIT(JOB_EXPIRED)},
    [JOB_REQUEUING] = {"REQUEUING", "RG", BIT(JOB_QUEUED) | BIT(JOB_STOPPING)},
};

const char *job_state_name(uint32_t state)
{
    return state < JOB_STATE_COUNT ? states[state].name : "NONE";
}

const char *job_state_letter(uint32_t state)
{
    return state < JOB_STATE_COUNT ? states[state].letter : "-";
}

bool job_state_ended(uint32_t state)
{
    return state < JOB_STATE_COUNT && states[state].successors == 0;
}

bool job_state_has_gpus(uint32_t state)
{
    return state == JOB_PLACED || job_state_runs(state);
}

bool job_state_runs(uint32_t state)
{
    return state == JOB_RUNNING || state == JOB_SUSPENDED || job_state_stops(state);
}

bool job_state_stops(uint32_t state)
{
    return state == JOB_STOPPING || state == JOB_REQUEUING;
}

bool job_transition_allowed(uint32_t from, uint32_t to)
{
    return from < JOB_STATE_COUNT && to < JOB_STATE_COUNT && (states[from].successors & BIT(to));
}

static uint32_t after_exit(uint32_t from, uint32_t cause)
{
    if (from == JOB_STOPPING)
        return JOB_CANCELLED; /* however it ended: its user did not want it any more */
    if (from == JOB_REQUEUING)
        return JOB_QUEUED; /* however it ended: it is to begin anew */
    switch (cause) {
    case EXIT_COMPLETED:
        return JOB_COMPLETED;
    case EXIT_GPU_OOM:
    case EXIT_GPU_HANDLE:
    case EXIT_MPS_FAULT:
    case EXIT_GPU_ERROR:
    case EXIT_TIMEOUT:
    case EXIT_IDLE:
    case EXIT_LOST:
        return JOB_CRASHED;
    case EXIT_ORPHAN:
        return JOB_LOST;
    case EXIT_EXPIRED:
        return JOB_EXPIRED;
    default:
        return JOB_FAILED;
    }
}

/* For the rows of records.def. */
#define IN(state) BIT(JOB_##state)
#define WAITS     (IN(HELD) | IN(QUEUED))
#define STOPS     (IN(STOPPING) | IN(REQUEUING))
#define RUNS      (IN(RUNNING) | IN(SUSPENDED) | STOPS)
#define HAS_GPUS  (IN(PLACED) | RUNS)

enum whose { NO_JOB, JOB, LOCAL, LEASE };

static const struct {
    enum whose whose;
    uint32_t stays;
} of_type[RECORD_TYPE_COUNT] = {
#define RECORD(type, name, whose, stays) {whose, stays},
#include "core/records.def"
};

static const struct {
    enum whose whose;
    uint32_t from, to;
    const char *order;
} commands[COMMAND_COUNT] = {
#define COMMAND(name, whose, from, to, order) {whose, from, JOB_##to, order},
#include "core/commands.def"
};

const char *command_order(uint32_t command)
{
    return commands[command].order;
}

bool job_suits(const struct job *job, const struct record *record)
{
    enum whose whose =
        record->type == RECORD_COMMANDED ? commands[record->commanded.command].whose : of_type[record->type].whose;

    return whose == JOB || whose == (job->wants->external ? LEASE : LOCAL);
}

uint32_t job_state_after(uint32_t from, const struct record *record)
{
    uint32_t to = JOB_STATE_COUNT;

    if (record->type < RECORD_TYPE_COUNT && from < JOB_STATE_COUNT && of_type[record->type].stays & BIT(from))
        return from;
    switch (record->type) {
    case RECORD_SUBMITTED:
        return from == JOB_STATE_COUNT ? (record->submitted.held ? JOB_HELD : JOB_QUEUED) : JOB_STATE_COUNT;
    case RECORD_CANCELLED:
        to = job_state_has_gpus(from) ? JOB_STOPPING : JOB_CANCELLED;
        break;
    case RECORD_COMMANDED:
        if (record->commanded.command < COMMAND_COUNT && commands[record->commanded.command].from & BIT(from))
            return commands[record->commanded.command].to;
        break;
    case RECORD_HELD:
        to = JOB_HELD;
        break;
    case RECORD_RELEASED:
        to = from == JOB_HELD ? JOB_QUEUED : JOB_STATE_COUNT;
        break;
    case RECORD_STARTED:
    case RECORD_ADOPTED:
        to = from == JOB_PLACED ? JOB_RUNNING : JOB_STATE_COUNT;
        break;
    case RECORD_EXITED:
        to = job_state_has_gpus(from) ? after_exit(from, verdict_of(&record->exited).cause) : JOB_STATE_COUNT;
        break;
    case RECORD_LAUNCH_FAILED:
        to = job_state_stops(from)      ? after_exit(from, EXIT_FAILED)
             : job_state_has_gpus(from) ? JOB_FAILED
                                        : JOB_STATE_COUNT;
        break;
    case RECORD_LOST:
        to = from == JOB_REQUEUING ? JOB_QUEUED : record->lost.final || from == JOB_STOPPING ? JOB_LOST : JOB_CRASHED;
        break;
    case RECORD_PLACED:
        to = JOB_PLACED;
        break;
    case RECORD_REQUEUED:
        to = from == JOB_CRASHED ? JOB_QUEUED : JOB_STATE_COUNT;
        break;
    case RECORD_GAVE_UP:
        to = record->gave_up.memory                                                        ? JOB_GPU_OOM
             : record->gave_up.cause == EXIT_TIMEOUT || record->gave_up.cause == EXIT_IDLE ? JOB_TIMEOUT
             : record->gave_up.cause == EXIT_LOST                                          ? JOB_LOST
                                                                                           : JOB_FAILED;
        break;
    case RECORD_RETURNED:
        to = JOB_RETURNED;
        break;
    case RECORD_REFUSED:
        to = JOB_REFUSED;
        break;
    case RECORD_EXPIRED:
        to = from == JOB_QUEUED ? JOB_EXPIRED : JOB_STATE_COUNT;
        break;
    default:
        break;
    }
    return job_transition_allowed(from, to) ? to : JOB_STATE_COUNT;
}

const struct job_run job_never_ran = {
#define STATE(part, type, member, kind, name)
#define SHOWN(part, type, member, kind, name, absent, form, title) IF_RUN_##part(.member = absent, )
#include "core/job_state.def"
    .failure = {.gpu = RECORD_NO_GPU}};

struct job_run *job_run(struct job *job)
{
    struct job_run *run;

    if (job->run != &job_never_ran)
        return (struct job_run *)job->run;
    run = xcalloc(1, sizeof *run);
    *run = job_never_ran;
    run->job = job;
    job->run = run;
    return run;
}

void job_run_free(struct job *job)
{
    if (job->run == &job_never_ran)
        return;
    free(job->run->strays);
    free((struct job_run *)job->run);
    job->run = &job_never_ran;
}

int64_t job_latest_start_ns(const struct job *job)
{
    return job->wants->deadline_ns ? job->wants->deadline_ns - job->wants->time_limit_ns : INT64_MAX;
}

int64_t job_waits_since_ns(const struct job *job)
{
    int64_t since_ns =
        job->retry && job->run->crashed_ns > job->submitted_ns ? job->run->crashed_ns : job->submitted_ns;

    return since_ns > job->gave_way_ns ? since_ns - job->wants->waited_ns : job->gave_way_ns;
}
