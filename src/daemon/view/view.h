/* The data of jobs that people are shown, ended ones included. After each record, what the core
 * knows of its job is taken from the core, and the rest is folded from the record, so that a restart rebuilds it. The
 * core forgets a job that has ended; this does not. */
#ifndef CARMA_DAEMON_VIEW_VIEW_H
#define CARMA_DAEMON_VIEW_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/spec_estimate.h"
#include "base/hash.h"
#include "core/common_wants.h"
#include "core/core.h"
#include "core/waiting/turn.h"
#include "daemon/view/access.h"
#include "daemon/view/common_specs.h"
#include "daemon/view/common_texts.h"
#include "daemon/view/memory_usage.h"
#include "daemon/view/stored_texts.h"
#include "launch/launch.h"
#include "launch/progress.h"

struct array_words;
struct job_spec;

/* How far a running job says it has come (daemon/run/run_progress.c). */
struct job_progress {
    struct progress_count count;
    int64_t micro_steps_per_s; /* -1: not known yet */
};

/* What is told of a job since it was first placed: the RUN rows of view_fields.def, and more of that kind. */
struct job_view_run {
    struct record_exited exit; /* if `exited` */
    int64_t fault_ns; /* when, as an MPS client, it last ended with a kernel's fault; 0: not since the daemon began */
    int64_t seen_ns;  /* it is known to have run until then (daemon/run/runs.h): not folded from records either */
    struct memory_usage held; /* GPU memory over time: begun and ended by records, in between the node says how much */
    int64_t energy_mj;        /* modelled (daemon/node/energy.h): not folded from records, but kept by the node */
    int64_t unused_since_ns; /* it runs, and has not used its GPUs since, for long enough to be told; -1: no. The node's
                                too */
    int64_t used_ns; /* when it may last have used one of them: the same; 0: nobody has looked since the daemon began */
    int64_t unmeasured_ns;         /* when that could last not be told */
    struct job_progress *progress; /* owned; while it runs, not folded from records; NULL: it says nothing */
#define STATE(part, type, member, kind, name)
#define SHOWN(part, type, member, kind, name, absent, form, title) IF_RUN_##part(type member;)
#include "core/job_state.def"
#define VIEW(part, type, member, first, form) IF_RUN_##part(type member;)
#include "daemon/view/view_fields.def"
    bool exited;
};

/* Of all jobs that were never placed. */
extern const struct job_view_run view_never_ran;

/* Many of them are of jobs that only wait: what starts with a job's first run is apart, and the members lie by size, so
 * that there are no holes between them. */
struct job_view {
    uint64_t id;
    const struct record_submitted *wants; /* shared with other jobs; without the workload: job_view_set_wants() */
    struct common_text *workload;         /* job_view_workload() */
    struct common_spec *common; /* of its spec, without summary and capture, the part shared with other jobs; and the
                                   estimate */
    struct common_text *name, *command, *environment, *script; /* its other parts; see job_view_forget_inputs() */
    struct common_text
        *user;           /* as the user database said when it was submitted (daemon/view/owners.h): job_view_user() */
    struct views *views; /* which has those */
    int64_t gid;         /* as of the user; OWNER_NO_GID; OWNER_UNKNOWN: an earlier carma took it in */
    const struct job_view_run *run; /* view_never_ran, or owned: never NULL. To change it: job_view_run() */
    char *message;                  /* owned; of the last failure; may be NULL */
    char *unreadable; /* owned; its unreadable parts in the store, and why (daemon/set_aside.h); NULL: none */
    struct job_placement *placements; /* owned; of the last or current launch */
    uint64_t changed;                 /* views.taken + 1, then; see job_view_is_changed() */
    uint64_t as_of;                   /* loaded: its records up to this one are in it already; 0: none */
    uint64_t version;                 /* views.version when the shown data last changed */
    struct job_view *earlier, *later; /* by version */
    uint64_t shown_as; /* the values that change without a record, as last shown (daemon/request/events.c); 0: never
                          looked at */
    UT_hash_handle hh;
#define VIEW(part, type, member, first, form) IF_JOB_##part(type member;)
#include "daemon/view/view_fields.def"
    uint32_t state; /* enum job_state */
#define STATE(part, type, member, kind, name)
#define SHOWN(part, type, member, kind, name, absent, form, title) IF_JOB_##part(type member;)
#include "core/job_state.def"
    bool hidden : 1;          /* its submission is not stored yet: it is shown to nobody */
    bool withdrawn : 1;       /* it could not be stored, and was refused: nothing is left of it once it has ended */
    bool has_script : 1;      /* the command is a script's, which the store keeps for as long as the job is known */
    bool estimating : 1;      /* its capture is under way (daemon/capture/captures.h): not folded from records either */
    uint32_t stored_bytes;    /* of its submission, in the store */
    uint32_t placement_count; /* of `placements` */
    int32_t activity_permille; /* of an ended one, its workload's as observed; 0: never was. For its row of history */
};

