/* An event of a job in words, and as JSON. */
#ifndef CARMA_NOTIFY_MESSAGE_H
#define CARMA_NOTIFY_MESSAGE_H

#include <jansson.h>

#include "api/told/notify.h"

/* {"event", "host", "text", "job"}: docs/formats/notify.md. Owned by the caller. */
json_t *message_new(const json_t *job, enum notify_event event);

/* A mail of it, with its head; `to` is an address. Owned by the caller. */
char *message_mail(const json_t *message, const char *to);

const char *message_text(const json_t *message); /* one line */

#endif
