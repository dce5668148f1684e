/* carma-train: a process that behaves like a training job on a virtual node (docs/vnode.md). */
#include "vnode/train.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nodetime.h"
#include "base/units.h"

/* A job holds nothing for LOAD_NS, then climbs to its need in CLIMB_STEPS steps (docs/contention.md). The last one
 * touches the peak, which falls to the resident memory after SETTLE_NS: long enough to be observed, too short to meet
 * another's. */
#define LOAD_NS     (12 * NS_PER_SEC)
#define STEP_NS     (3 * NS_PER_SEC)
#define CLIMB_STEPS 5
#define SETTLE_NS   (1 * NS_PER_SEC)
#define DYING_NS    (3 * NS_PER_SEC)

/* Nobody tells us of a neighbour that was killed: look again after this much node time, within these wall times. */
#define LOOK_NS          (10 * NS_PER_SEC)
#define LOOK_MIN_WALL_NS (20 * NS_PER_MS)
#define LOOK_MAX_WALL_NS (1 * NS_PER_SEC)

#define REPORT_WALL_NS NS_PER_SEC

static struct node node = {.fd = -1};
static volatile sig_atomic_t stop_signal, checkpoint_wanted;

static void on_signal(int number)
{
    if (number == SIGUSR1)
        checkpoint_wanted = 1;
    else
        stop_signal = number;
    node_wake(&node);
}

static void catch_signals(bool checkpoint)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    if (checkpoint)
        sigaction(SIGUSR1, &action, NULL);
}

/* As CUDA takes it from a client's environment; 0: no limit. */
static uint32_t threads_percent(void)
{
    const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    double percent = text ? strtod(text, NULL) : 0;

    return percent >= 1 && percent < 100 ? (uint32_t)percent : 0;
}

static int attach(const struct train_plan *plan, double done_ns, struct attachment *attachment, struct error *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    const char *pipe_directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
    uint64_t domain = attach_mps_domain(pipe_directory);
    struct place places[NODE_MAX_GPUS];
    struct numbering numbering;
    uint32_t count;
    int rc;
    struct node_slot wanted = {
        .mps = domain != 0,
        .mps_domain = domain,
        .threads_percent = threads_percent(),
        .use_count = plan->gpus,
        .train_from_ns = node_now_ns(&node) + LOAD_NS,
        .work_ns = plan->work_ns,
        .done_ns = done_ns,
    };

    numbering_of_process(node.file, getenv("CARMA_VNODE"), domain ? pipe_directory : NULL, &numbering);
    count = attach_visible(node.file, &numbering, visible, places);
    if (count < plan->gpus)
        return error_set(err, ENODEV, "%u GPUs are needed, %u visible: CUDA_VISIBLE_DEVICES is %s%.100s", plan->gpus,
                         count, visible ? "" : "not set", visible ? visible : "");
    for (uint32_t k = 0; k < plan->gpus; k++)
        wanted.uses[k] =
            (struct node_use){.gpu = places[k].gpu, .instance = places[k].instance, .activity = plan->activity[k]};
    printf("carma-train: %s%s%u GPU%s, %s, %.0f s of work%s\n", plan->id, *plan->id ? " on " : "", plan->gpus,
           plan->gpus == 1 ? "" : "s", wanted.mps ? "MPS" : "time sharing", plan->work_ns / 1e9,
           done_ns > 0 ? ", goes on from a checkpoint" : "");
    fflush(stdout);
    rc = attach_begin(attachment, &node, &wanted, err);
    if (rc == 0 && wanted.mps) /* it uses the first of its places */
        attach_memory_limits(node.file, getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), places, count, attachment->limits);
    return rc;
}

/* Memory over time: level 1 .. CLIMB_STEPS are the steps, one more is the fall to the resident memory. */
static int64_t level_time_ns(int64_t train_from_ns, unsigned int level)
{
    if (level <= CLIMB_STEPS)
        return train_from_ns + level * STEP_NS;
    return level == CLIMB_STEPS + 1 ? train_from_ns + CLIMB_STEPS * STEP_NS + SETTLE_NS : INT64_MAX;
}

