/* Shared by the files of this module. */
#ifndef CARMA_SIM_SIM_INTERNAL_H
#define CARMA_SIM_SIM_INTERNAL_H

#include "core/core.h"
#include "sim/heap.h"
#include "sim/sim.h"

enum sim_phase { SIM_LOADING, SIM_CLIMBING, SIM_SETTLED };

/* One launch of a job. */
struct sim_run {
    size_t job; /* index */
    size_t heap_at;
    int64_t event_ns; /* its next own event */
    int64_t launched_ns;
    int64_t updated_ns; /* done_ns is as of then */
    double done_ns;
    double rate;           /* of its solo speed; 0 while it loads */
    enum share_mode share; /* as it was placed */
    int64_t fence_bytes;   /* as above; -1: none */
    double threads;        /* of a GPU's, that it may use at most; 1: all */
    enum sim_phase phase;
    int64_t report_ns; /* of its steps, next; INT64_MAX: it reports none */
    int64_t leave_ns;  /* it was told to, and has taken its checkpoint then; INT64_MAX: it was not */
    uint32_t gpu_count;
    struct sim_side {
        uint32_t gpu;
        double rate; /* that this GPU alone would allow */
    } sides[];
};

struct sim_resident {
    struct sim_run *run;
    uint32_t side;
};

/* The monitor's readings of a GPU: parts of one. */
enum sim_signal { SIGNAL_ACTIVITY, SIGNAL_OCCUPANCY, SIGNAL_DRAM, SIGNAL_COUNT };

/* Levels since at_ns, and their integrals until then. */
struct sim_change {
    int64_t at_ns;
    double levels[SIGNAL_COUNT];
    double integrals_ns[SIGNAL_COUNT];
};

/* A physical GPU: it draws power. */
struct sim_board {
    int64_t updated_ns;
    double activity;
    int64_t used_bytes;
    uint32_t resident_count; /* of all its instances */
    double held_s;           /* with some */
    double energy_j;
    double activity_ns;
    double byte_seconds;
};

/* A GPU to the core: a physical one, or a MIG instance. */
struct sim_gpu {
    struct sim_resident *residents; /* owned */
    uint32_t resident_count;
    size_t resident_capacity;
    double levels[SIGNAL_COUNT];
    int64_t used_bytes;
    struct sim_change *changes; /* owned: those that the window may still reach */
    size_t change_first, change_count, change_capacity;
    bool unsettled; /* in the list of those with a sample that may be news */
};

struct sim {
    const struct sim_job *jobs;
    size_t count;
    const struct sim_node *node;
    const struct sim_options *options;
    const struct sim_observer *observer;
    struct core *core;            /* owned */
    struct record_list decisions; /* of the turn */
    int64_t now_ns;
    int64_t begin_ns;
    struct sim_board *boards; /* owned */
    struct sim_gpu *gpus;     /* owned */
    uint32_t gpu_count;
    uint32_t instances;  /* GPUs of the core per board */
    int64_t gpu_bytes;   /* of one GPU of the core */
    uint32_t *unsettled; /* owned: GPUs with a sample that may be news */
    uint32_t unsettled_count;
    bool fed_once;
    uint32_t *touched; /* owned: GPUs with an activity to be summed up again */
    uint32_t touched_count;
    bool *is_touched;                     /* owned */
    double *activities, *threads, *rates; /* owned, for contention_rates */
    uint64_t *servers;                    /* the same */
    size_t scratch_capacity;
    struct window_part *parts; /* owned, for percentiles */
    size_t part_capacity;
    struct sim_due { /* when the core may learn from a GPU with unchanged residents: in order of due_ns */
        uint32_t gpu;
        int64_t due_ns;
    } * dues; /* owned */
    size_t due_first, due_count, due_capacity;
    struct sim_heap heap;
    struct sim_run **runs; /* owned array of owned runs, by job; NULL: has no GPUs */
    struct sim_row *rows;
    size_t arrived;
    size_t ended;
    char never_ended_why[REASON_TEXT];
    uint64_t oom;
    uint64_t inputs;
    uint64_t decided_inputs; /* those that the last decision knew of */
    uint64_t decision_count;
    int32_t predicted_permille; /* the greatest slowdown that the core predicted */
    struct error trouble;
    int trouble_rc; /* negative: the core did not accept the simulator's input; trouble says why */
};

const struct sim_use *sim_use_of(const struct sim_job *job, uint32_t side);

static inline const struct core_config *sim_config(const struct sim *sim)
{
    return core_configuration(sim->core);
}

/* Which of the MPS servers of a GPU a job is a client of; 0: of none. */
double sim_threads(const struct record *placed); /* the part of a GPU's threads that it may use */
uint64_t sim_server(enum share_mode share, uint32_t uid, bool for_all_users);

/* gpus.c: the truth of the GPUs. */
void gpus_init(struct sim *sim);
void gpus_release(struct sim *sim);
void gpus_add(struct sim *sim, struct sim_run *run);    /* loading: holds nothing yet */
void gpus_remove(struct sim *sim, struct sim_run *run); /* its memory too */
void gpus_train(struct sim *sim, struct sim_run *run);  /* it loads no longer */
void gpus_hold(struct sim *sim, struct sim_run *run);   /* its resident memory is there */
int64_t gpus_free_bytes(const struct sim *sim, uint32_t gpu);
void gpus_finish(struct sim *sim); /* integrals up to now */

/* The monitor's readings now. */
void gpus_sample(struct sim *sim, uint32_t gpu, struct record_sample *sample);

/* window.c: the monitor's window. */
void window_note(const struct sim *sim, struct sim_gpu *gpu);
double window_statistic(struct sim *sim, struct sim_gpu *gpu, enum sim_signal signal);
bool window_settled(const struct sim *sim, const struct sim_gpu *gpu); /* nothing within it has changed */

/* sim.c: when the run's next event is, from its phase, rate and progress. */
void run_schedule(struct sim *sim, struct sim_run *run);
void run_set_rate(struct sim *sim, struct sim_run *run, double rate);

/* result.c */
void result_fill(const struct sim *sim, struct sim_result *result);

#endif