/* To be changed: made at the first call, which is the first placement, and freed with the view. */
struct job_view_run *job_view_run(struct job_view *view);

/* Inside view only. */
void job_view_run_free(struct job_view *view);

/* Why CUDA_VISIBLE_DEVICES has UUIDs where indices were asked for. */
enum uuids_why {
    UUIDS_NOT_ASKED, /* it has indices, or was to have UUIDs */
    UUIDS_LEASE,
    UUIDS_INSTANCE,
    UUIDS_UNKNOWN_SERVER,
    UUIDS_MIXED_NODE,
    UUIDS_NOT_READ,
    UUIDS_CONTAINER,
    UUIDS_WHY_COUNT
};

struct owners;

struct views {
    struct owners *owners; /* borrowed: the names of users in reasons */
    struct common_texts texts;
    struct common_specs specs;
    struct user_bytes on_disk; /* stored_texts.h */
    struct common_wants *wants;
    const struct record_submitted
        *no_wants;         /* of jobs before their SUBMITTED record: each would leave a hole in the heap */
    struct job_view *jobs; /* uthash by id, in the order of submission */
    uint64_t last_id;
    uint64_t version;        /* raised by each change */
    uint64_t taken;          /* how often the changed ones were taken to be stored */
    uint64_t stored;         /* those that changed later are not stored: `taken`, but 0 after a failure */
    uint64_t seq;            /* of the record that is folded, while the store is loaded; UINT64_MAX afterwards */
    struct job_view *latest; /* the last change; from there by `earlier` */
    uint64_t counts[JOB_STATE_COUNT];
};

void views_release(struct views *views);
struct job_view *views_find(const struct views *views, uint64_t id);

/* A submission's spec and estimate, taken over; before its SUBMITTED record is folded. */
struct job_view *views_add(struct views *views, uint64_t id, struct job_spec *spec, struct job_estimate *estimate);

/* The same of the next job of an array, which has all of that, and the user, in common with an earlier one. */
struct job_view *views_add_like(struct views *views, uint64_t id, const struct job_view *earlier);

/* A view's state was filled in by job_view_from_text. */
void views_loaded(struct views *views, struct job_view *view);

/* Its submission is stored: from now on it is shown. */
void views_show(struct views *views, struct job_view *view);

/* Its user's name; NULL: not known. */
const char *job_view_user(const struct job_view *view);

/* Identifies runs of "the same" job; "": it has none. */
const char *job_view_workload(const struct job_view *view);

/* Whether anybody is to see it. */
bool job_view_is_shown(const struct job_view *view);

/* As if it had never been. Nobody may have it in hand. */
void views_remove(struct views *views, struct job_view *view);

/* A job of which nothing is stored but its records. */
struct job_view *views_add_unknown(struct views *views, uint64_t id);

/* As it is in the core, for any stored state. */
void views_take_job(struct views *views, struct job_view *view, const struct job *job);

/* Hides an ended job of which nobody knows how it ended. */
void views_hide(struct views *views, struct job_view *view);

/* It has changed since the store was last told, or is being told (daemon/engine/snapshotter.h). The changed ones are
 * told of as one, and none is written to for that: a copy of the process shares their memory. */
static inline void job_view_change(struct job_view *view)
{
    view->changed = view->views->taken + 1;
}

static inline bool job_view_is_changed(const struct job_view *view)
{
    return view->changed > view->views->stored;
}

/* Something that is shown of it has changed, other than by a record. Values that only grow with time do not count. */
void views_touch(struct views *views, struct job_view *view);

/* Folds a record that the core has taken. Returns the job's view, or NULL where it concerns none. Without a core, what
 * it knows of the job stays as it is. */
struct job_view *views_fold(struct views *views, const struct core *core, const struct record *record);

/* The ended jobs that are to be forgotten, the oldest first: those that ended before before_ns, and of the others all
 * but `most`; the user with the most loses the oldest. Those that the store does not have yet stay. Owned by the
 * caller. */
