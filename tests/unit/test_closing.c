/* Why GPUs are closed (core/gpus/closed.def): also those on which programs do not start (core/gpus/closing.h), and
 * those that are reserved for users (core/gpus/allotment.h). */

#include "core_fixture.h"
#include "core/gpus/allotment.h"
#include "core/gpus/closing.h"

static uint64_t of_user(struct fixture *f, char workload, char user)
{
    struct record record = wants(1, 4 * GIB);

    record.submitted.uid = (uint32_t)user;
    snprintf(record.submitted.workload, sizeof record.submitted.workload, "%c", workload);
    return submit_record(f, record);
}

static uint64_t begins(struct fixture *f, char user, char workload)
{
    uint64_t job = of_user(f, workload, user);

    decide(f);
    memory_observed(f, job, core_find_job(f->core, job)->placements[0].gpu, GIB);
    return job;
}

static void waits(struct fixture *f, int seconds)
{
    f->now_ns += SECONDS(seconds);
    decide(f);
}

/* The GPU is named as the cause, wherever it ran. */
static uint64_t dies_by(struct fixture *f, uint32_t gpu, char user, char workload, int after_s)
{
    uint64_t job = begins(f, user, workload);
    struct record record = {.type = RECORD_EXITED, .job = job};

    f->now_ns += SECONDS(after_s);
    record.exited = (struct record_exited){
        .cause = EXIT_GPU_ERROR, .requested_bytes = -1, .free_bytes = -1, .used_bytes = -1, .failed_gpu = gpu};
    apply(f, record);
    decide(f);
    return job;
}

static uint64_t dies(struct fixture *f, char user, char workload, int after_s)
{
    return dies_by(f, 0, user, workload, after_s);
}

/* Whether GPU 0 is closed to such a job (or would a dead start of it be taken for the GPU's failure). */
static bool is_closed_to(struct fixture *f, char user, char workload, bool *is_suspect)
{
    uint64_t id = of_user(f, workload, user);
    const struct job *job = core_find_job(f->core, id);
    bool is_closed = closing_is_closed_to(f->core, job, f->core->gpus[0]), goes_there;

    *is_suspect = closing_is_suspect(f->core->gpus[0], job);
    decide(f);
    goes_there = strchr(placed_on(f, id), '0');
    assert_false(is_closed && goes_there);
    exits(f, id, EXIT_FAILED, -1);
    return is_closed;
}

/* "ma": a start of user m's workload a dies, after 5 s or after those behind ':'. "ca+": that run begins on GPU 0 and
 * uses it; "-": it ends. "/30": as many minutes pass. `closed`: to whom of m (who lies), a, b and c in the end;
 * `suspect`: the failure of the last that died is taken for the GPU's. */
