#include "cli/attach/submit_one.h"

#include <inttypes.h>

#include "api/job_field.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/job/doubts.h"
#include "cli/job/submit.h"
#include "cli/session.h"
#include "cli/show/answer.h"
#include "client/client.h"

const struct argp_option submit_one_options[] = {
#define FIELD(type, member, ...)
#define OPTION(type, member, least, most, option, letter, argument, group, help, ...)                                  \
    {option, SUBMIT_KEY(letter, member), argument, 0, help, JOB_FIELD_##group},
#include "api/job_fields.def"
    {0},
};

static void tell_submitted(uint64_t id, const char *name, const json_t *job)
{
    json_t *warning;
    size_t i;

    json_array_foreach (json_object_get(job, "warnings"), i, warning)
        cli_fail("warning: %s", json_string_value(warning));
    json_array_foreach (json_object_get(json_object_get(job, "estimate"), "warnings"), i, warning)
        cli_fail("warning: %s", json_string_value(warning));
    cli_fail("job %" PRIu64 " (%s)", id, name);
}

uint64_t submit_one(struct cli *cli, const struct job_spec *spec, int *status)
{
    CLEANUP(json_release) json_t *request = NULL;
    CLEANUP(json_release) json_t *reply = NULL;
    char request_id[CLIENT_REQUEST_ID_TEXT];
    const json_t *job;
    struct error err;
    uint64_t id;
    int rc;

    doubts_tell(spec);
    client_request_id(request_id);
    request = json_pack("{s:[o], s:s}", "jobs", job_spec_said_to_json(spec), "request_id", request_id);
    rc = session_submit(cli, request, &reply, &err);
    if (rc) {
        cli_fail("%s%s",
                 rc == -CLI_NO_ANSWER ? "whether it was submitted is not known, look at carma queue --all: " : "",
                 err.text);
        *status = session_status(rc);
        return 0;
    }
    job = json_array_get(json_object_get(reply, "jobs"), 0);
    id = (uint64_t)answer_integer(job, "id", 0);
    tell_submitted(id, spec->name, job);
    return id;
}