uint64_t *views_surplus(const struct views *views, size_t most, int64_t before_ns, size_t *count);

/* The parts that no later start of the job needs: its environment, and its script, which the store has. */
void job_view_forget_inputs(struct job_view *view);

/* The content of its SUBMITTED record; zeroes before that. */
struct record_submitted job_view_wants(const struct job_view *view);

/* Inside view only: both are taken over, by a new one. */
void job_view_take_spec(struct job_view *view, struct job_spec *spec, struct job_estimate *estimate);
void job_view_share_spec(struct job_view *view, const struct job_view *other);

/* The words of its array; false: it is of none. */
bool job_view_array_words(const struct job_view *view, struct array_words *words);

/* Its place in its array. */
struct launch_array job_view_array(const struct job_view *view);

/* A job's number as people write it, "120_7" of one of an array: `text` itself. */
const char *job_number(const struct views *views, uint64_t id, char text[static JOB_NUMBER_TEXT]);

/* Its spec, which borrows everything; without environment and script once it has ended. */
struct job_spec job_view_spec(const struct job_view *view);

/* Of one whose spec came without: the list stays the caller's. */
void job_view_set_environment(struct job_view *view, const struct spec_strings *environment);

/* One that was edited, a copy of it as a whole; taken over. Command, environment and script stay. */
void job_view_set_spec(struct job_view *view, struct job_spec *spec);

/* One that was made later than its submission; taken over. */
void job_view_set_estimate(struct job_view *view, struct job_estimate *estimate);

void job_view_set_wants(struct job_view *view, const struct record_submitted *wants);
void job_view_set_user(struct job_view *view, const char *user);
void job_view_set_message(struct job_view *view, const char *message);

/* As docs/formats/http.md has it; a new reference. `detailed`: with command, directory and output paths, where `access`
 * allows that. */
json_t *job_view_to_json(const struct job_view *view, const struct core *core, int64_t now_ns, enum access_view access,
                         bool detailed);

/* Adds `deadline_at_ns`, the time of its deadline, or null. Only those who see its submission may get it. */
void job_view_add_deadline(const struct job_view *view, json_t *json);

/* GPUs times how long it has run on them, in all its launches. Of one that runs: for as long as it is known to have
 * run. */
int64_t job_view_gpu_ns(const struct job_view *view, int64_t now_ns);

/* By the estimates of the residents of its GPUs now: of the GPU where that is worst. 0: it is on none. */
int32_t job_view_slowdown_permille(const struct job_view *view, const struct core *core);

/* The job's reservation on each GPU, or the one it would get if it were placed now; -1: unknown. */
int64_t job_view_reserved_bytes(const struct job_view *view, const struct core *core, uint32_t *source);

/* How much more than was reserved for it at its start the job was observed to use on one of its GPUs; 0: no more. */
int64_t job_view_over_bytes(const struct job_view *view, const struct core *core);

/* Why it was told to leave its GPUs in its last run, as a clause. Owned by the caller; NULL: it was not. */
char *job_view_moved_why(const struct job_view *view);

/* That it does not use its GPUs and will be ended: likewise; NULL: it was not warned of that. */
char *job_view_idle_why(const struct job_view *view, int64_t now_ns);

char *job_view_last_end(const struct job_view *view, const struct core *core);

/* "8.4 GiB on each GPU: estimated 8.4 GiB by replay (...) from ..."; to others without the estimate, which names files;
 * owned by the caller. */
char *job_view_memory_text(const struct job_view *view, const struct core *core, enum access_view access);

/* Its turn among the jobs that wait, null where it has none; detailed: with its text. The GPUs that are kept for a job,
 * it or another, while it waits; null: none are. */
json_t *job_view_turn_to_json(const struct job_view *view, const struct core *core, int64_t now_ns, bool detailed);
json_t *job_view_kept_to_json(const struct job_view *view, const struct core *core, int64_t now_ns);

json_t *job_view_array_to_json(const struct job_view *view);    /* null of a job that is of none */
json_t *job_view_estimate_to_json(const struct job_view *view); /* with its text; null where nothing was estimated */

/* The user in the way of a job, for the reason's text. */
void reason_name_others(struct reason *reason, const struct views *views);

json_t *reason_to_json(const struct reason *reason, int64_t now_ns); /* null for REASON_NONE */

#endif
