/* The job's JSON: both ways by the golden file, and any deviation is refused by name. */
#include "unit.h"

#include "api/job_field.h"
#include "api/spec.h"
#include "api/submission_text.h"

#define MINIMAL "\"name\":\"n\",\"command\":[\"true\"],\"directory\":\"/\",\"output\":\"/o\""

static int parse(const char *text, struct job_spec *spec, struct error *err)
{
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

    assert_non_null(json);
    int rc = job_spec_from_json(json, spec, err);
    json_decref(json);
    return rc;
}

static void refuse(const char *text, const char *expected)
{
    struct job_spec spec;
    struct error err = {{0}};

    assert_int_equal(parse(text, &spec, &err), -EINVAL);
    assert_string_equal(err.text, expected);
    assert_null(spec.name); /* nothing is left to release */
}

/* A job that says this, with ' for ", beside what each has to say. */
static void with(const char *member, const char *expected)
{
    CLEANUP(free_ptr) char *text = xasprintf("{" MINIMAL ",%s}", member);

    for (char *at = text; (at = strchr(at, '\''));)
        *at = '"';
    refuse(text, expected);
}

/* The golden file says every field. */
static void fill(struct job_spec *spec)
{
    CLEANUP(free_ptr) char *golden = file_text(CARMA_GOLDEN "/spec.json");

    fail_if(parse(golden, spec, &trouble), trouble);
}

TEST(test_golden)
{
    CLEANUP(job_spec_release) struct job_spec spec;
    CLEANUP(free_ptr) char *line = NULL, *text = NULL;

    fill(&spec);
    for (size_t i = 0; i < job_field_count; i++)
        if (!job_field_is_said(&job_fields[i], &spec))
            fail_msg("tests/golden/spec.json does not say '%s'", job_fields[i].name);
    assert_int_equal(spec.command.count, 3);
    assert_true(spec.recorded_bytes[SPEC_HORUS] == -1 && spec.gpu_memory_bytes == 12 * GIB);
    json_t *json = job_spec_to_json(&spec);
    text = json_dumps(json, JSON_INDENT(2));
    line = xasprintf("%s\n", text);
    expect_file(CARMA_GOLDEN "/spec.json", line);
    json_decref(json);
}

/* As it is stored: all that it says, and nothing else. */
TEST(test_stored)
{
    CLEANUP(job_spec_release) struct job_spec spec, again, least;
    CLEANUP(free_ptr) char *text = NULL, *text_of_least = NULL;

    fill(&spec);
    text = submission_spec_to_text(&spec);
    fail_if(parse(text, &again, &trouble), trouble);
    assert_true(job_spec_equal(&spec, &again));
    fail_if(parse("{" MINIMAL ",\"environment\":[\"A=\\u0001\"]}", &least, &trouble), trouble);
    text_of_least = submission_spec_to_text(&least);
    assert_string_equal(text_of_least, "{" MINIMAL ",\"gpus\":1,\"environment\":[\"A=\\u0001\"]}");
}

TEST(test_defaults)
{
    CLEANUP(job_spec_release) struct job_spec spec;

    fail_if(parse("{" MINIMAL ",\"error\":null,\"gpu_memory_bytes\":null}", &spec, &trouble), trouble);
    assert_int_equal(spec.gpus, 1);
    assert_true(spec.gpu_memory_bytes == -1 && spec.max_slowdown_permille == -1 && spec.mps_threads_percent == -1 &&
                spec.mps_memory_limit_bytes == -1 && spec.cpus == -1 && spec.host_memory_bytes == -1 &&
                spec.batch_size == -1 && spec.recorded_bytes[SPEC_MEASURED] == -1);
    assert_true(spec.time_limit_ns == -1 && spec.signal == 0 && spec.signal_before_ns == -1);
    assert_false(spec.exclusive || spec.held || spec.requeue || spec.no_progress || spec.no_capture);
    assert_null(spec.error);
    assert_null(spec.share);
    assert_null(spec.summary);
    assert_null(spec.script);
}

