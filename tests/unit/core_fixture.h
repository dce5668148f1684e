/* A node of four 40 GiB GPUs on which tests of the core play the driver. */
#ifndef CARMA_TESTS_CORE_FIXTURE_H
#define CARMA_TESTS_CORE_FIXTURE_H

#include "unit.h"

#include "core/core.h"
#include "core/state.h"
#include "core/snapshot.h"

#define GPUS       4
#define TOTAL      (40 * GIB)
#define SECONDS(n) ((int64_t)(n)*NS_PER_SEC)

struct fixture {
    struct core *core;
    struct record_list decisions;
    int64_t now_ns;
    uint64_t last_job;
};

static inline void apply(struct fixture *f, struct record record)
{
    struct error err = {{0}};

    record.at_ns = f->now_ns;
    if (core_apply(f->core, &record, &err) != 0)
        fail_msg("%s does not apply: %s", record_type_name(record.type), err.text);
}

static inline void decide(struct fixture *f)
{
    f->decisions.count = 0;
    core_decide(f->core, f->now_ns, &f->decisions);
}

/* Of the last decisions; NULL: not that. */
static inline const struct record *was_decided(const struct fixture *f, uint32_t type, uint64_t job)
{
    for (size_t i = 0; i < f->decisions.count; i++)
        if (f->decisions.items[i].type == type && f->decisions.items[i].job == job)
            return &f->decisions.items[i];
    return NULL;
}

static inline const struct record *decided(struct fixture *f, uint32_t type, uint64_t job)
{
    decide(f);
    return was_decided(f, type, job);
}

static inline void configure(struct fixture *f, const char *policy, uint32_t view)
{
    struct record record = {.type = RECORD_RECONFIGURED};

    core_config_default(&record.config);
    snprintf(record.config.policy, sizeof record.config.policy, "%s", policy);
    record.config.memory_view = view;
    record.config.decide_period_ns = 0;
    apply(f, record);
}

static inline void reconfigure(struct fixture *f, const struct core_config *config)
{
    struct record record = {.type = RECORD_RECONFIGURED};

    record.config = *config;
    apply(f, record);
}

/* One setting is another from now on. */
#define change(f, setting, value)                                                                                      \
    do {                                                                                                               \
        struct core_config changed = *core_configuration((f)->core);                                                   \
        changed.setting = value;                                                                                       \
        reconfigure(f, &changed);                                                                                      \
    } while (0)

static inline void use_policy(struct fixture *f, const char *policy)
{
    struct core_config config = *core_configuration(f->core);

    snprintf(config.policy, sizeof config.policy, "%s", policy);
    reconfigure(f, &config);
}

/* The policy carma, which is told of no margin, learns, and fences guesses. */
static inline void use_fences(struct fixture *f)
{
    use_policy(f, "carma");
    change(f, margin_bytes, 0);
    change(f, oom_retry, OOM_RETRY_INFORMED);
    change(f, memory_fence, 1);
    change(f, learn, true);
}

/* The others are away. */
static inline void keep_gpus(struct fixture *f, uint32_t count)
{
    for (uint32_t g = count; g < GPUS; g++)
        apply(f, (struct record){.type = RECORD_GPU_LOST, .gpu.gpu = g});
}

static inline void sample(struct fixture *f, uint32_t gpu, int64_t used, int64_t unmanaged, int32_t smact)
{
    struct record record = {.type = RECORD_SAMPLE};

    record.sample = (struct record_sample){gpu, used, unmanaged, smact, -1, -1, false};
    apply(f, record);
}

static inline struct record wants(uint32_t gpus, int64_t reservation)
{
    struct record record = {.type = RECORD_SUBMITTED};

    record.submitted = (struct record_submitted){.gpus = gpus,
                                                 .request_bytes = reservation,
                                                 .request_source = reservation < 0 ? SOURCE_UNKNOWN : SOURCE_DECLARED,
                                                 .smact_permille = -1};
    return record;
}

static inline uint64_t submit_record(struct fixture *f, struct record record)
{
    record.job = ++f->last_job;
    apply(f, record);
    return record.job;
}

static inline uint64_t submit(struct fixture *f, uint32_t gpus, int64_t reservation)
{
    return submit_record(f, wants(gpus, reservation));
}

