/* From a submission to its estimate: the file used, messages, refusals; and as JSON. */
#include "unit.h"

#include "api/spec.h"
#include "api/spec_estimate.h"
#include "base/file.h"
#include "base/units.h"

/* ---- An estimator that repeats the question ---- */

static struct estimate_question asked;
static int answers_rc;
static bool takes_captures = true, lower_bound, exceeds_gpu;

static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    asked = *question;
    if (answers_rc)
        return error_set(err, -answers_rc, "the answer is no");
    if (question->capture && !takes_captures)
        return error_set(err, ENOTSUP, "needs a summary");
    estimate->bytes = exceeds_gpu ? 50 * GIB : 5 * GIB;
    estimate->median_bytes = 4 * GIB;
    estimate->smact_permille = 620;
    estimate->confidence_permille = 930;
    estimate->lower_bound = lower_bound;
    strcpy(estimate->warning, question->capture ? "a capture" : "a summary");
    return 0;
}

static const struct estimator parrot = {"parrot", "repeats", answer};
static const struct machine_profile machine = {.name = "bench", .memory_bytes = 40 * GIB};

static char *summary_text; /* of ResNet-18 for CIFAR */

static int setup(void **state)
{
    size_t length;

    (void)state;
    answers_rc = 0;
    takes_captures = true;
    lower_bound = exceeds_gpu = false;
    return file_read(CARMA_DATA "/summaries/resnet18-32.txt", 1 << 20, &summary_text, &length, NULL);
}

static int teardown(void **state)
{
    (void)state;
    free(summary_text);
    return 0;
}

static void fill(struct job_spec *spec, bool summary)
{
    job_spec_init(spec);
    if (summary) {
        spec->summary = xstrdup(summary_text);
        spec->summary_name = xstrdup("r18.txt");
    }
}

static int make(struct job_estimate *estimate, const struct job_spec *spec, struct error *err)
{
    return job_estimate_make(estimate, spec, &parrot, &machine, 980, &(int64_t){PROGRAM_MAX_EVENTS}, err);
}

TEST_BETWEEN(test_nothing_to_go_by, setup, teardown)
{
    CLEANUP(job_estimate_release) struct job_estimate estimate;
    struct job_spec spec;

    fill(&spec, false);
    spec.batch_size = 8;
    assert_int_equal(make(&estimate, &spec, NULL), 0);
    assert_true(estimate.bytes == -1 && estimate.smact_permille == -1 && estimate.warnings.count == 0);
    assert_null(job_estimate_text(&estimate));
}

TEST_BETWEEN(test_a_summary, setup, teardown)
{
    struct job_estimate estimate;
    CLEANUP(job_spec_release) struct job_spec spec;
    struct error err;
    char *text;

    fill(&spec, true);
    spec.batch_size = 48;
    spec.optimizer = xstrdup("sgd");
    spec.precision = xstrdup("amp");
    fail_if(make(&estimate, &spec, &err), err);
    assert_true(asked.training.batch_size == 48 && asked.training.optimizer == OPTIMIZER_SGD &&
                asked.training.precision == PRECISION_AMP);
    assert_true(asked.declared_bytes == -1 && asked.fold == -1 && asked.quantile_permille == 980 &&
                asked.history.count == 0);
    assert_ptr_equal(asked.profile, &machine);
    assert_true(estimate.bytes == 5 * GIB && estimate.median_bytes == 4 * GIB && estimate.smact_permille == 620);
    assert_string_equal(estimate.from, "r18.txt");
    assert_string_equal(estimate.profile, "bench");
    assert_int_equal(estimate.warnings.count, 1);
    assert_string_equal(estimate.warnings.items[0], "a summary");
    text = job_estimate_text(&estimate);
    assert_string_equal(text, "estimated 5.0 GiB by parrot (confidence 0.93, at quantile 0.98) from r18.txt");
    free(text);
    job_estimate_release(&estimate);

    free_ptr(&spec.optimizer);
    free_ptr(&spec.precision);
    assert_int_equal(make(&estimate, &spec, NULL), 0);
    assert_true(asked.training.optimizer == OPTIMIZER_ADAM && asked.training.precision == PRECISION_FP32);
    job_estimate_release(&estimate);
}