static int64_t fail_time_ns(const struct node_slot *slot, const struct train_plan *plan)
{
    return slot->train_from_ns - LOAD_NS + plan->fail_at_ns;
}

static void sleep_until(uint32_t generation, int64_t now_ns, int64_t wake_ns)
{
    double scale = node.file->time_scale;
    double wall_ns = (double)(wake_ns - now_ns) / scale, look_wall_ns = (double)LOOK_NS / scale;

    if (look_wall_ns < LOOK_MIN_WALL_NS)
        look_wall_ns = LOOK_MIN_WALL_NS;
    if (look_wall_ns > LOOK_MAX_WALL_NS)
        look_wall_ns = LOOK_MAX_WALL_NS;
    node_wait(&node, generation, (int64_t)(wall_ns < look_wall_ns ? wall_ns : look_wall_ns));
}

/* Allocators ask for a little at a time: a process that is refused by its own limit has all below that, and takes a
 * while to come to its end. */
static void fill_up(struct attachment *attachment, const struct train_plan *plan, const int64_t *wanted,
                    struct shortage *shortage)
{
    int64_t bytes[NODE_MAX_GPUS], more = shortage->free_bytes / MIB * MIB, until_ns;
    struct shortage again;

    if (!shortage->limited)
        return;
    for (uint32_t k = 0; k < plan->gpus; k++)
        bytes[k] = wanted[k] < shortage->held_bytes + more ? wanted[k] : shortage->held_bytes + more;
    if (attach_hold(attachment, bytes, &again, NULL) < 0)
        return;
    shortage->held_bytes += more;
    shortage->wanted_bytes -= more;
    shortage->free_bytes -= more;
    until_ns = node_now_ns(&node) + DYING_NS;
    while (!stop_signal && node_now_ns(&node) < until_ns)
        sleep_until(atomic_load(&node.file->generation), node_now_ns(&node), until_ns);
}

static int hold_level(struct attachment *attachment, const struct train_plan *plan, unsigned int level,
                      struct error *err)
{
    struct shortage shortage;
    int64_t bytes[NODE_MAX_GPUS];
    int rc;

    for (uint32_t k = 0; k < plan->gpus; k++)
        bytes[k] = level == CLIMB_STEPS  ? plan->peak_bytes[k]
                   : level > CLIMB_STEPS ? plan->resident_bytes[k]
                                         : plan->resident_bytes[k] / CLIMB_STEPS * level;
    rc = attach_hold(attachment, bytes, &shortage, err);
    if (rc == -ENOMEM) {
        fill_up(attachment, plan, bytes, &shortage);
        train_print_out_of_memory(&shortage);
    }
    return rc;
}