/* Whether it was taken. */
static inline bool commanded(struct fixture *f, uint32_t command, uint64_t job, uint32_t uid)
{
    struct record record = {.type = RECORD_COMMANDED, .at_ns = f->now_ns, .job = job};

    record.commanded = (struct record_commanded){.command = command, .uid = uid};
    return core_apply(f->core, &record, NULL) == 0;
}

static inline void job_event(struct fixture *f, uint32_t type, uint64_t job)
{
    apply(f, (struct record){.type = type, .job = job});
}

static inline void memory_observed(struct fixture *f, uint64_t job, uint32_t gpu, int64_t bytes)
{
    struct record record = {.type = RECORD_FIRST_USE, .job = job};

    record.memory = (struct record_memory){gpu, bytes};
    apply(f, record);
}

static inline void exits(struct fixture *f, uint64_t job, uint32_t cause, int64_t requested)
{
    struct record record = {.type = RECORD_EXITED, .job = job};

    record.exited = (struct record_exited){cause, cause != EXIT_COMPLETED, requested, -1, -1, RECORD_NO_GPU};
    apply(f, record);
}

/* Where the last decisions put the job: "0", "1,3", or "" when they did not place it. */
static inline const char *placed_on(const struct fixture *f, uint64_t job)
{
    static char text[64];

    text[0] = '\0';
    for (size_t i = 0; i < f->decisions.count; i++) {
        const struct record *record = &f->decisions.items[i];
        if (record->type != RECORD_PLACED || record->job != job)
            continue;
        for (uint32_t k = 0; k < record->placed.count; k++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%u", k ? "," : "", record->placed.gpus[k]);
    }
    return text;
}

/* Decides: the job starts now; returns the memory reserved for it. */
static inline int64_t starts_with(struct fixture *f, uint64_t job)
{
    const struct record *placed = decided(f, RECORD_PLACED, job);

    if (!placed)
        fail_msg("job %d does not start", (int)job);
    return placed->placed.reserved_bytes;
}

/* Decides: the job goes to these GPUs, as placed_on says it. */
#define assert_goes_to(f, job, gpus)                                                                                   \
    do {                                                                                                               \
        decide(f);                                                                                                     \
        assert_string_equal(placed_on(f, job), gpus);                                                                  \
    } while (0)
#define assert_waits(f, job) assert_goes_to(f, job, "")

/* Decides: the job goes somewhere. */
#define assert_starts(f, job)                                                                                          \
    do {                                                                                                               \
        decide(f);                                                                                                     \
        assert_string_not_equal(placed_on(f, job), "");                                                                \
    } while (0)

#define assert_nothing_decided(f)                                                                                      \
    do {                                                                                                               \
        decide(f);                                                                                                     \
        assert_int_equal((f)->decisions.count, 0);                                                                     \
    } while (0)

/* Decides: this first. */
#define assert_decides(f, what)                                                                                        \
    do {                                                                                                               \
        decide(f);                                                                                                     \
        assert_int_equal((f)->decisions.items[0].type, what);                                                          \
    } while (0)

static inline void assert_reason(const struct fixture *f, uint64_t job, const char *expected)
{
    struct reason reason = core_reason(f->core, job, f->now_ns);
    char text[REASON_TEXT];

    assert_string_equal(reason_format(&reason, f->now_ns, text), expected);
}

/* No such job could ever run, for this reason; NULL: it could. */
static inline void assert_never(const struct fixture *f, const struct record_submitted *wants, const char *expected)
{
    struct reason why;
    char text[REASON_TEXT];

    assert_int_equal(core_could_ever_run(f->core, wants, &why), !expected);
    if (expected)
        assert_string_equal(reason_format(&why, 0, text), expected);
}

/* It runs again: ahead of the queue or in turn, after so many crashes of its own, with so much. */
#define assert_requeued(told, does_retry, has_crashed, has_bytes)                                                      \
    do {                                                                                                               \
        const struct record *again = (told);                                                                           \
        assert_non_null(again);                                                                                        \
        assert_int_equal(again->type, RECORD_REQUEUED);                                                                \
        assert_int_equal(again->requeued.retry, does_retry);                                                           \
        assert_int_equal(again->requeued.crashes, has_crashed);                                                        \
        assert_int_equal(again->requeued.reserved_bytes, has_bytes);                                                   \
    } while (0)

/* It does not, though not for want of memory; its state is that of its end. */
#define assert_gave_up(told, ends_as)                                                                                  \
    do {                                                                                                               \
        const struct record *last = (told);                                                                            \
        assert_int_equal(last->type, RECORD_GAVE_UP);                                                                  \
        assert_false(last->gave_up.memory);                                                                            \
        assert_int_equal(job_state_after(JOB_CRASHED, last), ends_as);                                                 \
    } while (0)

static inline int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);

    f->core = core_new();
    f->now_ns = SECONDS(1000);
    configure(f, "magm", MEMORY_RESERVE);
    for (uint32_t i = 0; i < GPUS; i++) {
        struct record record = {.type = RECORD_GPU_BACK};
        record.gpu = (struct record_gpu){.gpu = i, .total_bytes = TOTAL, .share = SHARE_AUTO};
        snprintf(record.gpu.uuid, sizeof record.gpu.uuid, "GPU-%u", i);
        apply(f, record);
        sample(f, i, 0, 0, 0);
    }
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;

    core_free(f->core);
    record_list_release(&f->decisions);
    free(f);
    return 0;
}