TEST_BETWEEN(test_no_batch_size, setup, teardown)
{
    CLEANUP(job_estimate_release) struct job_estimate estimate;
    CLEANUP(job_spec_release) struct job_spec spec;

    fill(&spec, true);
    assert_int_equal(make(&estimate, &spec, NULL), 0);
    assert_true(estimate.bytes == -1);
    assert_null(estimate.source);
    assert_int_equal(estimate.warnings.count, 1);
    assert_string_equal(estimate.warnings.items[0],
                        "r18.txt: no batch size, so nothing is estimated: give --batch-size");
}

/* Nor is a summary that disagrees with its own total a reason to refuse the job. */
TEST_BETWEEN(test_total_that_disagrees, setup, teardown)
{
    CLEANUP(job_estimate_release) struct job_estimate estimate;
    CLEANUP(job_spec_release) struct job_spec spec;

    fill(&spec, true);
    strstr(spec.summary, "Total params: 11,")[15] = '2';
    assert_int_equal(make(&estimate, &spec, NULL), 0);
    assert_true(estimate.bytes == -1 && estimate.warnings.count == 1);
    assert_string_equal(estimate.warnings.items[0],
                        "nothing is estimated by the summary: r18.txt:91: the totals contradict each other: 12227812 "
                        "params are not 11227812 trainable and 0 others");
}

/* A missing input is reported and not a reason to refuse; a wrong one is refused. */
TEST_BETWEEN(test_no_answer, setup, teardown)
{
    struct job_estimate estimate;
    struct job_spec spec;
    struct error err;

    fill(&spec, true);
    spec.batch_size = 8;
    answers_rc = -ENOTSUP;
    assert_int_equal(make(&estimate, &spec, &err), 0);
    assert_true(estimate.bytes == -1 && estimate.warnings.count == 1);
    assert_string_equal(estimate.warnings.items[0], "the answer is no");
    job_estimate_release(&estimate);
    answers_rc = -EINVAL;
    assert_int_equal(make(&estimate, &spec, &err), -EINVAL);
    assert_string_equal(err.text, "the answer is no");
    answers_rc = 0;
    summary_text[1000] = '\0';
    job_spec_release(&spec);
    fill(&spec, true);
    spec.batch_size = 8;
    assert_int_equal(make(&estimate, &spec, &err), -EINVAL);
    assert_memory_equal(err.text, "r18.txt:", 8);
    assert_null(strchr(err.text, '\n'));
    job_spec_release(&spec);
}

/* A figure that is known to be too low places no job; but it tells that a GPU, or the declared figure, is too small. */
TEST_BETWEEN(test_a_lower_bound, setup, teardown)
{
    struct job_estimate estimate;
    CLEANUP(job_spec_release) struct job_spec spec;

    fill(&spec, true);
    spec.batch_size = 8;
    lower_bound = true;
    assert_int_equal(make(&estimate, &spec, NULL), 0);
    assert_true(estimate.bytes == -1 && estimate.warnings.count == 1);
    assert_string_equal(estimate.warnings.items[0], "r18.txt: no output shapes, so nothing is estimated: print a "
                                                    "summary with them, or give a capture");
    job_estimate_release(&estimate);
    spec.gpu_memory_bytes = 3 * GIB;
    assert_int_equal(make(&estimate, &spec, NULL), 0);
    assert_true(estimate.bytes == 5 * GIB);
    job_estimate_release(&estimate);
    spec.gpu_memory_bytes = -1;
    exceeds_gpu = true;
    assert_int_equal(make(&estimate, &spec, NULL), 0);
    assert_true(estimate.bytes == 50 * GIB);
    job_estimate_release(&estimate);
}

