/* The table of settings, and the text of a value; private to this module. */
#ifndef CARMA_CONFIG_KEYS_H
#define CARMA_CONFIG_KEYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "base/strbuf.h"
#include "base/units.h"
#include "config/config.h"

enum key_kind {
    POLICY,   /* names of presets and of the core's table, joined by '+' */
    CHOICE,   /* one of `choices`, kept as its index */
    SIZE,     /* bytes */
    DURATION, /* nanoseconds */
    SHARE,    /* a part of one, kept in permille */
    RATIO,    /* a factor of at least 1, kept in permille; 0: none */
    COUNT,
    COUNT_OR_AUTO, /* auto: 0 */
    SWITCH,        /* yes or no */
    SHARING,       /* config/share.h */
    PATH,          /* absolute */
    OPTIONAL_PATH, /* as PATH; empty: not set */
    LIBRARY,       /* absolute, or a bare name that the loader looks up; empty: not set */
    PROFILE,       /* absolute, or the name of a built-in machine profile; empty: not set */
    ADDRESS,       /* of TCP; empty: not set */
    GROUP,         /* a name; empty: not set */
    USER_SHARES,   /* config/user_shares.h; empty: not set; the same: */
    USER_GROUPS
};

#define MAX_SOCKET (sizeof((struct sockaddr_un *)NULL)->sun_path - 1)
#define MINUTES(n) (INT64_C(60) * (n)*NS_PER_SEC)

struct key {
    const char *name;
    enum key_kind kind;
    size_t offset;
    int64_t low;
    int64_t high; /* PATH: most bytes */
    const char *const *choices;
    const char *help;
};

#define KEY_AUTO "auto"

extern const struct key config_keys[];
extern const size_t config_key_count;
extern const char *const config_switches[]; /* the choices of a SWITCH */

/* The setting's place in *config. */
static inline void *key_at(const struct config *config, const struct key *key)
{
    return (char *)config + key->offset;
}

/* Appends "monitor or reserve", "0% to 100%", "an absolute path": the values that the key takes. */
void key_describe_allowed(const struct key *key, struct strbuf *out);

#endif
