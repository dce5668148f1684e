/* From a submission to its estimate: the file used, messages, refusals; and as JSON. */
#include "unit.h"

#include "api/spec.h"
#include "api/spec_estimate.h"

/* ---- An estimator that repeats the question ---- */

static struct estimate_question asked;
static int answers_rc;
static bool takes_captures = true, lower_bound, exceeds_gpu;

static int answer(const struct estimate_question *question, struct estimate *found, struct error *why)
{
    asked = *question;
    if (answers_rc)
        return error_set(why, -answers_rc, "the answer is no");
    if (question->capture && !takes_captures)
        return error_set(why, ENOTSUP, "needs a summary");
    found->bytes = exceeds_gpu ? 50 * GIB : 5 * GIB;
    found->median_bytes = 4 * GIB;
    found->smact_permille = 620;
    found->confidence_permille = 930;
    found->lower_bound = lower_bound;
    strcpy(found->warning, question->capture ? "a capture" : "a summary");
    return 0;
}

static const struct estimator parrot = {"parrot", "repeats", answer};
static const struct machine_profile machine = {.name = "bench", .memory_bytes = 40 * GIB};

static char *summary_text; /* of ResNet-18 for CIFAR */

/* The submission, which has that summary, and its estimate. */
static struct job_spec spec;
static struct job_estimate made;

static void fill(void)
{
    job_spec_release(&spec);
    job_spec_init(&spec);
    spec.summary = xstrdup(summary_text);
    spec.summary_name = xstrdup("r18.txt");
}

AROUND(setup)
{
    answers_rc = 0;
    takes_captures = true;
    lower_bound = exceeds_gpu = false;
    summary_text = file_text(CARMA_DATA "/summaries/resnet18-32.txt");
    job_estimate_init(&made);
    fill();
}

AROUND(teardown)
{
    free(summary_text);
    job_spec_release(&spec);
    job_estimate_release(&made);
}

#define ESTIMATE_TEST(name) TEST_BETWEEN(name, setup, teardown)

static int make_on(const struct machine_profile *profile)
{
    job_estimate_release(&made);
    return job_estimate_make(&made, &spec, &parrot, profile, 980, &(int64_t){PROGRAM_MAX_EVENTS}, &trouble);
}

static int make(void)
{
    return make_on(&machine);
}

ESTIMATE_TEST(test_nothing_to_go_by)
{
    free_ptr(&spec.summary);
    spec.batch_size = 8;
    assert_int_equal(make(), 0);
    assert_true(made.bytes == -1 && made.smact_permille == -1 && made.warnings.count == 0);
    assert_null(job_estimate_text(&made));
}

ESTIMATE_TEST(test_a_summary)
{
    spec.batch_size = 48;
    spec.optimizer = xstrdup("sgd");
    spec.precision = xstrdup("amp");
    fail_if(make(), trouble);
    assert_true(asked.training.batch_size == 48 && asked.training.optimizer == OPTIMIZER_SGD &&
                asked.training.precision == PRECISION_AMP);
    assert_true(asked.declared_bytes == -1 && asked.fold == -1 && asked.quantile_permille == 980 &&
                asked.history.count == 0);
    assert_ptr_equal(asked.profile, &machine);
    assert_true(made.bytes == 5 * GIB && made.median_bytes == 4 * GIB && made.smact_permille == 620);
    assert_string_equal(made.from, "r18.txt");
    assert_string_equal(made.profile, "bench");
    assert_int_equal(made.warnings.count, 1);
    assert_string_equal(made.warnings.items[0], "a summary");
    CLEANUP(free_ptr) char *text = job_estimate_text(&made);
    assert_string_equal(text, "estimated 5.0 GiB by parrot (confidence 0.93, at quantile 0.98) from r18.txt");

    free_ptr(&spec.optimizer);
    free_ptr(&spec.precision);
    assert_int_equal(make(), 0);
    assert_true(asked.training.optimizer == OPTIMIZER_ADAM && asked.training.precision == PRECISION_FP32);
}

ESTIMATE_TEST(test_no_batch_size)
{
    assert_int_equal(make(), 0);
    assert_true(made.bytes == -1);
    assert_null(made.source);
    assert_int_equal(made.warnings.count, 1);
    assert_string_equal(made.warnings.items[0], "r18.txt: no batch size, so nothing is estimated: give --batch-size");
}