/* A recording by carma.capture of a small network: Adam, fp32, batch 16, for any other too. */
static void take_capture(struct job_spec *spec)
{
    size_t length;

    assert_int_equal(file_read(CARMA_FAKES "/mlp.capture", 1 << 20, &spec->capture, &length, NULL), 0);
    spec->capture_name = xstrdup("mlp.capture");
}

TEST_BETWEEN(test_a_capture, setup, teardown)
{
    struct job_estimate estimate;
    CLEANUP(job_spec_release) struct job_spec spec;
    struct error err;

    fill(&spec, true);
    take_capture(&spec);
    fail_if(make(&estimate, &spec, &err), err);
    assert_string_equal(estimate.from, "mlp.capture");
    assert_null(asked.layers);
    assert_true(asked.training.batch_size == 16 && asked.training.optimizer == OPTIMIZER_ADAM);
    assert_int_equal(estimate.warnings.count, 2); /* and why the summary gives none: it does not say its batch size */
    assert_string_equal(estimate.warnings.items[1], "a capture");
    job_estimate_release(&estimate);

    /* Another batch size and optimizer are the job's to choose; the precision it was recorded with is not. */
    spec.batch_size = 64;
    spec.optimizer = xstrdup("sgd");
    spec.precision = xstrdup("amp");
    free_ptr(&spec.summary);
    assert_int_equal(make(&estimate, &spec, NULL), 0);
    assert_true(asked.training.batch_size == 64 && asked.training.optimizer == OPTIMIZER_SGD &&
                asked.training.precision == PRECISION_FP32);
    assert_int_equal(estimate.warnings.count, 2);
    assert_string_equal(estimate.warnings.items[0],
                        "the capture was recorded with fp32: the job's precision amp changes nothing");
    job_estimate_release(&estimate);

    /* Adafactor's states depend on shapes that a capture does not have. */
    free(spec.optimizer);
    spec.optimizer = xstrdup("adafactor");
    assert_int_equal(make(&estimate, &spec, NULL), 0);
    assert_int_equal(asked.training.optimizer, OPTIMIZER_ADAM);
    assert_string_equal(estimate.warnings.items[0],
                        "the capture was recorded with adam: the job's optimizer adafactor changes nothing");
    job_estimate_release(&estimate);
    free(spec.optimizer);
    spec.optimizer = xstrdup("sgd");

    spec.summary = xstrdup(summary_text);
    takes_captures = false;
    assert_int_equal(make(&estimate, &spec, NULL), 0);
    assert_string_equal(estimate.from, "r18.txt");
    assert_true(asked.layers && !asked.capture && asked.training.optimizer == OPTIMIZER_SGD);
    assert_int_equal(estimate.warnings.count, 2);
    assert_string_equal(estimate.warnings.items[0], "needs a summary"); /* why the better source failed */
    assert_string_equal(estimate.warnings.items[1], "a summary");
    job_estimate_release(&estimate);

    strcpy(strstr(spec.capture, "\nend"), "\n");
    takes_captures = true;
    assert_int_equal(make(&estimate, &spec, &err), -EINVAL);
    assert_memory_equal(err.text, "mlp.capture:", 12);
}

/* Both count where neither is known to be the better one; a summary that cannot be read does not cost the capture. */
TEST_BETWEEN(test_two_inputs, setup, teardown)
{
    struct job_estimate estimate;
    CLEANUP(job_spec_release) struct job_spec spec;

    fill(&spec, true);
    take_capture(&spec);
    spec.batch_size = 64;
    assert_int_equal(make(&estimate, &spec, NULL), 0);
    assert_string_equal(estimate.from, "mlp.capture, r18.txt");
    assert_string_equal(estimate.source, "parrot");
    assert_true(estimate.median_bytes > 4 * GIB - MIB && estimate.median_bytes < 4 * GIB + MIB);
    assert_true(estimate.bytes > 5 * GIB - MIB && estimate.bytes < 5 * GIB + MIB);
    assert_int_equal(estimate.warnings.count, 2);
    job_estimate_release(&estimate);
    strcpy(spec.summary, "no summary");
    assert_int_equal(make(&estimate, &spec, NULL), 0);
    assert_string_equal(estimate.from, "mlp.capture");
    assert_int_equal(estimate.bytes, 5 * GIB);
    assert_int_equal(estimate.warnings.count, 2);
    assert_memory_equal(estimate.warnings.items[0], "r18.txt:", 8);
    job_estimate_release(&estimate);
}

