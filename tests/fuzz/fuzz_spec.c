/* A job's JSON, and that of its estimate: refused in one line, or equal to its written form. */
#include "api/spec.h"
#include "api/spec_estimate.h"
#include "fuzz.h"

static void read_estimate(const json_t *json)
{
    struct job_estimate estimate;
    struct error err = {{0}};

    if (job_estimate_from_json(json, &estimate, &err)) {
        require_message(&err);
        return;
    }
    free(job_estimate_text(&estimate));
    json_t *once = job_estimate_to_json(&estimate);
    job_estimate_release(&estimate);
    require(job_estimate_from_json(once, &estimate, NULL) == 0);
    json_t *twice = job_estimate_to_json(&estimate);
    require(json_equal(once, twice));
    json_decref(once);
    json_decref(twice);
    job_estimate_release(&estimate);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    json_t *json = json_loadb((const char *)bytes, length, JSON_ALLOW_NUL, NULL), *once, *twice;
    struct job_spec spec;
    struct error err = {{0}};

    if (!json)
        return 0;
    read_estimate(json);
    if (job_spec_from_json(json, &spec, &err)) {
        require_message(&err);
        require(!spec.name && !spec.command.items);
    } else {
        once = job_spec_to_json(&spec);
        job_spec_release(&spec);
        require(job_spec_from_json(once, &spec, NULL) == 0);
        twice = job_spec_to_json(&spec);
        require(json_equal(once, twice));
        json_decref(once);
        json_decref(twice);
        job_spec_release(&spec);
    }
    json_decref(json);
    return 0;
}
