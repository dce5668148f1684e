/* Texts that many jobs have in common (their submitter's environment, their command, their script, their user) are kept
 * once, in one piece of memory each. */
#ifndef CARMA_DAEMON_VIEW_COMMON_TEXTS_H
#define CARMA_DAEMON_VIEW_COMMON_TEXTS_H

#include "api/spec_strings.h"
#include "daemon/view/user_bytes.h"

struct common_text;

struct common_texts {
    struct common_text **chains; /* by digest; owned */
    size_t chain_count, count;
    struct user_bytes held; /* of the users that brought them */
};

/* The text that equals the list, which stays the caller's. NULL: the list is empty. */
struct common_text *common_texts_join(struct common_texts *texts, const struct spec_strings *list);

/* The same of a list of one; NULL gives NULL. */
struct common_text *common_texts_join_one(struct common_texts *texts, const char *text);

/* The same text for one user more. May be NULL. */
struct common_text *common_texts_share(struct common_text *text);

/* It is this user's, unless it is another's already. May be NULL. */
void common_texts_charge(struct common_texts *texts, struct common_text *text, uint32_t uid);

/* It goes with its last user. May be NULL. */
void common_texts_leave(struct common_texts *texts, struct common_text *text);

/* Borrowed until the text is left; an empty list, or NULL, of NULL. */
struct spec_strings common_text_list(const struct common_text *text);
char *common_text_first(const struct common_text *text);

#endif
