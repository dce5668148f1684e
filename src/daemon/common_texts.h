/* Texts that many jobs have in common (the environment of who submitted them, their command, their script) are kept once. */
#ifndef CARMA_DAEMON_COMMON_TEXTS_H
#define CARMA_DAEMON_COMMON_TEXTS_H

#include "api/spec.h"

struct common_text;

struct common_texts {
    struct common_text *all; /* uthash by digest */
};

/* Takes the list over and puts an equal one in its place, which is borrowed until the text is left. NULL: *list stays the
 * caller's own: it is empty, or others have its digest. */
struct common_text *common_texts_join(struct common_texts *texts, struct spec_strings *list);

/* The list goes with its last user; *list is empty then. NULL releases the list, which is the caller's own. */
void common_texts_leave(struct common_texts *texts, struct common_text *text, struct spec_strings *list);

#endif
