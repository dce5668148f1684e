/* Common to `carma history` and `carma stats`: the choice of jobs, and figures for people. */
#ifndef CARMA_CLI_HISTORY_ACCOUNT_H
#define CARMA_CLI_HISTORY_ACCOUNT_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

struct ended_options {
    int64_t since_ns; /* -1: any */
    int64_t until_ns;
    const char *user; /* borrowed; NULL: any */
    char me[16];      /* which may be this */
    const char *name;
    const char *state;
    const char *account, *tag;
    bool json;
    bool csv;
};

/* Lines of a command's table of options, and their parser: ARGP_ERR_UNKNOWN, where the key is not one of them. */
enum { ENDED_KEY_SINCE = 0x200, ENDED_KEY_UNTIL, ENDED_KEY_CSV };
/* clang-format off */
#define ENDED_OPTIONS                                                                                                  \
    {"since", ENDED_KEY_SINCE, "TIME", 0,                                                                              \
     "jobs that ended then or later: 2d (ago), yesterday, 2026-11-01, 2026-11-01T12:00", 0},                           \
    {"until", ENDED_KEY_UNTIL, "TIME", 0, "jobs that ended before that; a day or a month is meant to its end", 0},     \
    {"user", 'u', "USER", 0, "this user's jobs", 0},                                                                   \
    {"me", CLI_ME_KEY, NULL, 0, "your own jobs", 0},                                                                   \
    {"name", 'J', "PATTERN", 0, "jobs whose name matches, e.g. 'train*'", 0},                                          \
    {"state", 's', "STATE", 0,                                                                                         \
     "jobs that ended so: completed, failed, gpu_oom, cancelled, lost, refused, timeout", 0},                          \
    CLI_OPTIONS_LABEL, {"csv", ENDED_KEY_CSV, NULL, 0, "print CSV", 0}, CLI_OPTION_JSON
/* clang-format on */

error_t ended_parse(int key, char *arg, struct argp_state *state, struct ended_options *options);

void ended_init(struct ended_options *options);

/* "?since=..&name=..": their selection, with `more` ("by=day"; may be "") among it; "" where nothing is selected.
 * Appended to `path`. */
void ended_put_query(struct strbuf *path, const struct ended_options *options, const char *more);

#define ENDED_TEXT 48
char *ended_hours(int64_t ns, char text[ENDED_TEXT]);         /* "26.00" */
char *ended_gib_hours(int64_t mib_ms, char text[ENDED_TEXT]); /* "104.0", "-" below 0 */

#endif