/* Gives every GPU one resident with reservation, memory use and SM activity as given, settled. */
static inline void occupy(struct fixture *f, const int64_t used[GPUS], const int32_t smact[GPUS])
{
    for (uint32_t i = 0; i < GPUS; i++) {
        uint64_t job = submit(f, 1, used[i]);
        decide(f);
        assert_string_not_equal(placed_on(f, job), "");
    }
    for (uint32_t i = 0; i < GPUS; i++) {
        memory_observed(f, i + 1, i, used[i]);
        sample(f, i, used[i], 0, smact[i]);
    }
    f->now_ns += SECONDS(31);
}

/* 85% of the published workloads that a GPU of 40 GiB can hold: the request of a job of unknown need. */
#define LIKELY (22 * GIB)

/* One GPU, on which jobs of unknown need start by that guess. */
static inline void share_by_guess(struct fixture *f, uint32_t share, int64_t total)
{
    use_fences(f);
    change(f, shrink_after_ns, SECONDS(300));
    change(f, prior_quantile_permille, 850);
    for (uint32_t g = 0; g < GPUS; g++)
        apply(f, (struct record){.type = RECORD_GPU_BACK, .gpu = {.gpu = g, .total_bytes = total, .share = share}});
    keep_gpus(f, 1);
}

static inline uint64_t submit_of(struct fixture *f, const char *workload, int64_t request)
{
    struct record record = wants(1, request);

    record.submitted.smact_permille = 200; /* so that turns pay */
    snprintf(record.submitted.workload, sizeof record.submitted.workload, "%s", workload);
    return submit_record(f, record);
}

static inline void drop_core(struct core **core) /* for CLEANUP */
{
    core_free(*core);
}

/* Makes a core from a snapshot of this one. The snapshot's records go to `taken`. */
static inline struct core *restored(const struct fixture *f, struct record_list *taken)
{
    struct core *core = core_new();
    CLEANUP(free_ptr) char *before = core_dump(f->core);
    CLEANUP(free_ptr) char *after = NULL;
    struct error err = {{0}};

    core_snapshot(f->core, f->now_ns, taken);
    for (size_t i = 0; i < taken->count; i++)
        fail_if(core_apply(core, &taken->items[i], &err) != 0, err);
    after = core_dump(core);
    assert_string_equal(before, after);
    return core;
}

/* CORE_TEST(name) { ... }: a test with `struct fixture *f`. */
#define CORE_TEST(name) TEST_ON(name, struct fixture *f, setup, teardown)

/* Each row of a table, as `row`, on a core of its own. */
#define CORE_EACH_ROW(name, rows)                                                                                      \
    static void name##_row(struct fixture *f, const __typeof__((rows)[0]) *row);                                       \
    TEST(name)                                                                                                         \
    {                                                                                                                  \
        for (size_t i = 0; i < array_size(rows); i++) {                                                                \
            void *f;                                                                                                   \
            setup(&f);                                                                                                 \
            name##_row(f, &(rows)[i]);                                                                                 \
            teardown(&f);                                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_row(struct fixture *f, const __typeof__((rows)[0]) *row)

/* The same, which `prepare(f)` comes before. */
#define CORE_TEST_AFTER(prepare, name)                                                                                 \
    static int name##_setup(void **state)                                                                              \
    {                                                                                                                  \
        int rc = setup(state);                                                                                         \
        prepare(*state);                                                                                               \
        return rc;                                                                                                     \
    }                                                                                                                  \
    TEST_ON(name, struct fixture *f, name##_setup, teardown)

#endif