CORE_TEST(test_to_whom_dead_starts_close_it)
{
    static const struct {
        const char *steps, *closed;
        bool suspect;
    } rows[] = {
        {"ma mb", "", false},
        {"ma mb mc", "m", true},
        {"ma:60 mb:60 mc:60", "m", true},
        {"ma:61 mb:61 mc:61", "", false}, /* these ran */
        {"ma mb ma mb", "", false},
        {"ma /55 mb /55 mc", "m", true},
        {"ma mb /61 mc", "", false},
        {"ma aa ba", "mabc", true}, /* equal names of workloads: each is its user's */
        {"ma mb aa ab", "", true},
        {"ma mb mc aa ab ac", "ma", true},
        {"ma mb mc aa ab ac ba", "mabc", true},
        /* one who lies, and one who errs */
        {"ma mb mc md me aa", "m", false},
        {"aa ma mb mc md aa", "m", false},
        {"aa ba /55 ma /55 mb", "", false}, /* he keeps theirs alive for no longer */
        /* its time is over */
        {"ma mb mc /29", "m", true},
        {"ma mb mc /31", "", false},
        {"ma mb mc /31 md", "m", true},
        {"ma mb mc /31 mb", "", false},
        {"ma mb mc /20 md /11", "", true},
        {"aa ba ma /29", "mabc", true},
        {"aa ba ma /20 mb /11", "", false},
        {"aa ba ma /31 mb aa mc", "", true},
        {"aa ba ma /31 mb aa ba", "mabc", true},
        /* runs there */
        {"ma aa /1 ca+ /2 ba", "", false},
        {"ma aa ca+ ba", "mabc", true},    /* it may die yet */
        {"ca+ /2 ma aa ba", "mabc", true}, /* it began before programs ceased to start */
        {"ca+ /2 ma aa ba -", "", false},
        {"ma mb mc /1 ca+ /2 aa", "", false},
    };

    change(f, max_retries, 0);
    for (size_t i = 0; i < array_size(rows); i++) {
        char closed[5] = "", last[2] = "";
        uint64_t runs = 0;
        bool suspect = false;
        for (const char *step = rows[i].steps; *step; step += strcspn(step, " "), step += *step == ' ') {
            if (*step == '/') {
                waits(f, 60 * atoi(step + 1));
            } else if (*step == '-') {
                exits(f, runs, EXIT_COMPLETED, -1);
            } else if (step[2] == '+') {
                runs = begins(f, step[0], step[1]);
                assert_string_equal(placed_on(f, runs), "0");
            } else {
                dies(f, step[0], step[1], step[2] == ':' ? atoi(step + 3) : 5);
                memcpy(last, step, sizeof last);
            }
        }
        for (const char *user = "mabc"; *user; user++)
            if (is_closed_to(f, *user, 'z', &suspect))
                strncat(closed, user, 1);
        is_closed_to(f, last[0], last[1], &suspect);
        if (strcmp(closed, rows[i].closed) != 0 || suspect != rows[i].suspect)
            fail_msg("%s: closed to '%s', suspect %d", rows[i].steps, closed, suspect);
        if (strchr(rows[i].steps, '+') && !strchr(rows[i].steps, '-'))
            exits(f, runs, EXIT_COMPLETED, -1);
        apply(f, (struct record){.type = RECORD_GPU_OPENED, .gpu.gpu = 0});
        assert_int_equal(closing_next_ns(f->core->gpus[0]), 0);
        waits(f, 2 * 3600);
    }
}

static void assert_closed_to(const struct fixture *f, uint32_t gpus, const char *expected, const char *what)
{
    char found[64] = "";

    for (uint32_t gpu = 0; gpu < gpus; gpu++) {
        strcat(found, gpu ? " " : "");
        for (const char *user = "mnab"; *user; user++)
            if (closing_until_ns(f->core->gpus[gpu], (uint32_t)*user))
                strncat(found, user, 1);
    }
    if (strcmp(found, expected) != 0)
        fail_msg("%" PRIu32 " GPUs, %s: closed to '%s', not '%s'", gpus, what, found, expected);
}

/* m and n lie of each GPU, and a is broken: by one program tried everywhere, or by one on each GPU. Half of the GPUs
 * stay open to b. `closed`: to whom of m, n, a and b, GPU by GPU; `later`: once b has died on the last. */
CORE_TEST(test_half_of_the_gpus_stay_open)
{
    static const struct {
        uint32_t gpus;
        bool one_program;
        const char *closed, *later, *open;
    } rows[] = {
        {4, true, "mnab   ", "mnab   mnab", "   "},
        {4, false, "mnab mnab mna mna", "mnab mnab mna nab", "   "},
        {2, false, "mnab mna", "mnab nab", " "},
        {1, false, "mna", "nab", ""},
    };

    change(f, max_retries, 0);
    for (size_t i = 0; i < array_size(rows); i++) {
        const char first = (char)('!' + 5 * i); /* of workloads that no row before has */
        keep_gpus(f, rows[i].gpus);
        for (uint32_t gpu = 0; gpu < rows[i].gpus; gpu++) {
            dies_by(f, gpu, 'm', (char)(first + (int)gpu), 5);
            dies_by(f, gpu, 'n', (char)(first + (int)gpu), 5);
            dies_by(f, gpu, 'a', (char)(first + (rows[i].one_program ? 0 : (int)gpu)), 5);
        }
        assert_closed_to(f, rows[i].gpus, rows[i].closed, "at first");
        dies_by(f, rows[i].gpus - 1, 'b', first, 5);
        assert_closed_to(f, rows[i].gpus, rows[i].later, "later");
        waits(f, 31 * 60);
        assert_closed_to(f, rows[i].gpus, rows[i].open, "after half an hour");
        for (uint32_t gpu = 0; gpu < rows[i].gpus; gpu++)
            apply(f, (struct record){.type = RECORD_GPU_OPENED, .gpu.gpu = gpu});
    }
}

