/* The output of carma doctor for its findings, and the child that asks the driver. */
#include "unit.h"

#include "cli/child.h"
#include "cli/doctor/doctor.h"
#include "gpu/driver_facts.h"

static void fill(struct doctor *doctor)
{
    doctor_init(doctor, NULL);
    doctor_find(doctor, "settings", DOCTOR_OK, NULL, "%s", "/etc/carma/carma.conf");
    doctor_find(doctor, "driver", DOCTOR_FAIL,
                "the driver was updated under a running module: reboot, or end the programs that use the GPUs, then "
                "rmmod and modprobe nvidia",
                "NVML (%s) does not start: %s; kernel module %s", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
                "Driver/library version mismatch", "535.183.01");
    doctor_find(doctor, "MPS daemons", DOCTOR_WARN, "end it", "pid 7 (%s)",
                "/tmp/\x1b[2Jm\xe2\x80\xae"
                "ps");
    doctor_find(
        doctor, "state", DOCTOR_OK, NULL, "%s",
        "/srv/a-directory-whose-name-has-no-blank-in-it-and-is-longer-than-what-fits-into-one-line-of-eighty-columns");
    doctor_find(doctor, "disk", DOCTOR_OK, NULL, "%s", "");
    doctor_find(doctor, "service", DOCTOR_SKIP, NULL, "systemd does not run here");
}

static const struct {
    int width;
    const char *golden;
} findings_fit_the_terminal_rows[] = {{80, CARMA_GOLDEN "/cli-doctor-80.txt"},
                                      {120, CARMA_GOLDEN "/cli-doctor-120.txt"}};

EACH_ROW(TEST, findings_fit_the_terminal, findings_fit_the_terminal_rows)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};
    CLEANUP(doctor_release) struct doctor doctor;
    fill(&doctor);
    doctor_format(&doctor, row->width, false, &out);
    for (char *at = out.text, *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        assert_true(end - at <= row->width);
        assert_true(end == at || end[-1] != ' ');
    }
    expect_file(row->golden, out.text);
}

TEST(as_json)
{
    CLEANUP(doctor_release) struct doctor doctor;

    fill(&doctor);
    json_t *all = doctor_json(&doctor);
    CLEANUP(free_ptr) char *text = json_dumps(all, JSON_INDENT(2));
    CLEANUP(free_ptr) char *lines = xasprintf("%s\n", text);
    expect_file(CARMA_GOLDEN "/cli-doctor.json", lines);
    assert_true(json_is_false(json_object_get(all, "ok")));
    json_decref(all);
}

static bool long_enough(void *user, const struct strbuf *out)
{
    return out->length >= *(size_t *)user;
}

static int run(const char *script, int64_t time_ms, size_t *wanted, struct cli_child *answer)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};

    return cli_child_run(argv, -1, time_ms, wanted ? long_enough : NULL, wanted, answer, NULL);
}

TEST(a_child_is_heard_and_not_waited_for)
{
    struct cli_child answer;
    size_t three = 3;

    assert_int_equal(run("echo out; echo err >&2; exit 3", 60000, NULL, &answer), 0);
    assert_string_equal(answer.out.text, "out\n");
    assert_string_equal(answer.errors.text, "err\n");
    assert_false(answer.hung);
    assert_true(WIFEXITED(answer.status) && WEXITSTATUS(answer.status) == 3);
    cli_child_release(&answer);

    /* one that hangs says its lines until then */
    assert_int_equal(run("echo begun; exec sleep 1000", 300, NULL, &answer), 0);
    assert_true(answer.hung);
    assert_string_equal(answer.out.text, "begun\n");
    assert_true(WIFSIGNALED(answer.status) && WTERMSIG(answer.status) == SIGKILL);
    cli_child_release(&answer);

    /* one that goes on is ended as soon as it has said enough */
    assert_int_equal(run("echo abc; exec sleep 1000", 60000, &three, &answer), 0);
    assert_false(answer.hung);
    assert_true(WIFSIGNALED(answer.status));
    cli_child_release(&answer);

    /* its output is bounded */
    assert_int_equal(run("head -c 40000000 /dev/zero; head -c 1000000 /dev/zero >&2", 60000, NULL, &answer), 0);
    assert_true(answer.out.length >= 16 << 20 && answer.out.length < 17 << 20);
    assert_true(answer.errors.length >= 64 << 10 && answer.errors.length < 96 << 10);
    cli_child_release(&answer);
}

TEST(a_program_that_is_not_there)
{
    const char *const argv[] = {"/no/such/program", NULL};
    CLEANUP(cli_child_release) struct cli_child answer;

    assert_true(cli_child_run(argv, -1, 1000, NULL, NULL, &answer, &trouble) < 0);
    assert_non_null(strstr(trouble.text, "/no/such/program cannot be started"));
}

/* A driver's output through carma-monitor is only text. */
TEST(facts_of_a_driver_that_lies)
{
    CLEANUP(free_ptr) char *long_name = xasprintf("gpu 1 name %0200d\n", 7);
    CLEANUP(free_ptr)
    char *text = xasprintf("init 0 all is well\nno-such-fact x\ngpus 99999999999999999999\ngpu 0 asked\ngpu 64 "
                           "asked\ngpu -1 asked\ngpu 1x asked\n"
                           "gpu 99999999999999999999 asked\ngpu\ngpu 3\n\ngpu 0 ecc 12\ngpu 0 failed 15\n%sgpu 2 ecc 7",
                           long_name);
    struct driver_facts facts;

    driver_facts_read(&facts, text);
    assert_int_equal(facts.init, 0);
    assert_string_equal(facts.init_text, "all is well");
    assert_true(facts.gpus == INT64_MAX);
    assert_int_equal(facts.asked, 0);
    assert_int_equal(facts.gpu[0].ecc, 12);
    assert_string_equal(facts.gpu[0].failed, "");
    assert_int_equal(strlen(facts.gpu[1].name), sizeof facts.gpu[1].name - 1);
    assert_int_equal(facts.gpu[2].ecc, -1); /* its line has no end */
    driver_facts_read(&facts, NULL);
    assert_int_equal(facts.init, -1);
}

int main(void)
{
    setenv("LC_ALL", "C", 1);
    return unit_tests_run("tests", NULL, NULL);
}
