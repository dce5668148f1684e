/* What jobs have in common is kept once, and each job still has all that it was submitted with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/memory.h"
#include "daemon/daemon.h"
#include "daemon/view_store.h"

/* Lines for the operator: main.c's. None is to come. */
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
    struct job_view *view;

    job_estimate_init(&estimate);
    if (warning)
        spec_strings_add(&estimate.warnings, warning);
    view = views_add(views, id, spec, &estimate);
    view->state = JOB_HELD;
    views_loaded(views, view);
    return view;
}

static struct job_view *add_like(struct views *views, uint64_t id, const char *seed)
{
    struct job_spec spec;
    struct job_view *view;

    make_spec(&spec, seed);
    view = add(views, id, &spec, NULL);
    job_view_set_user(view, "ada");
    return view;
}

static void ignore(const struct job_view *view, void *user)
{
    (void)view;
    (void)user;
}

static void assert_is_whole(const struct job_view *view, const char *seed)
{
    struct job_spec expected, spec = job_view_spec(view);

    make_spec(&expected, seed);
    assert_true(job_spec_equal(&spec, &expected));
    assert_string_equal(view->user, "ada");
    job_spec_release(&expected);
}

static void test_a_sweep_shares_all_but_what_differs(void **state)
{
    struct views views = {0};
    struct job_view *one = add_like(&views, 1, "1"), *two = add_like(&views, 2, "2");

    (void)state;
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
    views_forget(&views, 0, INT64_MAX, ignore, NULL);
    assert_null(views_find(&views, 1));
    assert_is_whole(two, "2");
    views_release(&views);
    assert_null(views.texts.all);
    assert_null(views.specs.all);
}

static void test_whatever_differs_is_not_shared(void **state)
{
    struct views views = {0};
    struct job_view *first = add_like(&views, 1, "1");

    (void)state;
    for (uint64_t i = 0; i < 8; i++) {
        struct job_spec spec, kept;
        struct job_view *view;
        make_spec(&spec, "1");
        switch (i) {
        case 0: spec.cpus = 2; break;
        case 1: spec.exclusive = true; break;
        case 2: spec.gpus = 2; break;
        case 3: spec.error = xstrdup(""); break;
        case 4: spec.recorded_bytes[SPEC_MEASURED] = 1; break;
        case 5: spec.directory[1] = 'H'; break;
        case 6: spec.signal = 1; break;
        default: spec.requeue = true; break;
        }
        kept = spec;
        view = add(&views, 2 + i, &spec, NULL);
        assert_ptr_not_equal(view->common, first->common);
        assert_true(view->common->spec.cpus == kept.cpus && view->common->spec.gpus == kept.gpus);
        assert_true(view->common->spec.recorded_bytes[SPEC_MEASURED] == kept.recorded_bytes[SPEC_MEASURED]);
        assert_true(!view->common->spec.error == (i != 3));
    }
    assert_is_whole(first, "1");
    views_release(&views);
}

/* The digest does not look at what the estimator warns of: these two have the same one. */
static void test_one_digest_is_not_one_spec(void **state)
{
    struct views views = {0};
    struct job_view *first = add_like(&views, 1, "1"), *second, *third;
    struct job_spec spec;

    (void)state;
    make_spec(&spec, "1");
    second = add(&views, 2, &spec, "its summary is not whole");
    assert_int_equal(first->common->digest, second->common->digest);
    assert_ptr_not_equal(first->common, second->common);
    assert_int_equal(first->common->estimate.warnings.count, 0);
    assert_int_equal(second->common->estimate.warnings.count, 1);
    second->state = JOB_COMPLETED;
    views_forget(&views, 0, INT64_MAX, ignore, NULL);
    third = add_like(&views, 3, "3"); /* the one that was found by its digest still is */
    assert_ptr_equal(third->common, first->common);
    views_release(&views);
}

/* A job's state that an earlier carma stored names who ran it out of memory at its last end only, and knows no limit but the
 * fence. */
static void test_a_victim_of_an_earlier_carma(void **state)
{
    struct views views = {0};
    struct job_view *view = add_like(&views, 1, "1");
    CLEANUP(free_ptr) char *text = NULL;
    struct error err;
    json_t *json;

    (void)state;
    view->culprit = 7;
    view->victim_of = 8;
    view->fence_bytes = 5;
    text = job_view_to_text(view);
    view->victim_of = 0;
    assert_int_equal(job_view_from_text(view, text, &err), 0);
    assert_int_equal(view->victim_of, 8);
    assert_int_equal(view->process_limit_bytes, -1);
    json = json_loads(text, 0, NULL);
    json_object_del(json, "victim_of");
    json_object_del(json, "process_limit_bytes");
    free(text);
    text = json_dumps(json, 0);
    json_decref(json);
    assert_int_equal(job_view_from_text(view, text, &err), 0);
    assert_int_equal(view->victim_of, 7);
    assert_int_equal(view->process_limit_bytes, 5);
    views_release(&views);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sweep_shares_all_but_what_differs),
        cmocka_unit_test(test_whatever_differs_is_not_shared),
        cmocka_unit_test(test_one_digest_is_not_one_spec),
        cmocka_unit_test(test_a_victim_of_an_earlier_carma),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
