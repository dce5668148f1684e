/* Data that jobs have in common is kept once, and each job still has all of its submission. */
#include "unit.h"

#include "api/spec.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/node/node_internal.h"
#include "daemon/view/view_store.h"

/* Lines for the operator, in place of log.c's. None is to come. */
void daemon_log(const char *format, ...)
{
    fail_msg("logged: %s", format);
}

static void make_spec(struct job_spec *spec, const char *seed)
{
    job_spec_init(spec);
    spec->name = xasprintf("sweep-%s", seed);
    spec_strings_add(&spec->command, "train.py");
    spec_strings_add(&spec->command, seed);
    spec_strings_add(&spec->environment, "HOME=/home/ada");
    spec->script = xstrdup("#!/bin/sh\n");
    spec->directory = xstrdup("/home/ada");
    spec->output = xstrdup("/home/ada/%j.out");
}

static struct job_view *add(struct views *views, uint64_t id, struct job_spec *spec, const char *warning)
{
    struct job_estimate estimate;

    job_estimate_init(&estimate);
    if (warning)
        spec_strings_add(&estimate.warnings, warning);
    struct job_view *view = views_add(views, id, spec, &estimate);
    view->state = JOB_HELD;
    views_loaded(views, view);
    return view;
}

static struct job_view *add_like(struct views *views, uint64_t id, const char *seed)
{
    struct job_spec spec;

    make_spec(&spec, seed);
    struct job_view *view = add(views, id, &spec, NULL);
    job_view_set_user(view, "ada");
    return view;
}

static void assert_is_whole(const struct job_view *view, const char *seed)
{
    struct job_spec expected, spec = job_view_spec(view);

    make_spec(&expected, seed);
    assert_true(job_spec_equal(&spec, &expected));
    assert_string_equal(job_view_user(view), "ada");
    job_spec_release(&expected);
}

TEST(test_a_sweep_shares_all_but_what_differs)
{
    struct views views = {0};
    struct job_view *one = add_like(&views, 1, "1"), *two = add_like(&views, 2, "2");
    struct job_view *next = views_add_like(&views, 3, two);

    assert_ptr_equal(one->common, two->common);
    assert_ptr_equal(one->environment, two->environment);
    assert_ptr_equal(one->script, two->script);
    assert_ptr_equal(one->user, two->user);
    assert_ptr_not_equal(one->command, two->command);
    assert_is_whole(one, "1");
    assert_is_whole(two, "2");
    job_view_forget_inputs(one);
    assert_true(job_view_spec(one).environment.count == 0 && !job_view_spec(one).script);
    assert_is_whole(two, "2");
    one->state = JOB_COMPLETED;
    views_remove(&views, one);
    assert_null(views_find(&views, 1));
    assert_is_whole(two, "2");
    two->state = JOB_COMPLETED;
    views_remove(&views, two);
    assert_is_whole(next, "2");
    views_release(&views);
    assert_null(views.texts.chains);
    assert_null(views.specs.all);
    assert_null(views.wants);
}

TEST(test_whatever_differs_is_not_shared)
{
    CLEANUP(views_release) struct views views = {0};
    struct job_view *first = add_like(&views, 1, "1");

    for (uint64_t i = 0; i < 8; i++) {
        struct job_spec spec;
        make_spec(&spec, "1");
        spec.cpus = i == 0 ? 2 : spec.cpus;
        spec.exclusive = i == 1;
        spec.gpus = i == 2 ? 2 : spec.gpus;
        spec.error = i == 3 ? xstrdup("") : NULL;
        spec.recorded_bytes[SPEC_MEASURED] = i == 4 ? 1 : spec.recorded_bytes[SPEC_MEASURED];
        spec.directory[1] = i == 5 ? 'H' : 'h';
        spec.signal = i == 6 ? 1 : spec.signal;
        spec.requeue = i == 7;
        struct job_spec kept = spec;
        struct job_view *view = add(&views, 2 + i, &spec, NULL);
        assert_ptr_not_equal(view->common, first->common);
        assert_true(view->common->spec->cpus == kept.cpus && view->common->spec->gpus == kept.gpus);
        assert_true(view->common->spec->recorded_bytes[SPEC_MEASURED] == kept.recorded_bytes[SPEC_MEASURED]);
        assert_true(!view->common->spec->error == (i != 3));
    }
    assert_is_whole(first, "1");
}

