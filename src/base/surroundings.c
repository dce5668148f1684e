#include "base/surroundings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strbuf.h"

#define UNLIMITED "unlimited"

/* By ulimit's long names. Priorities are the daemon's: a job does not raise its own. */
static const struct {
    const char *name;
    __rlimit_resource_t resource;
} limits[] = {
    {"core", RLIMIT_CORE},
    {"cpu", RLIMIT_CPU},
    {"data", RLIMIT_DATA},
    {"fsize", RLIMIT_FSIZE},
    {"locks", RLIMIT_LOCKS},
    {"memlock", RLIMIT_MEMLOCK},
    {"msgqueue", RLIMIT_MSGQUEUE},
    {"nofile", RLIMIT_NOFILE},
    {"nproc", RLIMIT_NPROC},
    {"rss", RLIMIT_RSS},
    {"sigpending", RLIMIT_SIGPENDING},
    {"stack", RLIMIT_STACK},
    {"vmem", RLIMIT_AS},
};

char *surroundings_of_caller(void)
{
    const mode_t mask = umask(0);
    struct strbuf line = {0};
    struct rlimit limit;

    umask(mask);
    strbuf_printf(&line, "umask=%04o gid=%u", (unsigned)mask, getegid());
    for (size_t i = 0; i < array_size(limits); i++)
        if (getrlimit(limits[i].resource, &limit) == 0) {
            if (limit.rlim_cur == RLIM_INFINITY)
                strbuf_printf(&line, " %s=" UNLIMITED, limits[i].name);
            else
                strbuf_printf(&line, " %s=%" PRIu64, limits[i].name, (uint64_t)limit.rlim_cur);
        }
    return strbuf_steal(&line);
}

static bool is_number(const char *text, int base, uint64_t most, uint64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoull(text, &end, base);
    return *text >= '0' && *text <= '9' && !*end && errno == 0 && *number <= most;
}

/* What a word sets: `value` in one of the limits, or in the other two. */
struct setting {
    enum { UMASK, GROUP, LIMIT } kind;
    size_t limit;
    uint64_t value;
};

static bool read_word(const char *word, struct setting *setting)
{
    const char *value = strchr(word, '=');
    size_t length = value ? (size_t)(value++ - word) : 0;

    *setting = (struct setting){.kind = LIMIT};
    if (length == 5 && strncmp(word, "umask", length) == 0) {
        setting->kind = UMASK;
        return is_number(value, 8, 0777, &setting->value);
    }
    if (length == 3 && strncmp(word, "gid", length) == 0) {
        setting->kind = GROUP;
        return is_number(value, 10, UINT32_MAX - 1, &setting->value);
    }
    for (size_t i = 0; length && i < array_size(limits); i++) {
        setting->limit = i;
        if (strncmp(word, limits[i].name, length) == 0 && !limits[i].name[length]) {
            setting->value = RLIM_INFINITY;
            return strcmp(value, UNLIMITED) == 0 || is_number(value, 10, RLIM_INFINITY, &setting->value);
        }
    }
    return false;
}

static void take(const struct setting *setting, void *context)
{
    struct rlimit limit;

    (void)context;
    if (setting->kind == UMASK)
        umask((mode_t)setting->value);
    if (setting->kind != LIMIT || getrlimit(limits[setting->limit].resource, &limit) < 0)
        return;
    limit.rlim_cur = setting->value < limit.rlim_max ? setting->value : limit.rlim_max;
    setrlimit(limits[setting->limit].resource, &limit);
}

static void take_group(const struct setting *setting, void *context)
{
    if (setting->kind == GROUP)
        *(gid_t *)context = (gid_t)setting->value;
}

static int each(const char *line, void (*use)(const struct setting *, void *), void *context, struct error *err)
{
    CLEANUP(free_ptr) char *words = xstrdup(line);
    char *rest = NULL;

    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        struct setting setting;
        if (!read_word(word, &setting))
            return error_set(err, EINVAL,
                             "surroundings '%.40s' are not known: words like umask=0022, gid=1000, nofile=1024, "
                             "stack=unlimited",
                             word);
        if (use)
            use(&setting, context);
    }
    return 0;
}

int surroundings_check(const char *line, struct error *err)
{
    return each(line, NULL, NULL, err);
}

gid_t surroundings_group(const char *line)
{
    gid_t group = (gid_t)-1;

    each(line, take_group, &group, NULL);
    return group;
}

void surroundings_take(const char *line)
{
    each(line, take, NULL, NULL);
}