/* Like any other job's: nobody may read it. */
static void tell_progress(const struct node_slot *slot)
{
    const char *path = getenv("CARMA_PROGRESS_FILE");
    int fd = path ? open(path, O_WRONLY | O_NONBLOCK | O_APPEND | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    dprintf(fd, "%.0f/%.0f\n", floor(slot->done_ns / NS_PER_SEC), ceil(slot->work_ns / NS_PER_SEC));
    close(fd);
}

static void report(const struct train_plan *plan, const struct node_slot *slot)
{
    static int64_t next_wall_ns;
    int64_t wall_ns = nodetime_monotonic_wall_ns();
    char done[UNITS_TEXT], work[UNITS_TEXT];

    if (wall_ns < next_wall_ns || slot->phase != NODE_SLOT_TRAINING)
        return;
    next_wall_ns = wall_ns + REPORT_WALL_NS;
    if (plan->progress)
        tell_progress(slot);
    printf("carma-train: %.1f%% done, %s of %s, at %.2f of solo speed\n", 100 * slot->done_ns / slot->work_ns,
           format_duration((int64_t)slot->done_ns, done), format_duration((int64_t)slot->work_ns, work), slot->rate);
    fflush(stdout);
}

/* 1: a signal asks to end; 0: the work is done; negative: failed (-ENOMEM, -EIO: the message has been printed). */
static int train(struct attachment *attachment, struct train_plan *plan, struct error *err)
{
    const struct train_failure *failure = plan->failure && plan->failure->strike ? plan->failure : NULL;
    unsigned int level = 1;

    for (;;) {
        uint32_t generation = atomic_load(&node.file->generation); /* before the flags: a signal then ends the wait */
        bool asked_to_end = stop_signal; /* before the look: it then sees what went before the signal */
        struct node_slot slot;
        int64_t now_ns, level_ns, fail_ns, wake_ns;
        int rc = attach_look(attachment, &slot, &now_ns, err);

        if (rc < 0)
            return rc;
        if (slot.fault) {
            train_print_cuda_error(slot.fault);
            return -EIO;
        }
        if (asked_to_end)
            return 1;
        if (checkpoint_wanted) {
            checkpoint_wanted = 0;
            rc = checkpoint_write(plan, slot.done_ns, err);
            if (rc < 0)
                return rc;
            printf("carma-train: checkpoint at %.1f%%\n", 100 * slot.done_ns / slot.work_ns);
            fflush(stdout);
        }
        /* A process that a busy machine wakes late does all that was due before its end, in that order. */
        level_ns = level_time_ns(slot.train_from_ns, level);
        fail_ns = failure ? fail_time_ns(&slot, plan) : INT64_MAX;
        wake_ns = level_ns < fail_ns ? level_ns : fail_ns;
        if (wake_ns <= (slot.phase == NODE_SLOT_FINISHED ? slot.finished_ns : now_ns)) {
            rc = level_ns < fail_ns ? hold_level(attachment, plan, level++, err)
                                    : failure->strike(attachment, plan, err);
            if (rc < 0)
                return rc;
            if (fail_ns <= level_ns)
                failure = NULL;
            continue;
        }
        if (slot.phase == NODE_SLOT_FINISHED)
            return 0;
        report(plan, &slot);
        if (slot.rate > 0) {
            double left_ns = (slot.work_ns - slot.done_ns) / slot.rate + 1;

            if (left_ns < (double)(wake_ns - now_ns))
                wake_ns = now_ns + (int64_t)left_ns;
        }
        sleep_until(generation, now_ns, wake_ns);
    }
}

int main(int argc, char **argv)
{
    struct attachment attachment = {0};
    struct train_plan plan;
    struct error err = {{0}};
    double done_ns = 0;
    int rc = train_options(argc, argv, &plan, &err);

    if (rc == 0)
        rc = nodetime_init(&err);
    if (rc == 0)
        rc = node_open(&node, NULL, &err);
    if (rc == 0 && plan.checkpoint)
        rc = checkpoint_read(&plan, &done_ns, &err);
    if (rc == 0) {
        catch_signals(plan.checkpoint);
        if (plan.failure && plan.failure->begin)
            plan.failure->begin(&plan);
        rc = attach(&plan, done_ns, &attachment, &err);
    }
    if (rc == 0)
        rc = train(&attachment, &plan, &err);
    attach_end(&attachment);
    if (rc < 0) {
        if (rc != -ENOMEM && rc != -EIO)
            fprintf(stderr, "carma-train: %s\n", err.text);
        return 1;
    }
    if (rc == 0) {
        if (plan.checkpoint)
            checkpoint_remove();
        printf("carma-train: done\n");
        return fflush(stdout) == 0 ? 0 : 1;
    }
    fflush(stdout);
    signal(stop_signal, SIG_DFL); /* ends as a process without our clean-up would: killed by the signal */
    raise(stop_signal);
    return 128 + stop_signal;
}