/* What the store has of each user's jobs: less after a job's end, another user's with its record, none without jobs. */
TEST(test_stored_texts_are_counted_by_user)
{
    struct views views = {0};
    struct job_view *one = add_like(&views, 1, "1"), *two = add_like(&views, 2, "2");
    struct record_submitted wants = {.uid = 1000};

    job_view_set_stored(one, 100);
    job_view_set_stored(two, 50);
    job_view_set_wants(one, &wants);
    job_view_set_stored(one, 90);
    assert_int_equal(stored_texts_of(&views, 1000), 90);
    assert_int_equal(stored_texts_of(&views, 0), 50);
    job_view_forget_inputs(one); /* "HOME=/home/ada", */
    job_view_forget_inputs(one);
    assert_int_equal(stored_texts_of(&views, 1000), 90 - 17);
    one->state = JOB_COMPLETED;
    views_remove(&views, one);
    assert_int_equal(stored_texts_of(&views, 1000), 0);
    views_release(&views);
    assert_null(views.on_disk.users);
}

/* What carmad holds for each user: what jobs have in common once, for who brought it, until the last of them goes. */
TEST(test_held_texts_are_counted_by_user)
{
    struct views views = {0};
    struct job_view *one = add_like(&views, 1, "1"), *two = add_like(&views, 2, "2"), *own;
    struct record_submitted wants = {.uid = 1000}, others = {.uid = 1001};

    assert_int_equal(held_texts_of(&views, 0), 0); /* nobody knows whose */
    job_view_set_wants(one, &wants);
    int64_t all = held_texts_of(&views, 1000);
    job_view_set_wants(one, &wants);
    assert_true(all > 0 && held_texts_of(&views, 1000) == all);
    job_view_set_wants(two, &others);
    int64_t more = held_texts_of(&views, 1001); /* its name and command */
    assert_true(more > 0 && more < all);
    job_view_forget_inputs(one);
    assert_int_equal(held_texts_of(&views, 1000), all); /* the other has them still */
    job_view_forget_inputs(two);
    assert_true(held_texts_of(&views, 1000) < all);
    own = add_like(&views, 3, "3");
    job_view_set_wants(own, &others);
    assert_true(held_texts_of(&views, 1001) > more); /* with an environment */
    views_release(&views);
    assert_null(views.texts.held.users);
    assert_null(views.specs.held.users);
}

/* The digest does not look at the estimator's warnings: these two have the same one. */
TEST(test_one_digest_is_not_one_spec)
{
    CLEANUP(views_release) struct views views = {0};
    struct job_view *first = add_like(&views, 1, "1"), *second, *third;
    struct job_spec spec;

    make_spec(&spec, "1");
    second = add(&views, 2, &spec, "its summary is not whole");
    assert_int_equal(first->common->digest, second->common->digest);
    assert_ptr_not_equal(first->common, second->common);
    assert_int_equal(first->common->estimate.warnings.count, 0);
    assert_int_equal(second->common->estimate.warnings.count, 1);
    second->state = JOB_COMPLETED;
    views_remove(&views, second);
    third = add_like(&views, 3, "3"); /* the one that was found by its digest still is */
    assert_ptr_equal(third->common, first->common);
}

/* The members of a run come back; a job that has never run has none. */
TEST(test_a_run_is_stored_where_there_was_one)
{
    CLEANUP(views_release) struct views views = {0};
    struct job_view *view = add_like(&views, 1, "1");

    CLEANUP(free_ptr) char *waits = job_view_to_text(view);
    assert_null(strstr(waits, "victim_of"));
    job_view_run(view)->overuser = 7;
    job_view_run(view)->victim_of = 8;
    job_view_run(view)->fence_bytes = 5;
    view->attempts = 3;
    CLEANUP(free_ptr) char *text = job_view_to_text(view);
    job_view_run(view)->victim_of = view->attempts = 0;
    assert_int_equal(job_view_from_text(view, text, &trouble), 0);
    assert_int_equal(view->attempts, 3);
    assert_int_equal(view->run->victim_of, 8);
    assert_int_equal(view->run->process_limit_bytes, -1);
    CLEANUP(free_ptr) char *told = xasprintf("{\"victim_of\":0,%s", waits + 1); /* as 0.2 stored it */
    assert_int_equal(job_view_from_text(view, told, &trouble), 0);
    assert_ptr_equal(view->run, &view_never_ran);
}

static struct record submission_of(uint64_t job, const char *workload, uint32_t gpus)
{
    struct record record = {
        .type = RECORD_SUBMITTED, .job = job, .submitted = {.uid = 1000, .gpus = gpus, .request_bytes = -1}};

    snprintf(record.submitted.workload, sizeof record.submitted.workload, "%s", workload);
    return record;
}

static struct job_view *add_submitted(struct views *views, uint64_t id, const char *workload, uint32_t gpus)
{
    const struct record record = submission_of(id, workload, gpus);
    struct job_estimate estimate;
    struct job_spec spec;

    job_estimate_init(&estimate);
    make_spec(&spec, "1");
    struct job_view *view = views_add(views, id, &spec, &estimate);
    assert_ptr_equal(views_fold(views, NULL, &record), view);
    return view;
}