TEST(test_refused)
{
    refuse("[]", "the job is not a JSON object");
    refuse("{}", "name is missing: give one");
    refuse("{\"name\":\"n\"}", "command is missing: name a program");
    with("'color':1", "unknown member 'color' of the job: remove it or correct its name");
    refuse("{\"a\\u001b[2Jb\":1}", "unknown member 'a?[2Jb' of the job: remove it or correct its name");
    refuse("{\"name\":7}", "name is not a string");
    refuse("{\"name\":\"a\\u0000b\"}", "name holds a NUL character: remove it");
    refuse("{\"name\":\"\","
           "\"command\":[\"x\"]}",
           "name is empty: fill it in or leave it out");
    refuse("{\"name\":\"a\\nb\"}", "name holds the control character 0x0a: remove it");
    refuse("{\"name\":\"n\",\"command\":\"true\"}", "command is not an array of strings");
    refuse("{\"name\":\"n\",\"command\":[]}", "command is missing: name a program");
    refuse("{\"name\":\"n\",\"command\":[\"a\",1]}", "command is not a string");
    refuse("{\"name\":\"n\",\"command\":[\"a\\u0000\"]}", "command holds a NUL character: remove it");
    refuse("{\"name\":\"n\",\"command\":[\"\"],\"directory\":\"/\",\"output\":\"/o\"}",
           "command is empty: name a program");
    refuse("{\"name\":\"n\",\"command\":[\"a\"],\"directory\":\"runs\",\"output\":\"/o\"}",
           "directory 'runs' is a relative path: write it from / on");
    with("'environment':['A=1','B']", "environment entry 2 is not of the form NAME=value: correct or remove it");
    with("'environment':['=1']", "environment entry 1 is not of the form NAME=value: correct or remove it");
    with("'script':'echo'",
         "script: a script begins with '#!' and its interpreter; a job file's name ends in .rad; a program goes after "
         "'--'");
    with("'script':'#!sh'", "script: '#!' needs the whole path of an interpreter, e.g. #!/bin/sh");
    with("'script':'#!/bin/sh\\u0000'", "script holds a NUL character: remove it");
    with("'conda_environment':'--help'", "conda_environment '--help' is not an environment: it begins with -");
    with("'gpus':65", "gpus 65 is out of range: 0 to 64");
    with("'gpus':4294967297", "gpus 4294967297 is out of range: 0 to 64");
    with("'gpus':0,'share':'mps'", "--share is about GPUs, and the job is to have none (--gpus 0): leave one out");
    with("'gpu_type':'>=x'", "gpu_type '>=x': '>=x' compares with no size: write it like >=40G or >=sm_80");
    with("'exclude_gpu':'3-1'", "exclude_gpu: '3-1' is no range: the smaller number goes first");
    with("'exclude_gpu':'0,,1'", "exclude_gpu: '' is no GPU's number: 0-1,3 are three (carma gpus)");
    with("'container':'--help'",
         "container '--help' is no image: name one as docker.io/library/python:3.12, or a .sif file");
    with("'gpus':1.0", "gpus is not a whole number");
    with("'gpu_memory_bytes':0", "gpu_memory_bytes 0 is out of range: 1 to 1125899906842624");
    with("'gpu_memory_bytes':-1", "gpu_memory_bytes -1 is negative: leave it out if it is not known");
    with("'share':'any'", "share 'any' is not known: time-slice or mps; or leave it out");
    with("'share':'mps','exclusive':true", "an exclusive job shares no GPU: leave exclusive or share mps out");
    with("'attach':'pty:80'", "attach 'pty:80' is not known: pipe, or pty:ROWSxCOLUMNS, as pty:24x80");
    with("'time_limit_ns':0", "time_limit_ns 0 is out of range: 1 to 315360000000000000");
    with("'signal':65", "signal 65 is out of range: 0 to 64");
    with("'cpus':0", "cpus 0 is out of range: 1 to 4096");
    with("'host_memory_bytes':1048576", "host_memory_bytes 1048576 is out of range: 16777216 to 1125899906842624");
    with("'signal':10", "signal and signal_before_ns belong together: say both or neither");
    with("'signal':9,'signal_before_ns':1", "signal KILL cannot be caught: choose one that can, such as USR1");
    with("'signal':10,'signal_before_ns':60000000000",
         "a signal before the time limit needs one: say --time, or leave --signal out");
    with("'signal':10,'signal_before_ns':60000000000,'time_limit_ns':60000000000",
         "a signal 1:00 before a time limit of 1:00 would come before the job begins: lengthen --time or shorten "
         "--signal");
    with("'batch_size':0", "batch_size 0 is out of range: 1 to 1099511627776");
    with("'precision':'fp8'", "precision 'fp8' is not known: fp32, tf32, amp or bf16");
    with("'optimizer':'lion'",
         "optimizer 'lion' is not known: sgd, momentum, adam, adamw, adafactor, adamw_fused or adamw_8bit");
    with("'exclusive':1", "exclusive is neither true nor false");
    with("'recorded_bytes':[]", "recorded_bytes is not an object");
    with("'recorded_bytes':{'guess':1}", "unknown member 'guess' of recorded_bytes: remove it or correct its name");
    with("'recorded_bytes':{'horus':0}", "recorded_bytes: horus 0 is out of range: 1 to 1125899906842624");
}

