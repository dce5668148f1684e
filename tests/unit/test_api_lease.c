/* Requests for leases: the parts that are understood, and the nonsense that is refused in one line. */
#include "unit.h"

#include "api/lease.h"
#include "api/workload_key.h"

#define KEY "\"engine\":\"slurm\",\"cluster\":\"c\",\"job\":7,\"restart\":0,\"node\":\"n\",\"uid\":1000"

static void workload(const char *command, char key[static RECORD_WORKLOAD_SIZE])
{
    CLEANUP(free_ptr) char *text = xasprintf("{" KEY ",\"command\":\"%s\"}", command);
    CLEANUP(lease_request_release) struct lease_request request;

    assert_int_equal(lease_request_parse(text, strlen(text), &request, NULL), 0);
    workload_key(&request.spec, request.uid, key);
}

TEST(test_request)
{
    static const char text[] =
        "{" KEY ",\"gid\":50,\"name\":\"bert\",\"gpus\":2,\"gpu_memory\":12884901888,\"share\":"
        "\"mps\",\"wait_ms\":10,\"command\":\"#!/bin/bash\\npython a.py\\n\",\"directory\":null}";
    CLEANUP(lease_request_release) struct lease_request request;

    assert_int_equal(lease_request_parse(text, strlen(text), &request, NULL), 0);
    assert_int_equal(request.uid, 1000);
    assert_int_equal(request.gid, 50);
    assert_int_equal(request.wait_ms, 10);
    assert_int_equal(request.spec.gpus, 2);
    assert_int_equal(request.spec.gpu_memory_bytes, 12884901888);
    assert_int_equal(request.spec.slurm_job, 7);
    assert_string_equal(request.spec.script, "#!/bin/bash\npython a.py\n");
    assert_string_equal(request.spec.name, "bert");
}

/* Runs that differ in a seed are of one workload, and another program is not. */
TEST(test_workload)
{
    char one[RECORD_WORKLOAD_SIZE], other[RECORD_WORKLOAD_SIZE];

    workload("python a.py --seed 1", one);
    workload("python  a.py --seed 2", other);
    assert_string_equal(one, other);
    workload("python b.py --seed 1", other);
    assert_string_not_equal(one, other);
}

TEST(test_refused_requests)
{
    static const char *const rows[][2] = {
        {"[]", "the request is not a JSON object"},
        {"{", "the request: not JSON in line 1, byte 1: "},
        {"{" KEY ",\"memory\":1}", "'memory' is not known here"},
        {"{\"engine\":\"slurm\",\"cluster\":\"c\",\"restart\":0,\"node\":\"n\",\"uid\":1}", "job is missing"},
        {"{\"engine\":\"slurm\",\"cluster\":\"c\",\"job\":7,\"restart\":0,\"uid\":1}", "node is missing"},
        {"{\"engine\":\"pbs\",\"cluster\":\"c\",\"job\":7,\"restart\":0,\"node\":\"n\",\"uid\":1}", "engine 'pbs'"},
        {"{" KEY ",\"gpus\":0}", "gpus is not"},
        {"{" KEY ",\"gpus\":65}", "gpus 65 is out of range"},
        {"{" KEY ",\"gpu_memory\":\"12G\"}", "gpu_memory is not"},
        {"{" KEY ",\"wait_ms\":600001}", "wait_ms is not"},
        {"{" KEY ",\"share\":\"turns\"}", "share 'turns'"},
        {"{" KEY ",\"directory\":\"here\"}", "directory 'here'"},
        {"{" KEY ",\"name\":\"a\\u0000b\"}", "the request: not JSON in line 1, byte "},
        {"{" KEY ",\"exclusive\":1}", "exclusive is not true or false"},
    };

    for (size_t i = 0; i < array_size(rows); i++) {
        CLEANUP(lease_request_release) struct lease_request request;
        struct error err = {{0}};
        if (lease_request_parse(rows[i][0], strlen(rows[i][0]), &request, &err) != -EINVAL ||
            strncmp(err.text, rows[i][1], strlen(rows[i][1])) != 0)
            fail_msg("%s: %s", rows[i][0], err.text);
    }
}

TEST(test_attach)
{
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"{\"pids\":[2,3]}", true},
        {"{\"cgroup\":\"/slurm/job_1\",\"pids\":null}", true},
        {"{\"cgroup\":null,\"pids\":[]}", false},
        {"{\"cgroup\":\"/\"}", false}, /* every process of the machine */
        {"{\"cgroup\":\"//\"}", false},
        {"{\"cgroup\":\"slurm\"}", false},
        {"{\"cgroup\":\"/slurm/../..\"}", false},
        {"{\"cgroup\":\"/slurm/..\"}", false}, /* other spellings of carma's own, too */
        {"{\"cgroup\":\"/./carma\"}", false},
        {"{\"cgroup\":\"//carma\"}", false},
        {"{\"cgroup\":\"/carma/\"}", false},
        {"{\"cgroup\":\"/carma/.\"}", false},
        {"{\"cgroup\":\"/..a/.b/c.d\"}", true},
        {"{\"cgroup\":\"/a\\nb\"}", false},
        {"{\"pids\":[1]}", false},
        {"{\"pids\":[\"5\"]}", false},
        {"{\"pids\":5}", false},
        {"{\"pids\":[5],\"teller\":4}", true},
        {"{\"pids\":[5],\"teller\":1}", false},
    };

    for (size_t i = 0; i < array_size(rows); i++) {
        CLEANUP(lease_attach_release) struct lease_attach attach;
        int code = lease_attach_parse(rows[i].text, strlen(rows[i].text), &attach, NULL);
        if ((code == 0) != rows[i].good)
            fail_msg("%s: %d", rows[i].text, code);
    }
    assert_true(lease_step_is_name("0") && lease_step_is_name("batch") && lease_step_is_name("extern"));
    assert_false(lease_step_is_name("") || lease_step_is_name("0x") || lease_step_is_name("12345678901") ||
                 lease_step_is_name("../x"));
}

static const struct {
    const char *text;
    bool good;
} end_rows[] = {
    {"{\"exit_status\":0}", true},
    {"{\"signal\":9,\"stopped\":true,\"output\":null}", true},
    {"{}", false},
    {"{\"exit_status\":1,\"signal\":9}", false},
    {"{\"exit_status\":256}", false},
    {"{\"signal\":0}", false},
    {"{\"exit_status\":1,\"output\":\"12345678\"}", true},
    {"{\"exit_status\":1,\"output\":\"123456789\"}", false},
};

EACH_ROW(TEST, test_end, end_rows)
{
    CLEANUP(lease_end_release) struct lease_end end;
    int code = lease_end_parse(row->text, strlen(row->text), 8, &end, NULL);
    if ((code == 0) != row->good)
        fail_msg("%s: %d", row->text, code);
}
