/* Job files and script directives: refused in one line, or a job that survives its own JSON. */
#include <string.h>

#include "api/directives.h"
#include "api/rad.h"
#include "api/spec.h"
#include "base/memory.h"
#include "fuzz.h"

static void check_job(struct job_spec *spec)
{
    struct job_spec again;
    struct error err = {{0}};

    require(spec->name && spec->command.count == 3);
    spec->directory = xstrdup("/tmp");
    spec->output = xstrdup("/tmp/out");
    if (job_spec_check(spec, &err)) { /* e.g. not UTF-8 */
        require_message(&err);
        return;
    }
    json_t *json = job_spec_to_json(spec);
    require(job_spec_from_json(json, &again, NULL) == 0);
    require(strcmp(again.command.items[2], spec->command.items[2]) == 0);
    json_decref(json);
    job_spec_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    CLEANUP(spec_strings_release) struct spec_strings words = {0};
    CLEANUP(job_spec_release) struct job_spec spec;
    struct error err = {{0}};

    if (rad_parse("f.rad", (const char *)bytes, length, &spec, &err)) {
        require_message(&err);
        require(strncmp(err.text, "f.rad:", 6) == 0 && !spec.command.items);
    } else {
        check_job(&spec);
    }

    err.text[0] = '\0';
    if (directives_parse("#CARMA", "f.sh", (const char *)bytes, length, &words, &err)) {
        require_message(&err);
        require(strncmp(err.text, "f.sh:", 5) == 0);
    }
    require(words.count <= SPEC_MAX_ARGUMENTS);
    return 0;
}
