/* Needed by every subcommand: its command line, the daemon, messages, JSON on stdout. */
#ifndef CARMA_CLI_CLI_H
#define CARMA_CLI_CLI_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/spec.h"
#include "base/error.h"
#include "cli/ids.h"
#include "cli/select.h"

enum {
    CLI_OK = 0,
    CLI_FAILURE = 1,
    CLI_USAGE = 2,
    CLI_INCOMPLETE = 3 /* some job of a trace did not complete */,
    CLI_NOT_ASKED = 125 /* of commands that give a job's exit status: the daemon could not be asked */
};

struct cli {
    const struct argp *argp; /* of the command that runs: its options */
    const char *socket;      /* --socket; NULL: the usual place */
    struct client *client;   /* opened by the first call */
    bool waits;              /* the command waits for jobs: for a turn at the daemon, too, without end */
    bool turn_told;          /* that it waits for one */
    bool crowded;            /* the last call had to wait for one */
};

void cli_release(struct cli *cli);

/* The work of main() around `run` in a program with subcommands; `run` gets main's arguments. Returns the exit
 * status. */
int cli_main(int argc, char **argv, int (*run)(struct cli *cli, int argc, char **argv));

/* Goes on as another program of carma's: PREFIX/lib/carma/NAME, in a build tree `built`, from this program's folder.
 * Returns, like cli_fail, where there is none. */
int cli_become(const char *name, const char *built, char **argv);

/* Parses a subcommand's options by its table, adding --socket and --help; `input` is the argp parser's state->input.
 * False: the command ends here with *status. */
bool cli_parse(struct cli *cli, int argc, char **argv, void *input, int *status);

/* Parses options that a file holds by the same table, --socket and --help apart. -EINVAL: "WHERE: ..." in err. */
int cli_parse_words(const char *command, const struct argp *argp, const char *where, char **words, size_t count,
                    void *input, struct error *err);

/* --socket and --help. */
extern const struct argp_option cli_common_options[];

