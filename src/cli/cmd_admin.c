/* carma admin: the daemon's store, checked and copied. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/spec.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/term.h"
#include "config/config.h"
#include "core/snapshot.h"
#include "store/history.h"
#include "store/store.h"

const struct argp admin_argp = {
    .parser = cli_parse_group,
    .args_doc = "backup FILE|verify",
    .doc = "Look after the daemon's store: 'carma admin backup' copies it, 'carma admin verify' checks it."
           "\v'carma help admin backup' and 'carma help admin verify' explain them. What is in a store: "
           "docs/formats/store.md.",
};

int cmd_admin(struct cli *cli, int argc, char **argv)
{
    return cli_run_group(cli, argc, argv);
}

/* ---- Which store ---- */

struct admin_options {
    const char *state; /* NULL: as configured */
    const char *file;
};

enum { KEY_STATE = 0x100 };

static const struct argp_option options[] = {
    {"state", KEY_STATE, "DIR", 0, "the daemon's state directory (default: as the configuration file has it)", 0},
    {0},
};

/* Owned by the caller; NULL: err. */
static char *state_directory(const struct admin_options *wanted, struct error *err)
{
    CLEANUP(config_release) struct config config;
    CLEANUP(free_ptr) char *path = config_default_path();
    int rc;

    config_init_default(&config);
    if (wanted->state)
        return xstrdup(wanted->state);
    rc = config_read_file(&config, path, err);
    return rc && rc != -ENOENT ? NULL : xstrdup(config.state_directory);
}

/* ---- carma admin backup ---- */

static error_t parse_backup(int key, char *arg, struct argp_state *state)
{
    struct admin_options *wanted = state->input;

    switch (key) {
    case KEY_STATE:
        wanted->state = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (wanted->file)
            return cli_bad_usage(state, "'%.40s' is one file too many", arg);
        wanted->file = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        return cli_bad_usage(state, "which file shall hold the copy?");
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp admin_backup_argp = {
    .options = options,
    .parser = parse_backup,
    .args_doc = "FILE",
    .doc = "Copy the daemon's store to the new FILE, as it is at one moment; the daemon may go on meanwhile."
           "\vTo go back to the copy: stop carmad, put FILE in the place of store.db, remove store.db-wal and "
           "store.db-shm, start carmad.",
};

static void show_progress(int done, int all, void *user)
{
    const bool *interactive = user;

    if (!*interactive)
        return;
    CLEANUP(free_ptr) char *bar = term_bar(done, all, 30);
    fprintf(stderr, TERM_LINE_CLEAR "%s %d of %d pages", bar, done, all);
    cli_progress_shown = true;
}

int cmd_admin_backup(struct cli *cli, int argc, char **argv)
{
    struct admin_options wanted = {0};
    CLEANUP(free_ptr) char *directory = NULL;
    bool interactive = isatty(fileno(stderr));
    struct error err;
    int status;

    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    directory = state_directory(&wanted, &err);
    if (!directory || store_backup(directory, wanted.file, show_progress, &interactive, &err))
        return cli_fail("%s", err.text);
    if (interactive)
        fprintf(stderr, TERM_LINE_CLEAR);
    cli_progress_shown = false;
    printf("%s: a copy of %s/store.db\n", wanted.file, directory);
    return CLI_OK;
}

/* ---- carma admin verify ---- */

static error_t parse_verify(int key, char *arg, struct argp_state *state)
{
    struct admin_options *wanted = state->input;

    switch (key) {
    case KEY_STATE:
        wanted->state = arg;
        return 0;
    case ARGP_KEY_ARG:
        return cli_bad_usage(state, "it takes no arguments ('%.40s')", arg);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp admin_verify_argp = {
    .options = options,
    .parser = parse_verify,
    .doc = "Check the daemon's store: that SQLite finds it whole, that every record follows from the one before, and "
           "that each snapshot is the state which the records before it lead to; and that no user's sums are less than the "
           "rows of his jobs. It only reads; the daemon may go on "
           "meanwhile.\v'carma simulate --replay DIR' proves further that the stored decisions are those of this carma.",
};

struct verification {
    struct core *core;
    uint64_t specs, jobs, records, snapshots;
};

/* `what` is for the message: whose text it is. */
static int verify_object(const char *json, const char *what, uint64_t job, struct error *err)
{
    json_error_t where;
    json_t *object = json_loads(json, JSON_REJECT_DUPLICATES, &where);
    int rc = 0;

    if (!json_is_object(object))
        rc = error_set(err, EBADMSG, "%s of job %" PRIu64 " is damaged: %s", what, job,
                       object ? "not an object" : where.text);
    json_decref(object);
    return rc;
}

static int verify_spec(uint64_t job, const char *json, void *user, struct error *err)
{
    ((struct verification *)user)->specs++;
    return verify_object(json, "the submission", job, err);
}

static int verify_job(uint64_t job, const char *json, void *user, struct error *err)
{
    ((struct verification *)user)->jobs++;
    return verify_object(json, "what is stored", job, err);
}

static int verify_record(uint64_t seq, const struct record *record, void *user, struct error *err)
{
    struct verification *verification = user;
    int rc = core_apply(verification->core, record, err);

    verification->records += !record_is_state(record->type);
    if (rc)
        error_prefix(err, "record %" PRIu64 " (%s) does not follow", seq, record_type_name(record->type));
    return rc;
}

static int verify_snapshot(uint64_t seq, const struct record_list *snapshot, void *user, struct error *err)
{
    struct verification *verification = user;
    struct core *core = core_new();
    int rc = 0;

    verification->snapshots++;
    for (size_t i = 0; i < snapshot->count && rc == 0; i++)
        rc = core_apply(core, &snapshot->items[i], err);
    if (rc == 0)
        rc = core_check(core, err);
    if (rc == 0) {
        CLEANUP(free_ptr) char *expected = core_dump(verification->core);
        CLEANUP(free_ptr) char *found = core_dump(core);

        if (strcmp(expected, found) != 0)
            rc = error_set(err, EBADMSG, "it is not the state which the records lead to");
    }
    core_free(core);
    if (rc)
        error_prefix(err, "the snapshot after record %" PRIu64 " is damaged", seq);
    return rc;
}

int cmd_admin_verify(struct cli *cli, int argc, char **argv)
{
    struct admin_options wanted = {0};
    struct verification verification = {0};
    struct store_inspector inspector = {.on_spec = verify_spec,
                                        .on_job = verify_job,
                                        .on_record = verify_record,
                                        .on_snapshot = verify_snapshot,
                                        .user = &verification};
    CLEANUP(free_ptr) char *directory = NULL;
    struct error err;
    uint64_t history = 0;
    int status, rc;

    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    directory = state_directory(&wanted, &err);
    if (!directory)
        return cli_fail("%s", err.text);
    verification.core = core_new();
    rc = store_inspect(directory, &inspector, &err);
    if (rc == 0)
        rc = core_check(verification.core, &err);
    core_free(verification.core);
    if (rc == 0)
        rc = store_check_history(directory, &history, &err);
    if (rc)
        return cli_fail("%s: %s", directory, err.text);
    printf("%s: whole: %" PRIu64 " records, %" PRIu64 " snapshots, %" PRIu64 " submissions, %" PRIu64
           " states of jobs, %" PRIu64 " rows of history\n",
           directory, verification.records, verification.snapshots, verification.specs, verification.jobs, history);
    return CLI_OK;
}