/* Nor is a summary that disagrees with its own total a reason to refuse the job. */
ESTIMATE_TEST(test_total_that_disagrees)
{
    strstr(spec.summary, "Total params: 11,")[15] = '2';
    assert_int_equal(make(), 0);
    assert_true(made.bytes == -1 && made.warnings.count == 1);
    assert_string_equal(made.warnings.items[0],
                        "nothing is estimated by the summary: r18.txt:91: the totals contradict each other: 12227812 "
                        "params are not 11227812 trainable and 0 others");
}

/* A missing input is reported and not a reason to refuse; a wrong one is refused. */
ESTIMATE_TEST(test_no_answer)
{
    spec.batch_size = 8;
    answers_rc = -ENOTSUP;
    assert_int_equal(make(), 0);
    assert_true(made.bytes == -1 && made.warnings.count == 1);
    assert_string_equal(made.warnings.items[0], "the answer is no");
    answers_rc = -EINVAL;
    assert_int_equal(make(), -EINVAL);
    assert_string_equal(trouble.text, "the answer is no");
    answers_rc = 0;
    summary_text[1000] = '\0';
    fill();
    spec.batch_size = 8;
    assert_int_equal(make(), -EINVAL);
    assert_memory_equal(trouble.text, "r18.txt:", 8);
    assert_null(strchr(trouble.text, '\n'));
}

/* A figure that is known to be too low places no job; but it tells that a GPU, or the declared figure, is too small. */
ESTIMATE_TEST(test_a_lower_bound)
{
    spec.batch_size = 8;
    lower_bound = true;
    assert_int_equal(make(), 0);
    assert_true(made.bytes == -1 && made.warnings.count == 1);
    assert_string_equal(made.warnings.items[0], "r18.txt: no output shapes, so nothing is estimated: print a "
                                                "summary with them, or give a capture");
    spec.gpu_memory_bytes = 3 * GIB;
    assert_int_equal(make(), 0);
    assert_true(made.bytes == 5 * GIB);
    spec.gpu_memory_bytes = -1;
    exceeds_gpu = true;
    assert_int_equal(make(), 0);
    assert_true(made.bytes == 50 * GIB);
}

/* A recording by carma.capture of a small network: Adam, fp32, batch 16, for any other too. */
static void take_capture(void)
{
    spec.capture = file_text(CARMA_FAKES "/mlp.capture");
    spec.capture_name = xstrdup("mlp.capture");
}

ESTIMATE_TEST(test_a_capture)
{
    take_capture();
    fail_if(make(), trouble);
    assert_string_equal(made.from, "mlp.capture");
    assert_null(asked.layers);
    assert_true(asked.training.batch_size == 16 && asked.training.optimizer == OPTIMIZER_ADAM);
    assert_int_equal(made.warnings.count, 2); /* and why the summary gives none: it does not say its batch size */
    assert_string_equal(made.warnings.items[1], "a capture");

    /* Another batch size and optimizer are the job's to choose; the precision it was recorded with is not. */
    spec.batch_size = 64;
    spec.optimizer = xstrdup("sgd");
    spec.precision = xstrdup("amp");
    free_ptr(&spec.summary);
    assert_int_equal(make(), 0);
    assert_true(asked.training.batch_size == 64 && asked.training.optimizer == OPTIMIZER_SGD &&
                asked.training.precision == PRECISION_FP32);
    assert_int_equal(made.warnings.count, 2);
    assert_string_equal(made.warnings.items[0],
                        "the capture was recorded with fp32: the job's precision amp changes nothing");

    /* Adafactor's states depend on shapes that a capture does not have. */
    free(spec.optimizer);
    spec.optimizer = xstrdup("adafactor");
    assert_int_equal(make(), 0);
    assert_int_equal(asked.training.optimizer, OPTIMIZER_ADAM);
    assert_string_equal(made.warnings.items[0],
                        "the capture was recorded with adam: the job's optimizer adafactor changes nothing");
    free(spec.optimizer);
    spec.optimizer = xstrdup("sgd");

    spec.summary = xstrdup(summary_text);
    takes_captures = false;
    assert_int_equal(make(), 0);
    assert_string_equal(made.from, "r18.txt");
    assert_true(asked.layers && !asked.capture && asked.training.optimizer == OPTIMIZER_SGD);
    assert_int_equal(made.warnings.count, 2);
    assert_string_equal(made.warnings.items[0], "needs a summary"); /* why the better source failed */
    assert_string_equal(made.warnings.items[1], "a summary");

    strcpy(strstr(spec.capture, "\nend"), "\n");
    takes_captures = true;
    assert_int_equal(make(), -EINVAL);
    assert_memory_equal(trouble.text, "mlp.capture:", 12);
}

