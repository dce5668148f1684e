/* The secret with which a client over TCP proves its user: a file that only its owner can read. */
#ifndef CARMA_BASE_TRUST_TOKEN_H
#define CARMA_BASE_TRUST_TOKEN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

#define TOKEN_MIN 32 /* characters */
#define TOKEN_MAX 512

struct token {
    char text[TOKEN_MAX + 1]; /* zeros behind its end */
    uid_t owner;              /* of the file */
};

/* The file's one line: visible ASCII characters without blanks. -EPERM: others may read or write the file, or it
 * belongs to neither the caller nor root; root may read any user's. -EINVAL: the content is not a token. */
int token_read(const char *path, struct token *token, struct error *err);

/* Takes equally long for every `text`, right or wrong. */
bool token_matches(const struct token *token, const char *text);

#endif
