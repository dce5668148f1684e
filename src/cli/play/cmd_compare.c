/* carma compare: reports of `carma play --json` side by side. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/play/report.h"
#include "cli/show/answer.h"

#define COMPARE_MAX 8

struct compare_options {
    const char *paths[COMPARE_MAX];
    size_t count;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct compare_options *compare = state->input;

    switch (key) {
    case ARGP_KEY_ARG:
        if (compare->count == COMPARE_MAX)
            return cli_bad_usage(state, "at most %d reports at a time", COMPARE_MAX);
        compare->paths[compare->count++] = arg;
        return 0;
    case ARGP_KEY_END:
        return compare->count < 2 ? cli_bad_usage(state, "name at least two reports") : 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp compare_argp = {
    .parser = parse,
    .args_doc = "A.json B.json...",
    .doc = "Print the reports of several plays side by side, with the change in percent against "
           "the first.\vThe files are the output of 'carma play --json'.",
};

int cmd_compare(struct cli *cli, int argc, char **argv)
{
    struct compare_options compare = {0};
    CLEANUP(strbuf_release) struct strbuf out = {0};
    json_t *reports[COMPARE_MAX] = {0};
    size_t count = 0;
    struct error err;
    int status;

    if (!cli_parse(cli, argc, argv, &compare, &status))
        return status;
    for (; count < compare.count; count++) {
        if (report_read(compare.paths[count], &reports[count], &err)) {
            status = cli_fail("%s", err.text);
            break;
        }
    }
    if (count == compare.count) {
        report_format(reports, count, term_width(stdout), term_colour(stdout), &out);
        fputs(out.text, stdout);
    }
    for (size_t i = 0; i < count; i++) {
        status = status == CLI_OK && report_is_incomplete(reports[i]) ? CLI_INCOMPLETE : status;
        json_decref(reports[i]);
    }
    return status;
}
