/* carma edit: other values for fields of waiting jobs, in the words of `carma submit` (api/job_fields.def). */
#include <string.h>

#include "api/job_field.h"
#include "api/spec.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/commands.h"
#include "cli/job/change.h"
#include "cli/show/answer.h"

struct edit_request {
    struct cli_jobs jobs; /* first: cli_parse_jobs takes the request for it */
    json_t *changes;
};

static void put(json_t *changes, const char *member, const struct job_spec *spec)
{
    json_object_set_new(changes, member, job_field_to_json(job_field_find(member), spec));
}

/* "time=2:00:00", "gpu-memory=8G"; nothing behind the = takes back what was said. */
static error_t take(const struct argp_state *state, json_t *changes, const char *word)
{
    const char *equals = strchr(word, '=');
    CLEANUP(free_ptr) char *key = xstrndup(word, (size_t)(equals - word));
    const struct job_field *field;
    struct job_spec spec;
    struct error err;
    int rc;

    for (char *at = key; (at = strchr(at, '-'));)
        *at = '_';
    field = job_field_of_key(key, strlen(key));
    if (!field)
        field = job_field_find(key);
    if (!field || !field->edited) {
        CLEANUP(strbuf_release) struct strbuf names = {0};
        for (size_t i = 0; i < job_field_count; i++)
            if (job_fields[i].edited)
                strbuf_printf(&names, "%s%s", names.length ? ", " : "", job_fields[i].option);
        return cli_bad_usage(state, "'%.40s' cannot be changed: only %s", word, names.text);
    }
    if (json_object_get(changes, field->name))
        return cli_bad_usage(state, "%s is said twice", field->option);
    job_spec_init_empty(&spec);
    rc = equals[1] ? job_field_parse(field, field->option, equals + 1, &spec, &err) : 0;
    if (rc == 0 && equals[1])
        put(changes, field->name, &spec);
    else if (rc == 0)
        json_object_set_new(changes, field->name, json_null());
    if (rc == 0 && field->type == JOB_FIELD_SIGNAL)
        put(changes, "signal_before_ns", &spec);
    job_spec_release(&spec);
    return rc ? cli_bad_usage(state, "%s", err.text) : 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct edit_request *edit = state->input;

    if (key == ARGP_KEY_ARG && strchr(arg, '='))
        return take(state, edit->changes, arg);
    if (key == ARGP_KEY_END && json_object_size(edit->changes) == 0)
        return cli_bad_usage(state, "what is to be changed? say FIELD=VALUE, e.g. time=2:00:00");
    if (key == ARGP_KEY_END && edit->jobs.list.count == 0 && !selectors_any(&edit->jobs.selectors))
        return cli_bad_usage(state, "which job? name its id");
    return cli_parse_jobs(key, arg, state);
}

const struct argp edit_argp = {
    .options = cli_verb_options,
    .parser = parse,
    .args_doc = "[IDS...] FIELD=VALUE...",
    .doc = "Change what waiting jobs ask for. FIELD is an option of carma submit: job-name, gpus, gpu-memory, "
           "gpu-type, exclude-gpu, max-slowdown, mps-threads, mps-memory-limit, cpus, memory, share, exclusive (yes or "
           "no), account, tag, priority, begin, deadline, time, idle-limit, signal, notify, on-end or requeue. Nothing "
           "behind the = takes it back.\v" CLI_IDS_HELP,
};

int cmd_edit(struct cli *cli, int argc, char **argv)
{
    struct edit_request request = {.changes = json_object()};
    int status;

    if (cli_parse(cli, argc, argv, &request, &status))
        status = change_jobs(cli, argv[0], &request.jobs, request.changes);
    cli_jobs_release(&request.jobs);
    json_decref(request.changes);
    return status;
}
