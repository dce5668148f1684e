/* How this file works: known_take() compares a job's present form with its entry. One that has ended is forgotten once
 * the floor has passed its end: its events count as told then. */
#include "notify/known.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/units.h"
#include "core/record.h"

#define BEHIND_NS (600 * NS_PER_SEC)  /* the floor is so far behind the time: an event may be seen late */
#define KEEP_NS   (5 * NS_PER_SEC)    /* how often it is written down */
#define OLD_NS    (3600 * NS_PER_SEC) /* what happened so long before carma-notify began is told to nobody any more */

struct entry {
    uint64_t id;
    bool started, ended, warned;
    int64_t crashes, idle_step;
    int64_t ended_ns;
    int64_t due_ns; /* when to warn of its time limit; 0: never */
    json_t *job;    /* where due_ns is set */
    UT_hash_handle hh;
};

struct known {
    char *path;
    int64_t floor_ns; /* -1: the first time that is seen */
    int64_t now_ns, kept_ns;
    struct entry *entries;
};

struct known *known_new(const char *path)
{
    static const struct json_bounds most = {.values = 16, .depth = 2, .bytes = 256};
    struct known *known = xcalloc(1, sizeof *known);
    CLEANUP(free_ptr) char *text = NULL;
    json_t *json = NULL;
    size_t length;

    known->path = path ? xstrdup(path) : NULL;
    known->floor_ns = -1;
    if (path && file_read(path, 4096, &text, &length, NULL) == 0 &&
        json_read(text, length, 0, &most, &json, NULL) == 0 && json_is_integer(json_object_get(json, "told_until_ns")))
        known->floor_ns = json_integer_value(json_object_get(json, "told_until_ns"));
    json_decref(json);
    return known;
}

static void keep(struct known *known)
{
    CLEANUP(free_ptr) char *text = xasprintf("{\"told_until_ns\": %" PRId64 "}\n", known->now_ns);

    known->kept_ns = known->now_ns;
    if (known->path && known->now_ns)
        file_replace(known->path, text, strlen(text), 0600, NULL);
}

static void forget(struct known *known, struct entry *entry)
{
    HASH_DEL(known->entries, entry);
    json_decref(entry->job);
    free(entry);
}

void known_free(struct known *known)
{
    struct entry *entry, *next;

    keep(known);
    HASH_ITER (hh, known->entries, entry, next)
        forget(known, entry);
    free(known->path);
    free(known);
}

static int64_t number(const json_t *job, const char *member, int64_t otherwise)
{
    const json_t *value = json_object_get(job, member);

    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

static bool is_in(const json_t *job, const char *member, const char *words)
{
    CLEANUP(free_ptr) char *word = NULL;
    const char *text = json_string_value(json_object_get(job, member));

    word = xasprintf(" %s ", text ? text : "?");
    return strstr(words, word) != NULL;
}

/* When to warn of its time limit; 0: never. */
static int64_t due_ns(const json_t *job)
{
    const char *wanted = json_string_value(json_object_get(job, "notify"));
    int64_t started_ns = number(job, "started_ns", 0), limit_ns = number(job, "time_limit_ns", 0);
    struct notify_words words;

    if (!wanted || notify_parse(wanted, &words, NULL) || !(words.events >> NOTIFY_TIMEOUT & 1) || limit_ns <= 0 ||
        started_ns <= 0 || !is_in(job, "state", " RUNNING "))
        return 0;
    return started_ns + (words.before_ns < limit_ns ? limit_ns - words.before_ns : 0);
}

static void await_limit(struct entry *entry, const json_t *job)
{
    int64_t at_ns = due_ns(job);

    if (at_ns != entry->due_ns)
        entry->warned = false; /* another run, or another limit */
    entry->due_ns = at_ns;
    json_decref(entry->job);
    entry->job = at_ns ? json_incref((json_t *)job) : NULL;
}

static void take_oom(struct known *known, struct entry *entry, const json_t *job, bool first, int64_t now_ns,
                     known_tell *tell, void *user)
{
    int64_t crashes = number(job, "crashes", 0);
    int64_t at_ns = number(job, "crashed_ns", is_in(job, "state", " GPU_OOM ") ? number(job, "ended_ns", 0) : 0);

    if (crashes > entry->crashes && (first ? at_ns : now_ns) > known->floor_ns)
        tell(user, job, NOTIFY_OOM);
    entry->crashes = crashes;
}

/* Nobody knows when it was warned that was warned before carma-notify began: the next time is told. */
static void take_idle(struct entry *entry, const json_t *job, bool first, known_tell *tell, void *user)
{
    int64_t step = number(job, "idle_step", 0);

    if (step > entry->idle_step && step < IDLE_ENDED && !first)
        tell(user, job, NOTIFY_IDLE);
    entry->idle_step = step;
}

void known_take(struct known *known, const json_t *job, int64_t now_ns, known_tell *tell, void *user)
{
    uint64_t id = (uint64_t)number(job, "id", 0);
    int64_t started_ns = number(job, "first_started_ns", -1), ended_ns = number(job, "ended_ns", -1);
    struct entry *entry;
    bool first;

    if (known->floor_ns < 0)
        known->floor_ns = now_ns;
    if (!known->now_ns && known->floor_ns < now_ns - OLD_NS)
        known->floor_ns = now_ns - OLD_NS;
    HASH_FIND(hh, known->entries, &id, sizeof id, entry);
    first = !entry;
    if (first && ended_ns >= 0 && ended_ns <= known->floor_ns)
        return;
    if (first) {
        entry = xcalloc(1, sizeof *entry);
        entry->id = id;
        HASH_ADD(hh, known->entries, id, sizeof entry->id, entry);
    }
    if (started_ns >= 0 && !entry->started && started_ns > known->floor_ns)
        tell(user, job, NOTIFY_START);
    entry->started |= started_ns >= 0;
    take_oom(known, entry, job, first, now_ns, tell, user);
    take_idle(entry, job, first, tell, user);
    await_limit(entry, job);
    if (ended_ns < 0 || entry->ended)
        return;
    entry->ended = true;
    entry->ended_ns = ended_ns;
    tell(user, job, NOTIFY_END);
}

void known_pass(struct known *known, int64_t now_ns, known_tell *tell, void *user)
{
    struct entry *entry, *next;

    if (known->floor_ns < 0)
        known->floor_ns = now_ns;
    HASH_ITER (hh, known->entries, entry, next) {
        if (entry->due_ns && !entry->warned && now_ns >= entry->due_ns) {
            entry->warned = true;
            if (entry->due_ns > known->floor_ns)
                tell(user, entry->job, NOTIFY_TIMEOUT);
        }
        if (entry->ended && entry->ended_ns <= known->floor_ns)
            forget(known, entry);
    }
    known->now_ns = now_ns;
    if (now_ns - BEHIND_NS > known->floor_ns)
        known->floor_ns = now_ns - BEHIND_NS;
    if (now_ns - known->kept_ns > KEEP_NS || now_ns < known->kept_ns)
        keep(known);
}