/* For argp parsers: prints "carma: COMMAND: ..." and returns the value that the parser must return. */
error_t cli_bad_usage(const struct argp_state *state, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether the cursor stands behind a progress line: the next message clears it first. */
extern bool cli_progress_shown;
void cli_end_progress(void); /* clears it */

/* Prints "carma: ..." as one line on stderr, unsafe characters escaped; returns CLI_FAILURE. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One request to the daemon. 0: it was done, and *reply (a new reference; may be NULL if the caller does not want it)
 * is the daemon's answer. Otherwise a negative errno and one line: the daemon's answer, or why it could not be asked.
 *   -CLI_NO_DAEMON  nobody listens, or the daemon is stopping: nothing was done
 *   -CLI_NO_ANSWER  sent, but the answer did not come: it may have been done
 *   any other       as client_check has it */
/* Where others of the same user have all connections that he may have, it waits for a turn: CLI_TURN_S, or without end
 * where the command waits for jobs anyway. */
#define CLI_TURN_S    30
#define CLI_NO_DAEMON ECONNREFUSED
#define CLI_NO_ANSWER ECONNRESET
int cli_call(struct cli *cli, const char *method, const char *path, const json_t *body, json_t **reply,
             struct error *err);

/* GET of a list of jobs, /v1/jobs with a query or without: all of it, in as many requests as that takes. `call` is
 * cli_call, session_call or cli_ask. */
int cli_list_jobs(struct cli *cli, const char *path,
                  int (*call)(struct cli *cli, const char *method, const char *path, const json_t *body, json_t **reply,
                              struct error *err),
                  json_t **reply, struct error *err);

/* As cli_call; in a command that waits also of a daemon that is started again. */
int cli_ask(struct cli *cli, const char *method, const char *path, const json_t *body, json_t **reply,
            struct error *err);

/* Replaces the words in the list by the numbers of jobs (cli/resolve.c). Of an array, which IDS_ONE refuses,
 * IDS_UNFINISHED takes the jobs that have not ended; IDS_LAST_FIRST the last ones first: each that is taken away from
 * the front would let another start. */
enum ids_wanted { IDS_ALL, IDS_UNFINISHED, IDS_LAST_FIRST, IDS_ONE };
int cli_resolve_ids(struct cli *cli, struct id_list *list, enum ids_wanted wanted, struct error *err);

/* Puts the number of the caller's last job, or of its array, in place of each "@" of a job's dependency. */
int cli_resolve_dependency(struct cli *cli, struct job_spec *spec, struct error *err);

/* Up to `most` words of the list from *from on, as the daemon reads them ("7,12-20"): "@" is looked up. Owned by the
 * caller; NULL: an error. *from is behind them then. */
#define CLI_IDS_AT_ONCE 1000 /* words, as the daemon takes in one request */
char *cli_ids_text(struct cli *cli, const struct id_list *list, size_t *from, size_t most, struct error *err);

/* Takes the one argument ID of a command that wants exactly one job. */
error_t cli_take_one_id(struct id_list *list, int key, char *arg, struct argp_state *state);

/* GET /v1/jobs/ID and `suffix` for the one id of the list. CLI_OK, or complains and returns CLI_FAILURE. */
int cli_get_job(struct cli *cli, struct id_list *list, const char *suffix, json_t **reply);

/* The arguments of the commands on jobs: ids and selectors, --json. */
struct cli_jobs {
    struct id_list list;
    struct selectors selectors;
    bool json;
    bool yes; /* not to be asked */
};
extern const struct argp_option cli_jobs_options[], cli_verb_options[];
#define CLI_IDS_HELP                                                                                                   \
    "IDS are like 7, 1,3-5, 7_3 (of array 7) or @ (your last job). Options choose among them, or among your "          \
    "jobs that have not ended."

/* The numbers of those jobs take the place of what the list has. With selectors: of the ids, or of the caller's
 * unfinished jobs, unless the selectors say otherwise; there may be none then. */
int cli_choose(struct cli *cli, struct cli_jobs *jobs, enum ids_wanted wanted, struct error *err);
error_t cli_parse_one_job(int key, char *arg, struct argp_state *state); /* ID; input: struct cli_jobs */
error_t cli_parse_jobs(int key, char *arg, struct argp_state *state);    /* IDS...; input: struct cli_jobs */
void cli_jobs_release(struct cli_jobs *jobs);

/* For commands that have commands of their own (cli/group.c): the argp parser, and the command itself. */
error_t cli_parse_group(int key, char *arg, struct argp_state *state);
int cli_run_group(struct cli *cli, int argc, char **argv);

/* Prints JSON, indented, on stdout. */
void cli_print_json(const json_t *json);
void cli_print_jobs(json_t *jobs); /* as {"jobs": jobs} */

/* Runs `draw` once; or, where `period_ns` is not 0, again and again with that pause (wall) in between. On a terminal it
 * draws on a cleared screen, else with an empty line in between. Once it has worked, a `draw` that fails, having said
 * why, is tried again: a daemon may come back. */
int cli_watch(struct cli *cli, int64_t period_ns, int (*draw)(struct cli *cli, void *input), void *input);

/* The argument of --watch: seconds, two without one. */
error_t cli_parse_watch(const struct argp_state *state, const char *arg, int64_t *period_ns);

/* The commands that do something to jobs: the command's name is asked of the daemon for all of them at once. Whatever
 * was chosen by selectors or a range is told on a terminal before, and asked about. They complain about each that is
 * refused. With --json the answers of the others are printed as {"jobs": [...]}. */
int cli_change(struct cli *cli, int argc, char **argv);

#define CLI_JSON_KEY  0x1000
#define CLI_WATCH_KEY 0x1001
#define CLI_OPTION_JSON                                                                                                \
    {                                                                                                                  \
        "json", CLI_JSON_KEY, NULL, 0, "print JSON as the daemon gives it", 0                                          \
    }
#define CLI_OPTION_WATCH                                                                                               \
    {                                                                                                                  \
        "watch", CLI_WATCH_KEY, "SECONDS", OPTION_ARG_OPTIONAL, "print again every SECONDS (default: 2)", 0            \
    }

#endif
