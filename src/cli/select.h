/* Choosing jobs by what they are, for the commands on jobs: --user, --me, --state, --name, --account, --tag. Their
 * words are those of the daemon's lists (docs/formats/http.md). To add one: a line of CLI_OPTIONS_SELECT, of
 * cli_parse_selector() and of selectors_put(). */
#ifndef CARMA_CLI_SELECT_H
#define CARMA_CLI_SELECT_H

#include <argp.h>
#include <stdbool.h>

#include "base/strbuf.h"

struct selectors {
    const char *user, *state, *name, *account, *tag; /* borrowed; NULL: any */
    bool me;
};

#define CLI_ME_KEY  0x1002
#define CLI_TAG_KEY 0x1003
/* clang-format off */
#define CLI_OPTIONS_LABEL                                                                                              \
    {"account", 'A', "PROJECT", 0, "jobs of this project", 1},                                                         \
    {"tag", CLI_TAG_KEY, "NAME", 0, "jobs with this tag", 1}
#define CLI_OPTIONS_SELECT                                                                                             \
    {"user", 'u', "USER", 0, "this user's jobs", 1},                                                                   \
    {"me", CLI_ME_KEY, NULL, 0, "your own jobs", 1},                                                                   \
    {"state", 's', "STATES", 0, "jobs in these states: waiting, running, ended, all, or e.g. HELD,PD", 1},             \
    {"name", 'J', "PATTERN", 0, "jobs whose name matches, e.g. 'train*'", 1},                                          \
    CLI_OPTIONS_LABEL
/* clang-format on */

error_t cli_parse_selector(int key, char *arg, struct selectors *selectors); /* ARGP_ERR_UNKNOWN: it is none */

bool selectors_any(const struct selectors *selectors);
bool selectors_whose(const struct selectors *selectors); /* whether they say whose */

/* Adds them to a path, behind its query where it has one. */
void selectors_put(struct strbuf *path, const struct selectors *selectors);

/* Adds one word of a query; NULL: nothing. */
void query_put(struct strbuf *path, const char *name, const char *text);

#endif