/* Who failed there is tried elsewhere; a snapshot has that the GPU is closed. */
CORE_TEST(test_a_retry_goes_elsewhere)
{
    CLEANUP(record_list_release) struct record_list taken = {0};

    keep_gpus(f, 2);
    uint64_t job = dies(f, 'a', 'a', 5);
    assert_string_equal(placed_on(f, job), "1");
    change(f, max_retries, 0);
    dies(f, 'b', 'a', 5);
    dies(f, 'c', 'a', 5);
    dies(f, 'd', 'a', 5);
    assert_int_not_equal(closing_until_ns(f->core->gpus[0], CLOSING_EVERYBODY), 0);
    CLEANUP(drop_core) struct core *core = restored(f, &taken);
    assert_memory_equal(&core->gpus[0]->closing, &f->core->gpus[0]->closing, sizeof core->gpus[0]->closing);
    job = of_user(f, 'a', 'e');
    assert_goes_to(f, job, "1");
}

/* ... but not without end: whether it goes before others or in its place, and if a snapshot comes between. */
CORE_TEST(test_a_retry_comes_back)
{
    static const uint32_t retries_allowed[] = {20, 1, 20}; /* in an hour */

    keep_gpus(f, 2);
    for (size_t i = 0; i < array_size(retries_allowed); i++) {
        struct record holds = wants(1, 4 * GIB);
        CLEANUP(record_list_release) struct record_list taken = {0};

        change(f, per_user.max_retries, retries_allowed[i]);
        uint64_t job = begins(f, 'a', 'x');
        assert_string_equal(placed_on(f, job), "0");
        holds.submitted.exclusive = true;
        uint64_t holder = submit_record(f, holds);
        assert_goes_to(f, holder, "1");
        exits(f, job, EXIT_COMPLETED, -1);
        job = dies(f, 'a', 'a', 5);
        assert_int_equal(core_find_job(f->core, job)->retry, i != 1);
        if (i == 2) {
            struct core *core = restored(f, &taken);
            core_free(f->core);
            f->core = core;
        }
        waits(f, 1);
        if (i != 1) /* at its turn it is looked at anyway */
            assert_int_equal(core_next_wake_ns(f->core, f->now_ns), f->now_ns + CLOSING_NS - SECONDS(1));
        waits(f, 1798);
        assert_string_equal(placed_on(f, job), "");
        waits(f, 1);
        assert_string_equal(placed_on(f, job), "0");
        exits(f, job, EXIT_COMPLETED, -1);
        exits(f, holder, EXIT_COMPLETED, -1);
    }
}

CORE_TEST(test_a_retry_that_needs_all_gpus_takes_them)
{
    uint64_t job = submit(f, GPUS, 4 * GIB);

    assert_goes_to(f, job, "0,1,2,3");
    apply(f, (struct record){
                 .type = RECORD_EXITED,
                 .job = job,
                 .exited = {.cause = EXIT_GPU_ERROR, .requested_bytes = -1, .free_bytes = -1, .used_bytes = -1}});
    assert_goes_to(f, job, "0,1,2,3");
}

/* GPUs 0 and 1, for 'a' and 'b', from 100 s on for 100 s. */
static struct record allotment(const struct fixture *f)
{
    struct record record = {.type = RECORD_GPUS_ALLOTTED, .at_ns = f->now_ns};

    record.allotted = (struct record_allotted){.number = core_next_allotment(f->core),
                                               .from_ns = f->now_ns + SECONDS(100),
                                               .until_ns = f->now_ns + SECONDS(200),
                                               .gpu_count = 2,
                                               .gpus = {0, 1},
                                               .user_count = 2,
                                               .users = {'a', 'b'}};
    return record;
}

