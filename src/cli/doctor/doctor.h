/* carma doctor: its findings, check by check. Nothing here changes anything on the machine, but for jobs of Slurm's
 * that are submitted, held, and taken back. */
#ifndef CARMA_CLI_DOCTOR_DOCTOR_H
#define CARMA_CLI_DOCTOR_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "cli/cli.h"
#include "config/config.h"

enum doctor_mark { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL, DOCTOR_SKIP };

struct doctor_finding {
    const char *check; /* static */
    enum doctor_mark mark;
    char *found;  /* owned; printable */
    char *remedy; /* owned; NULL: there is nothing to do */
};

struct doctor {
    struct cli *cli;
    const char *root;        /* put before paths of the system (/proc, /sys, /run, /etc); "" but for tests */
    const char *config_file; /* NULL: the default one, which may be missing */
    struct config config;    /* as far as it could be read */
    json_t *status;          /* the daemon's, or NULL; owned */
    struct doctor_finding *findings;
    size_t count, capacity;
};

void doctor_init(struct doctor *doctor, struct cli *cli);
void doctor_release(struct doctor *doctor);

/* Adds a finding; unsafe characters are escaped. `remedy` (may be NULL) is one sentence on the remedy. */
void doctor_find(struct doctor *doctor, const char *check, enum doctor_mark mark, const char *remedy,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Below the root; owned by the caller. */
char *doctor_path(const struct doctor *doctor, const char *path);

/* A file's text below the root, at most 1 MiB of it; owned by the caller; NULL: it cannot be read, err says why. */
char *doctor_read(const struct doctor *doctor, const char *path, struct error *err);

const char *doctor_mark_name(enum doctor_mark mark);                     /* "ok", "warn", "fail", "skip" */
size_t doctor_count(const struct doctor *doctor, enum doctor_mark mark); /* findings with it */

/* Lines of at most `width` columns, and one that counts. */
void doctor_format(const struct doctor *doctor, int width, bool colour, struct strbuf *out);
json_t *doctor_json(const struct doctor *doctor); /* docs/doctor.md; a new reference */

/* The checks. The settings first: the others go by them. */
void doctor_check_config(struct doctor *doctor);
void doctor_check_daemon(struct doctor *doctor);
void doctor_check_gpus(struct doctor *doctor);
void doctor_check_readings(struct doctor *doctor, const char *monitor); /* the program carma-monitor */
void doctor_check_mps(struct doctor *doctor);
void doctor_check_store(struct doctor *doctor);
void doctor_check_system(struct doctor *doctor);
void doctor_check_slurm(struct doctor *doctor, const char *node); /* Slurm's name of it; "": the host's */

/* The daemon's answer to GET; *reply is a new reference. */
int doctor_ask(const struct doctor *doctor, const char *path, json_t **reply, struct error *err);

/* Whether a process has a name that begins so; the kernel cuts names to 15 bytes. */
bool doctor_runs(const struct doctor *doctor, const char *name);

#endif
