/* carma admin: the daemon's store, checked, copied and recovered. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/admin/verify_store.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show/term.h"
#include "config/config.h"
#include "store/history.h"
#include "store/store.h"

const struct argp admin_argp = {
    .parser = cli_parse_group,
    .args_doc =
        "backup FILE|drain|gpu open GPU|learned|recover|reserve|resume|share USER SHARE|unreserve NUMBER|verify",
    .doc =
        "Look after the daemon: 'carma admin backup' copies its store, 'carma admin verify' checks it, 'carma admin "
        "recover' goes on with a part of it, 'carma admin learned' shows what it has learned of jobs, and forgets "
        "it, 'carma admin drain' lets no further job come to a GPU until 'carma admin resume', 'carma admin gpu open' "
        "opens a GPU on which programs did not start, 'carma admin reserve' keeps GPUs for some users from a time to "
        "another, 'carma admin unreserve' takes that back, 'carma admin share' gives a user a share of the GPUs."
        "\v'carma help admin backup' and so on explain them. The content of a store: docs/formats/store.md.",
};

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

/* As state_directory(), where a store is. */
static char *store_directory(const struct admin_options *wanted, struct error *err)
{
    CLEANUP(free_ptr) char *directory = state_directory(wanted, err);
    CLEANUP(free_ptr) char *path = directory ? xasprintf("%s/store.db", directory) : NULL;

    if (path && access(path, F_OK) < 0) {
        error_set(err, errno, "%s: %s: name carmad's state directory by --state", path, strerror(errno));
        return NULL;
    }
    return steal_ptr(&directory);
}

static error_t parse_state(int key, char *arg, struct argp_state *state)
{
    struct admin_options *wanted = state->input;

    switch (key) {
    case KEY_STATE:
        wanted->state = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- carma admin backup ---- */

static error_t parse_backup(int key, char *arg, struct argp_state *state)
{
    struct admin_options *wanted = state->input;

    switch (key) {
    case ARGP_KEY_ARG:
        if (wanted->file)
            return cli_bad_usage(state, "'%.40s' is one file too many", arg);
        wanted->file = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        return cli_bad_usage(state, "which file shall hold the copy?");
    default:
        return parse_state(key, arg, state);
    }
}

const struct argp admin_backup_argp = {
    .options = options,
    .parser = parse_backup,
    .args_doc = "FILE",
    .doc = "Copy the daemon's store to the new FILE, as it is at one moment; the daemon may go on meanwhile."
           "\vTo go back to the copy: stop carmad, put FILE in the place of store.db, remove store.db-wal and "
           "store.db-shm, 'carma admin recover', start carmad.",
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
    directory = store_directory(&wanted, &err);
    if (!directory || store_backup(directory, wanted.file, show_progress, &interactive, &err))
        return cli_fail("%s", err.text);
    if (interactive)
        fprintf(stderr, TERM_LINE_CLEAR);
    cli_progress_shown = false;
    printf("%s: a copy of %s/store.db\n", wanted.file, directory);
    return CLI_OK;
}

/* ---- carma admin verify ---- */

const struct argp admin_recover_argp = {
    .options = options,
    .parser = parse_state,
    .doc =
        "Go on with a store of which a part is lost: carmad refuses it, and names this command. What is left is kept "
        "as it is. Numbers of jobs that may be lost are not given again. Stop carmad first."
        "\vA copy of carma admin backup, put in the place of store.db, is such a store, too.",
};

const struct argp admin_verify_argp = {
    .options = options,
    .parser = parse_state,
    .doc =
        "Check the daemon's store. SQLite must find it whole, and every record must follow from the one before. Each "
        "snapshot must be the state to which the records before it lead. The submission of each job must be readable, "
        "and no user's sums may be less than the rows of the user's jobs. It only reads; the daemon may go on "
        "meanwhile.\v'carma simulate --replay DIR' proves further that the stored decisions are those of this carma.",
};

int cmd_admin_verify(struct cli *cli, int argc, char **argv)
{
    struct admin_options wanted = {0};
    CLEANUP(free_ptr) char *directory = NULL;
    struct verify_counts counts;
    struct error err;
    uint64_t history = 0;
    int status, rc;

    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    directory = store_directory(&wanted, &err);
    if (!directory)
        return cli_fail("%s", err.text);
    rc = store_check_mark(directory, &err);
    if (rc)
        return cli_fail("%s", err.text);
    rc = verify_store(directory, &counts, &err);
    if (rc == 0)
        rc = store_check_history(directory, &history, &err);
    if (rc)
        return cli_fail("%s: %s", directory, err.text);
    printf("%s: whole: %" PRIu64 " records, %" PRIu64 " snapshots, %" PRIu64 " submissions, %" PRIu64
           " states of jobs, %" PRIu64 " rows of history\n",
           directory, counts.records, counts.snapshots, counts.submissions, counts.jobs, history);
    return CLI_OK;
}

/* ---- carma admin recover ---- */

int cmd_admin_recover(struct cli *cli, int argc, char **argv)
{
    struct admin_options wanted = {0};
    CLEANUP(free_ptr) char *directory = NULL;
    struct store_recovery recovery;
    struct verify_counts counts;
    struct error err;
    int status;

    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    directory = state_directory(&wanted, &err);
    if (!directory || store_recover(directory, &recovery, &err))
        return cli_fail("%s", err.text);
    printf("%s: %" PRIu64 " records are kept", directory, recovery.records);
    if (recovery.stored > recovery.records)
        printf(", %" PRIu64 " that were acknowledged are lost", recovery.stored - recovery.records);
    printf("; the next job has the number %" PRIu64 "%s%s\n", recovery.next_job,
           *recovery.kept ? "; the damaged log is kept as " : "", recovery.kept);
    return verify_store(directory, &counts, &err)
               ? cli_fail("%s: what is left is not whole: %s: put a copy of the store back", directory, err.text)
               : CLI_OK;
}
