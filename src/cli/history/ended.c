#include "cli/history/ended.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/nodetime.h"
#include "base/text/nearest.h"
#include "cli/cli.h"
#include "cli/history/span.h"
#include "cli/select.h"
#include "core/job.h"

void ended_init(struct ended_options *options)
{
    *options = (struct ended_options){.since_ns = -1, .until_ns = -1};
}

/* The state's name as the daemon writes it; NULL: jobs do not end so. */
static const char *ended_state(const char *text)
{
    for (uint32_t state = JOB_COMPLETED; state <= JOB_LAST_ENDED; state++)
        if (strcasecmp(job_state_name(state), text) == 0 || strcasecmp(job_state_letter(state), text) == 0)
            return job_state_name(state);
    return NULL;
}

static error_t parse_time(struct argp_state *state, const char *option, const char *arg, bool ends, int64_t *ns)
{
    struct error err;

    if (span_parse(arg, ends, nodetime_shown_now_ns(), nodetime_scale() != 1, ns, &err) == 0)
        return 0;
    return cli_bad_usage(state, "%s: %s", option, err.text);
}

error_t ended_parse(int key, char *arg, struct argp_state *state, struct ended_options *options)
{
    struct error err;

    switch (key) {
    case ENDED_KEY_SINCE:
        return parse_time(state, "--since", arg, false, &options->since_ns);
    case ENDED_KEY_UNTIL:
        return parse_time(state, "--until", arg, true, &options->until_ns);
    case 'u':
        options->user = arg;
        return 0;
    case CLI_ME_KEY:
        snprintf(options->me, sizeof options->me, "%u", (unsigned)getuid());
        options->user = options->me;
        return 0;
    case 'J':
        options->name = arg;
        return 0;
    case 'A':
        options->account = arg;
        return 0;
    case CLI_TAG_KEY:
        options->tag = arg;
        return 0;
    case 's':
        options->state = ended_state(arg);
        return options->state || nearest_refuse(&err, "--state: an end", arg,
                                                "completed, failed, gpu_oom, cancelled, lost, "
                                                "refused or timeout") == 0
                   ? 0
                   : cli_bad_usage(state, "%s", err.text);
    case ENDED_KEY_CSV:
        options->csv = true;
        return 0;
    case CLI_JSON_KEY:
        options->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- The request ---- */

static void put_separator(struct strbuf *path)
{
    strbuf_puts(path, strchr(path->text, '?') ? "&" : "?");
}

static void put_time(struct strbuf *path, const char *name, int64_t ns)
{
    if (ns < 0)
        return;
    put_separator(path);
    strbuf_printf(path, "%s=%" PRId64, name, ns);
}

void ended_put_query(struct strbuf *path, const struct ended_options *options, const char *more)
{
    if (*more) {
        put_separator(path);
        strbuf_puts(path, more);
    }
    put_time(path, "since", options->since_ns);
    put_time(path, "until", options->until_ns);
    query_put(path, "user", options->user);
    query_put(path, "name", options->name);
    query_put(path, "state", options->state);
    query_put(path, "account", options->account);
    query_put(path, "tag", options->tag);
}

/* ---- Figures ---- */

char *ended_hours(int64_t ns, char text[ENDED_TEXT])
{
    snprintf(text, ENDED_TEXT, "%.2f", (double)ns / 3.6e12);
    return text;
}

char *ended_gib_hours(int64_t mib_ms, char text[ENDED_TEXT])
{
    if (mib_ms < 0)
        snprintf(text, ENDED_TEXT, "-");
    else
        snprintf(text, ENDED_TEXT, "%.1f", (double)mib_ms / 1024 / 3.6e6);
    return text;
}
