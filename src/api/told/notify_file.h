/* ~/.config/carma/notify: of what its user wants to be told about jobs that do not say it, and where.
 *
 *     events = end,fail,timeout=30m      as --notify
 *     mail = ada@example.org             by sendmail(8)
 *     webhook = https://example.org/abc  gets JSON by POST; up to 4 of them
 *     desktop = yes                      by notify-send(1), where the user is logged in
 *
 * Lines that begin with # are notes. */
#ifndef CARMA_API_TOLD_NOTIFY_FILE_H
#define CARMA_API_TOLD_NOTIFY_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define NOTIFY_FILE          ".config/carma/notify" /* in the home directory */
#define NOTIFY_FILE_BYTES    (16 << 10)
#define NOTIFY_FILE_WEBHOOKS 4

struct notify_file {
    char *events; /* owned, as all; NULL: not said */
    char *mail;
    char *webhooks[NOTIFY_FILE_WEBHOOKS];
    size_t webhook_count;
    bool desktop;
};

/* -EINVAL: "line 3: ...". Release it in any case. */
int notify_file_parse(const char *text, struct notify_file *file, struct error *err);

/* The file in a home directory; one that is not there says nothing. A negative errno, and its path in err. */
int notify_file_read(const char *home, struct notify_file *file, bool *there, struct error *err);

void notify_file_release(struct notify_file *file);

#endif
