#include "api/told/notify.h"

#include <errno.h>
#include <string.h>

#include "api/job_signal.h"
#include "base/memory.h"
#include "base/text/nearest.h"

const char *const notify_event_names[NOTIFY_EVENTS] = {
    [NOTIFY_START] = "start", [NOTIFY_END] = "end",         [NOTIFY_FAIL] = "fail",
    [NOTIFY_OOM] = "oom",     [NOTIFY_TIMEOUT] = "timeout", [NOTIFY_IDLE] = "idle",
};

static int parse_one(const char *word, struct notify_words *words, struct error *err)
{
    const char *value = strchr(word, '=');
    size_t length = value ? (size_t)(value - word) : strlen(word);
    uint32_t event = 0;

    while (event < NOTIFY_EVENTS &&
           (strlen(notify_event_names[event]) != length || memcmp(notify_event_names[event], word, length) != 0))
        event++;
    if (event == NOTIFY_EVENTS)
        return nearest_refuse(err, "notify", word, "start, end, fail, oom, idle or timeout=TIME");
    if ((event == NOTIFY_TIMEOUT) != (value != NULL))
        return error_set(err, EINVAL, "notify '%.40s': %s", word,
                         value ? "only timeout has a time" : "say how long before its time limit, e.g. timeout=30m");
    words->events |= UINT32_C(1) << event;
    return value ? job_time_parse(value + 1, &words->before_ns, err) : 0;
}

int notify_parse(const char *text, struct notify_words *words, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrdup(text);
    int rc = 0;

    *words = (struct notify_words){0};
    for (char *word = copy, *next; word && rc == 0; word = next) {
        next = strchr(word, ',');
        if (next)
            *next++ = '\0';
        rc = parse_one(word, words, err);
    }
    return rc;
}

int notify_check(const char *text, struct error *err)
{
    struct notify_words ignored;

    return notify_parse(text, &ignored, err);
}