TEST(test_what_is_wanted_is_shared_but_the_workload)
{
    struct views views = {0};
    struct job_view *one = add_submitted(&views, 1, "one", 1), *two = add_submitted(&views, 2, "two", 1);
    struct job_view *wide = add_submitted(&views, 3, "two", 2);

    assert_ptr_equal(one->wants, two->wants);
    assert_ptr_not_equal(two->wants, wide->wants);
    assert_int_equal(wide->wants->gpus, 2);
    assert_string_equal(job_view_workload(one), "one");
    assert_string_equal(job_view_wants(two).workload, "two");
    job_view_set_user(two, "ada");
    CLEANUP(free_ptr) char *text = job_view_to_text(two);
    assert_int_equal(job_view_from_text(two, text, &trouble), 0);
    assert_ptr_equal(two->run, &view_never_ran); /* it only waits */
    one->state = JOB_COMPLETED;
    views_remove(&views, one);
    assert_null(views_find(&views, 1));
    assert_true(two->wants->uid == 1000 && two->wants->gpus == 1);
    views_release(&views);
    assert_null(views.wants);
}

/* Eight jobs: those of user 2 are the oldest. */
TEST(test_the_user_with_the_most_ended_ones_loses_the_oldest)
{
    static const struct {
        size_t most;
        int64_t before_ns;
        const char *gone;
    } rows[] = {
        {8, 0, ""},       {5, 0, "3 4 5 "},    {4, 0, "3 4 5 6 "}, {3, 0, "1 3 4 5 6 7 "}, {0, 0, "1 2 3 4 5 6 7 "},
        {8, 4, "1 2 3 "}, {3, 4, "1 2 3 4 5 "}};
    CLEANUP(views_release) struct views views = {0};

    for (uint64_t id = 1; id <= 8; id++) {
        struct job_view *view = add_like(&views, id, "x");
        job_view_set_wants(view, &(struct record_submitted){.uid = id <= 2 ? 2 : 1});
        view->state = JOB_CANCELLED;
        view->ended_ns = (int64_t)id;
        view->changed = id == 8; /* the store does not have it yet */
    }
    for (size_t i = 0; i < array_size(rows); i++) {
        CLEANUP(strbuf_release) struct strbuf gone = {0};
        size_t count;
        CLEANUP(free_ptr) uint64_t *ids = views_surplus(&views, rows[i].most, rows[i].before_ns, &count);

        strbuf_puts(&gone, "");
        for (size_t k = 0; k < count; k++)
            strbuf_printf(&gone, "%d ", (int)ids[k]);
        assert_string_equal(gone.text, rows[i].gone);
    }
}

/* A row of a job may be younger than the snapshot behind which the records are read. */
TEST(test_what_the_store_had_is_not_folded_again)
{
    CLEANUP(views_release) struct views views = {0};
    struct job_view *view = add_submitted(&views, 1, "one", 1), *other = add_submitted(&views, 2, "two", 1);
    const struct record requeued = {.type = RECORD_REQUEUED, .job = 1, .requeued = {.retry = true, .overuser = 2}};

    view->as_of = 6;
    other->as_of = 7;
    for (views.seq = 5; views.seq <= 8; views.seq++) {
        view->state = JOB_CRASHED;
        views_fold(&views, NULL, &requeued);
    }
    assert_int_equal(view->run->retries, 2);
    assert_int_equal(other->run->victims, 1);
}

#define MANY 1000

TEST(test_many_texts_are_found_and_left)
{
    struct common_texts texts = {0};
    struct common_text *kept[MANY];
    char text[16];

    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "%d", i);
        kept[i] = common_texts_join_one(&texts, text);
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "%d", i);
        assert_ptr_equal(common_texts_join_one(&texts, text), kept[i]);
        assert_string_equal(common_text_first(kept[i]), text);
        common_texts_leave(&texts, kept[i]);
    }
    assert_int_equal(texts.count, MANY);
    for (int i = 0; i < MANY; i++)
        common_texts_leave(&texts, kept[i]);
    assert_null(texts.chains);
}

/* A GPU has been read since time 5, the other one not, or it is gone. */
TEST(on_how_many_gpus_processes_of_a_job_are)
{
    static struct node_gpu gpus[] = {{.number = 0, .there = true, .at_ns = 5}, {.number = 1}};
    const struct node node = {.gpus = (struct node_gpu *[]){&gpus[0], &gpus[1]}, .count = 2};
    const struct job_view view = {
        .id = 7, .placement_count = 2, .placements = (struct job_placement[]){{.gpu = 0}, {.gpu = 1}}};
    static const int used[] = {0, -1, 1, 1}; /* in twos: without bytes on the first, with an unknown number */

    for (int i = 0; i < 4; i++) {
        gpus[1].there = i % 2;
        gpus[0].attribution = (struct attribution){.share_count = 1, .shares[0] = {.job = 7, .used_bytes = -(i / 2)}};
        assert_int_equal(node_used_by(&node, &view, 5), used[i]);
    }
}