/* Both count where neither is known to be the better one; a summary that cannot be read does not cost the capture. */
ESTIMATE_TEST(test_two_inputs)
{
    take_capture();
    spec.batch_size = 64;
    assert_int_equal(make(), 0);
    assert_string_equal(made.from, "mlp.capture, r18.txt");
    assert_string_equal(made.source, "parrot");
    assert_true(made.median_bytes > 4 * GIB - MIB && made.median_bytes < 4 * GIB + MIB);
    assert_true(made.bytes > 5 * GIB - MIB && made.bytes < 5 * GIB + MIB);
    assert_int_equal(made.warnings.count, 2);
    strcpy(spec.summary, "no summary");
    assert_int_equal(make(), 0);
    assert_string_equal(made.from, "mlp.capture");
    assert_int_equal(made.bytes, 5 * GIB);
    assert_int_equal(made.warnings.count, 2);
    assert_memory_equal(made.warnings.items[0], "r18.txt:", 8);
}

ESTIMATE_TEST(test_more_than_the_gpu_has)
{
    static const struct machine_profile small = {.name = "small", .memory_bytes = 2 * GIB};

    spec.batch_size = 8;
    assert_int_equal(make_on(&small), 0);
    assert_int_equal(made.warnings.count, 2);
    assert_string_equal(made.warnings.items[1],
                        "the estimate of 5.0 GiB is more than a GPU has (2.0 GiB): the job is given a whole one");
}

ESTIMATE_TEST(test_json)
{
    struct job_estimate known = {.bytes = 5,
                                 .median_bytes = 4,
                                 .quantile_permille = 980,
                                 .confidence_permille = 875,
                                 .smact_permille = 620,
                                 .uncorrected_permille = 700,
                                 .model = (char *)"cnn 102228128",
                                 .source = (char *)"replay",
                                 .from = (char *)"a.txt",
                                 .profile = (char *)"p"};
    struct job_estimate again;

    spec_strings_add(&known.warnings, "one");
    spec_strings_add(&known.warnings, "two");
    json_t *json = job_estimate_to_json(&known);
    char *text = json_dumps(json, JSON_INDENT(2));
    CLEANUP(free_ptr) char *line = xasprintf("%s\n", text);
    expect_file(CARMA_GOLDEN "/spec-estimate.json", line);
    free(text);
    fail_if(job_estimate_from_json(json, &again, &trouble), trouble);
    json_t *json_again = job_estimate_to_json(&again);
    assert_true(json_equal(json, json_again));
    text = job_estimate_text(&again);
    assert_string_equal(text, "estimated 5 B by replay (confidence 0.875, at quantile 0.98) from a.txt");
    free(text);
    job_estimate_release(&again);
    json_decref(json_again);
    json_object_del(json, "model"); /* as an earlier carma stored it */
    json_object_del(json, "uncorrected_sm_activity_permille");
    json_object_set_new(json, "step", json_null()); /* and as 0.2 did */
    assert_int_equal(job_estimate_from_json(json, &again, &trouble), 0);
    assert_null(again.model);
    assert_int_equal(again.uncorrected_permille, -1);
    job_estimate_release(&again);
    json_object_set_new(json, "colour", json_true());
    assert_int_equal(job_estimate_from_json(json, &again, &trouble), -EINVAL);
    json_decref(json);
    spec_strings_release(&known.warnings);

    job_estimate_init(&again); /* nothing known */
    json = job_estimate_to_json(&again);
    assert_int_equal(job_estimate_from_json(json, &again, &trouble), 0);
    assert_true(again.bytes == -1 && again.median_bytes == -1 && again.smact_permille == -1 && !again.source);
    json_decref(json);
    job_estimate_release(&again);
}