/* Nor are others kept from it for a job to which it is closed. */
CORE_TEST(test_a_gpu_that_closes_is_reserved_no_more)
{
    dies(f, 'm', 'a', 5);
    dies(f, 'm', 'b', 5);
    uint64_t last = begins(f, 'm', 'c');
    uint64_t head = of_user(f, 'd', 'm');
    apply(f, (struct record){.type = RECORD_RESERVED, .job = head, .reserved = {.count = 1, .gpus = {0}}});
    apply(f, (struct record){
                 .type = RECORD_EXITED,
                 .job = last,
                 .exited = {.cause = EXIT_GPU_ERROR, .requested_bytes = -1, .free_bytes = -1, .used_bytes = -1}});
    assert_int_equal(f->core->reserved_job, 0);
    apply(f, (struct record){.type = RECORD_RESERVED, .job = head, .reserved = {.count = 1, .gpus = {1}}});
    apply(f, allotment(f)); /* nor for one that may run into the time of others */
    assert_int_equal(f->core->reserved_job, 0);
}

/* "d0": GPU 0 is drained, "r0": no more; "dn", "rn": the node; "l0": it is lost, "b0": back; "b4": one more comes. */
static const struct {
    const char *steps, *open;
} grounds[] = {
    {"d0", "123"},       {"d0 r0", "0123"},     {"d0 d0 r0", "0123"},    {"dn", ""},          {"dn rn", "0123"},
    {"d0 dn rn", "123"}, {"d0 dn r0", ""},      {"dn d0 rn r0", "0123"}, {"d0 l0 r0", "123"}, {"d0 l0 b0", "123"},
    {"dn b4", ""},       {"dn b4 rn", "01234"}, {"d0 b4", "1234"},       {"r0 rn", "0123"},
};

CORE_EACH_ROW(test_each_ground_holds_by_itself, grounds)
{
    char open[GPUS + 2] = "", *end = open;

    for (const char *step = row->steps; *step; step += strcspn(step, " "), step += *step == ' ') {
        uint32_t number = step[1] == 'n' ? RECORD_NO_GPU : (uint32_t)step[1] - '0';
        struct record record = {.type = *step == 'd'   ? RECORD_GPU_DRAINED
                                        : *step == 'r' ? RECORD_GPU_RESUMED
                                        : *step == 'l' ? RECORD_GPU_LOST
                                                       : RECORD_GPU_BACK};
        if (*step == 'd' || *step == 'r')
            record.drained.gpu = number;
        else
            record.gpu = (struct record_gpu){.gpu = number, .uuid = "GPU", .total_bytes = TOTAL};
        apply(f, record);
    }
    for (uint32_t g = 0; g < core_gpu_count(f->core); g++)
        if (gpu_is_open(core_gpu(f->core, g)))
            *end++ = (char)('0' + g);
    if (strcmp(open, row->open) != 0)
        fail_msg("%s: open are '%s', not '%s'", row->steps, open, row->open);
}

static uint64_t of_limit(struct fixture *f, char user, uint32_t gpus, int limit_s)
{
    struct record record = wants(gpus, 30 * GIB);

    record.submitted.uid = (uint32_t)user;
    record.submitted.time_limit_ns = SECONDS(limit_s);
    return submit_record(f, record);
}

#define SOON "GPU 0 will be reserved for user 97 and 1 more in "
#define ENDS ": until then it takes jobs of --time "
static const struct {
    char user;
    int at_s, limit_s;
    uint32_t gpus;
    const char *goes_to, *why;
} allotted[] = {
    {'c', 0, 0, 4, "", SOON "1:40" ENDS "1:40 or less"},
    {'c', 0, 100, 4, "0,1,2,3", NULL},
    {'c', 0, 101, 4, "", SOON "1:40" ENDS "1:40 or less"},
    {'c', 60, 41, 3, "", SOON "0:40" ENDS "0:40 or less"},
    {'c', 60, 40, 3, "0,1,2", NULL},
    {'c', 100, 1, 3, "", "GPU 0 is reserved for user 97 and 1 more for 1:40 more"},
    {'c', 199, 1, 3, "", "GPU 0 is reserved for user 97 and 1 more for 0:01 more"},
    {'c', 200, 0, 4, "0,1,2,3", NULL},
    {'c', 150, 0, 2, "2,3", NULL},
    {'a', 0, 0, 4, "0,1,2,3", NULL},
    {'b', 150, 0, 4, "0,1,2,3", NULL},
};