static void refuse_spec(const struct job_spec *spec, const char *expected)
{
    struct error err = {{0}};

    assert_int_equal(job_spec_check(spec, &err), -EINVAL);
    assert_string_equal(err.text, expected);
}

TEST(test_limits)
{
    struct job_spec spec;
    CLEANUP(strbuf_release) struct strbuf text = {0};

    fill(&spec);
    assert_int_equal(job_spec_check(&spec, NULL), 0);

    for (int i = 0; i < SPEC_MAX_NAME; i++)
        strbuf_puts(&text, "x");
    free(spec.name);
    spec.name = xstrdup(text.text);
    assert_int_equal(job_spec_check(&spec, NULL), 0);
    strbuf_puts(&text, "x");
    free(spec.name);
    spec.name = xstrdup(text.text);
    refuse_spec(&spec, "name is too long: 129 bytes, at most 128");
    free(spec.name);
    spec.name = xstrdup("\xff");
    refuse_spec(&spec, "name is not UTF-8 text: convert it");
    free(spec.name);
    spec.name = xstrdup("n");

    spec_strings_add(&spec.environment, "LATIN=\xe9");
    refuse_spec(&spec, "environment entry 3 ('LATIN...') is not UTF-8 text: convert or unset it");
    spec_strings_release(&spec.environment);
    for (int i = 0; i < SPEC_MAX_ENVIRONMENT; i++)
        spec_strings_add(&spec.environment, "A=1");
    assert_int_equal(job_spec_check(&spec, NULL), 0);
    spec_strings_add(&spec.environment, "A=1");
    refuse_spec(&spec, "environment has too many entries: 8193, at most 8192");
    spec_strings_release(&spec.environment);

    while (text.length < SPEC_MAX_TEXT)
        strbuf_puts(&text, "0123456789abcdef");
    spec_strings_add(&spec.command, text.text);
    refuse_spec(&spec, "command is too long: more than 1048576 bytes in all");
    spec_strings_release(&spec.command);
    spec_strings_add(&spec.command, "true");

    /* Each within its own bound, but not all of them together. */
    while (text.length < SPEC_MAX_SUMMARY - 100000)
        strbuf_puts(&text, "0123456789abcdef");
    free(spec.summary);
    spec.summary = xstrdup(text.text);
    assert_int_equal(job_spec_check(&spec, NULL), 0);
    free(spec.capture);
    spec.capture = xstrdup(text.text);
    assert_error(job_spec_check(&spec, &trouble), -EINVAL, "at most 8388608 in all: send a smaller capture");
    job_spec_release(&spec);
    refuse_spec(&spec, "name is missing: give one");
}
