/* carma submit: job files, scripts, or a command; all of them or none. Those that are more than one request may have
 * are submitted in parts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/job/doubts.h"
#include "cli/job/submit.h"
#include "cli/job/wait.h"
#include "cli/session.h"
#include "cli/show/term.h"
#include "cli/show/answer.h"
#include "client/client.h"

#define COMPLAINTS_MAX 20
#define REQUEST_FRAME  128 /* bytes of a request besides its jobs */

static void refuse_json(json_t **request, size_t *complaints, const char *text)
{
    json_decref(*request);
    *request = NULL;
    if (++*complaints <= COMPLAINTS_MAX)
        cli_fail("%s", text);
}

/* One of each choice of parameters. Their doubts are alike, but for what they share. */
static int add_specs(const struct sweep *sweep, const struct job_spec *spec, json_t *specs, json_t *paths,
                     struct error *err)
{
    int rc = 0;

    for (size_t i = 0; i < sweep_jobs(sweep) && rc == 0; i++) {
        CLEANUP(job_spec_release) struct job_spec chosen = job_spec_copy(spec);
        sweep_choose(sweep, i, &chosen);
        if (i == 0)
            doubts_tell(&chosen);
        doubts_tell_shared(&chosen, paths);
        rc = job_spec_check(&chosen, err);
        json_array_append_new(specs, job_spec_said_to_json(&chosen));
    }
    return rc;
}

/* All problems of all files are told; the list is then NULL. */
static json_t *make_specs(struct cli *cli, const struct submit_command *submit)
{
    size_t count = submit->file_count ? submit->file_count : 1, complaints = 0;
    CLEANUP(json_release) json_t *paths = json_object();
    json_t *specs = json_array();

    for (size_t i = 0; i < count; i++) {
        CLEANUP(job_spec_release) struct job_spec spec;
        struct error err;
        int rc = submit->file_count
                     ? submit_from_file(&spec, submit->files[i], submit->command, submit->command_count,
                                        &submit->options, &err)
                     : submit_from_command(&spec, submit->command, submit->command_count, &submit->options, &err);
        if (rc == 0)
            rc = cli_resolve_dependency(cli, &spec, &err);
        if (rc == 0 && specs)
            rc = add_specs(&submit->sweep, &spec, specs, paths, &err);
        if (rc)
            refuse_json(&specs, &complaints, err.text);
    }
    if (complaints && count > 1)
        cli_fail("nothing was submitted: %zu of %zu files are wrong", complaints, count);
    return specs;
}

/* As many of them, from `first` on, as a request may have; at least one. A single one need not be measured. */
static json_t *make_request(const struct submit_command *submit, const json_t *specs, size_t first)
{
    json_t *jobs = json_array(), *spec;
    size_t bytes = 0;
    char id[CLIENT_REQUEST_ID_TEXT];

    while (json_array_size(jobs) < SPEC_MAX_JOBS && (spec = json_array_get(specs, first + json_array_size(jobs)))) {
        bytes += json_array_size(specs) > 1 ? 1 + json_dumpb(spec, NULL, 0, JSON_COMPACT) : 0;
        if (bytes > SPEC_MAX_REQUEST - REQUEST_FRAME && json_array_size(jobs))
            break;
        json_array_append(jobs, spec);
    }
    client_request_id(id);
    return json_pack("{s:o, s:s*}", "jobs", jobs, "request_id", submit->no_retry ? NULL : id);
}

/* The daemon's doubts about the job, or its model. They go to stderr, because the job was accepted. */
static void warn_of(const char *name, const json_t *warnings)
{
    json_t *warning;
    size_t i;

    json_array_foreach (warnings, i, warning) {
        CLEANUP(free_ptr) char *text = term_escape(json_string_value(warning));
        fprintf(stderr, "carma: %s: warning: %s\n", name, text);
    }
}

/* 1, unless it is an array. */
static int64_t jobs_of(const json_t *answer)
{
    return answer_integer(json_object_get(answer, "array"), "jobs", 1);
}

static void print_submitted(const struct submit_command *submit, const json_t *specs, const json_t *reply)
{
    json_t *job;
    size_t i;

    if (submit->json) {
        cli_print_json(reply);
        return;
    }
    json_array_foreach (json_object_get(reply, "jobs"), i, job) {
        CLEANUP(free_ptr) char *name = answer_safe_text(json_array_get(specs, i), "name");
        warn_of(name, json_object_get(job, "warnings"));
        warn_of(name, json_object_get(json_object_get(job, "estimate"), "warnings"));
        if (submit->parsable)
            printf("%" PRId64 "\n", answer_integer(job, "id", 0));
        else if (jobs_of(job) > 1)
            printf("submitted array %" PRId64 " of %" PRId64 " jobs (%s)\n", answer_integer(job, "id", 0), jobs_of(job),
                   name);
        else
            printf("submitted job %" PRId64 " (%s)\n", answer_integer(job, "id", 0), name);
    }
}

static int wait_for_submitted(struct cli *cli, const struct submit_command *submit, const json_t *reply)
{
    CLEANUP(id_list_release) struct id_list list = {0};
    json_t *job;
    size_t i;

    fflush(stdout);
    json_array_foreach (json_object_get(reply, "jobs"), i, job)
        for (int64_t k = 0; k < jobs_of(job); k++)
            id_list_add(&list, (uint64_t)(answer_integer(job, "id", 0) + k));
    return wait_for_jobs(cli, &list, submit->json || submit->parsable, NULL);
}

/* The accepted jobs come behind those in `jobs`. */
static int submit_part(struct cli *cli, const struct submit_command *submit, const json_t *request, json_t *jobs,
                       struct error *err)
{
    CLEANUP(json_release) json_t *reply = NULL;
    int rc = submit->no_retry ? cli_call(cli, "POST", "/v1/jobs", request, &reply, err)
                              : session_submit(cli, request, &reply, err);

    if (rc == 0)
        json_array_extend(jobs, json_object_get(reply, "jobs"));
    else if (rc == -CLI_NO_ANSWER)
        error_prefix(err, "whether it was submitted is not known, look at carma queue --all");
    return rc;
}

static int submit_all(struct cli *cli, const struct submit_command *submit)
{
    CLEANUP(json_release) json_t *specs = make_specs(cli, submit);
    CLEANUP(json_release) json_t *reply = json_pack("{s:[]}", "jobs");
    json_t *jobs = json_object_get(reply, "jobs");
    size_t count = json_array_size(specs), done = 0;
    struct error err;
    int rc = 0;

    cli->waits = submit->wait;
    if (!specs)
        return CLI_FAILURE;
    while (done < count && rc == 0) {
        CLEANUP(json_release) json_t *request = make_request(submit, specs, done);
        rc = submit_part(cli, submit, request, jobs, &err);
        if (rc == 0)
            done += json_array_size(json_object_get(request, "jobs"));
    }
    if (done)
        print_submitted(submit, specs, reply);
    if (rc && done)
        return cli_fail("the first %zu of %zu jobs were submitted, the others were not: %s", done, count, err.text);
    if (rc)
        return cli_fail("%s", err.text), submit->wait ? session_status(rc) : CLI_FAILURE;
    return submit->wait ? wait_for_submitted(cli, submit, reply) : CLI_OK;
}

int cmd_submit(struct cli *cli, int argc, char **argv)
{
    struct submit_command submit = {0};
    int status;

    job_spec_init_empty(&submit.options);
    if (cli_parse(cli, argc, argv, &submit, &status))
        status = submit_all(cli, &submit);
    job_spec_release(&submit.options);
    sweep_release(&submit.sweep);
    free(submit.files);
    return status;
}