CORE_EACH_ROW(test_reserved_gpus_are_for_their_users_alone, allotted)
{
    struct record_list taken = {0};
    struct core *core;
    uint64_t job;

    apply(f, allotment(f));
    f->now_ns += SECONDS(row->at_s);
    job = of_limit(f, row->user, row->gpus, row->limit_s);
    assert_goes_to(f, job, row->goes_to);
    if (row->why)
        assert_reason(f, job, row->why);
    core = restored(f, &taken);
    core_free(core);
    record_list_release(&taken);
}

/* The first job in the order of arrival is as if it were not there, as soon as it would end too late. */
CORE_TEST(test_who_waits_for_reserved_gpus_holds_up_nobody)
{
    uint64_t holder = of_limit(f, 'c', 1, 0), head, other;
    int64_t begun_ns;
    int turns;

    change(f, order, ORDER_FIFO);
    change(f, backfill, 1);
    change(f, starvation_timeout_ns, SECONDS(5));
    assert_goes_to(f, holder, "0");
    head = of_limit(f, 'c', 4, 70);
    waits(f, 6);
    assert_int_equal(f->core->reserved_job, head);
    apply(f, allotment(f)); /* begins in 100 s: it may wait for 30 */
    other = of_limit(f, 'd', 2, 0);
    waits(f, 0);
    assert_string_equal(placed_on(f, other), "");
    begun_ns = f->now_ns;
    for (turns = 0; !*placed_on(f, other) && turns < 99; turns++) {
        f->now_ns = core_next_wake_ns(f->core, f->now_ns);
        waits(f, 0);
    }
    assert_string_equal(placed_on(f, other), "2,3");
    assert_int_equal(f->now_ns, begun_ns + SECONDS(30) + 1);
    assert_int_equal(turns, 1 + 30 / 2); /* as what is left has steps of 2 s */
    assert_int_equal(f->core->reserved_job, 0);
    exits(f, holder, EXIT_COMPLETED, -1);
    exits(f, other, EXIT_COMPLETED, -1);
    change(f, backfill, 0);
    other = of_limit(f, 'd', 2, 0);
    assert_goes_to(f, other, "2,3");
    exits(f, other, EXIT_COMPLETED, -1);
    assert_waits(f, head);
    apply(f, (struct record){.type = RECORD_ALLOTMENT_ENDED, .allotment_ended.number = 1});
    assert_goes_to(f, head, "0,1,2,3");
}

static const struct {
    int from_s, until_s;
    uint32_t gpu_count, gpu, user_count, number;
    const char *error;
} no_allotments[] = {
    {150, 250, 2, 3, 1, 2, "GPU 1 is reserved at that time already: 'carma admin unreserve 1' takes that back"},
    {200, 250, 1, 4, 1, 2, "there is no GPU 4: carma gpus lists them"},
    {200, 250, 2, 1, 1, 2, "GPU 1 is named twice"},
    {200, 250, 0, 0, 1, 2, "a reservation has 1 to 64 GPUs, not 0"},
    {200, 250, 1, 0, 0, 2, "a reservation is for 1 to 16 users, not 0"},
    {200, 200, 1, 0, 1, 2, "a reservation lasts at most 366 days, and ends after its beginning"},
    {200, 200 + 367 * 86400, 1, 0, 1, 2, "a reservation lasts at most 366 days, and ends after its beginning"},
    {6 * 366 * 86400, 6 * 366 * 86400 + 1, 1, 0, 1, 2, "a reservation begins within five years from now"},
    {-20, 0, 1, 0, 1, 2, "the reservation would be over already: name a later time"},
    {200, 250, 1, 0, 1, 1, "the next reservation is number 2, not 1"},
    {200, 250, 1, 0, 1, 2, NULL},
};

CORE_EACH_ROW(test_a_reservation_is_possible, no_allotments)
{
    struct record record = allotment(f);
    struct error err = {{0}};

    apply(f, record);
    record.allotted.number = row->number;
    record.allotted.from_ns = f->now_ns + SECONDS(row->from_s);
    record.allotted.until_ns = f->now_ns + SECONDS(row->until_s);
    record.allotted.gpu_count = row->gpu_count;
    record.allotted.gpus[0] = row->gpu;
    record.allotted.user_count = row->user_count;
    assert_int_equal(core_apply(f->core, &record, &err) == 0, !row->error);
    assert_string_equal(err.text, row->error ? row->error : "");
}