TEST_BETWEEN(test_more_than_the_gpu_has, setup, teardown)
{
    static const struct machine_profile small = {.name = "small", .memory_bytes = 2 * GIB};
    CLEANUP(job_estimate_release) struct job_estimate estimate;
    CLEANUP(job_spec_release) struct job_spec spec;

    fill(&spec, true);
    spec.batch_size = 8;
    assert_int_equal(job_estimate_make(&estimate, &spec, &parrot, &small, 980, &(int64_t){PROGRAM_MAX_EVENTS}, NULL),
                     0);
    assert_int_equal(estimate.warnings.count, 2);
    assert_string_equal(estimate.warnings.items[1],
                        "the estimate of 5.0 GiB is more than a GPU has (2.0 GiB): the job is given a whole one");
}

TEST_BETWEEN(test_json, setup, teardown)
{
    struct job_estimate estimate = {.bytes = 5,
                                    .median_bytes = 4,
                                    .quantile_permille = 980,
                                    .confidence_permille = 875,
                                    .smact_permille = 620,
                                    .uncorrected_permille = 700,
                                    .model = (char *)"cnn 102228128",
                                    .step = {.known = true,
                                             .step_ns = {.low = 1, .median = 2, .high = 3},
                                             .smact_permille = {.low = 4, .median = 5, .high = 6},
                                             .dram_permille = {.low = 7, .median = 8, .high = 9}},
                                    .source = (char *)"replay",
                                    .from = (char *)"a.txt",
                                    .profile = (char *)"p"};
    struct job_estimate again;
    struct error err;
    json_t *json, *json_again;
    char *text, *golden;
    size_t length;

    spec_strings_add(&estimate.warnings, "one");
    spec_strings_add(&estimate.warnings, "two");
    json = job_estimate_to_json(&estimate);
    text = json_dumps(json, JSON_INDENT(2));
    assert_int_equal(file_read(CARMA_GOLDEN "/spec-estimate.json", 1 << 20, &golden, &length, NULL), 0);
    golden[length - 1] = '\0'; /* the file ends its last line */
    assert_string_equal(text, golden);
    free(text);
    free(golden);
    fail_if(job_estimate_from_json(json, &again, &err), err);
    json_again = job_estimate_to_json(&again);
    assert_true(json_equal(json, json_again));
    text = job_estimate_text(&again);
    assert_string_equal(text, "estimated 5 B by replay (confidence 0.875, at quantile 0.98) from a.txt");
    free(text);
    job_estimate_release(&again);
    json_decref(json_again);
    json_object_del(json, "model"); /* as an earlier carma stored it */
    json_object_del(json, "uncorrected_sm_activity_permille");
    json_object_del(json, "step");
    assert_int_equal(job_estimate_from_json(json, &again, &err), 0);
    assert_null(again.model);
    assert_false(again.step.known);
    assert_int_equal(again.uncorrected_permille, -1);
    job_estimate_release(&again);
    json_object_set_new(json, "colour", json_true());
    assert_int_equal(job_estimate_from_json(json, &again, &err), -EINVAL);
    json_decref(json);
    spec_strings_release(&estimate.warnings);

    job_estimate_init(&again); /* nothing known */
    json = job_estimate_to_json(&again);
    assert_int_equal(job_estimate_from_json(json, &again, &err), 0);
    assert_true(again.bytes == -1 && again.median_bytes == -1 && again.smact_permille == -1 && !again.source);
    json_decref(json);
    job_estimate_release(&again);
}

RUN_TESTS(NULL, NULL)
