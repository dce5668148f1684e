/* A stored log, record by record into the core: taken or refused in one line; its snapshot gives back every state. */
#include <string.h>

#include "api/record_json.h"
#include "base/memory.h"
#include "core/snapshot.h"
#include "fuzz.h"

static void decide(struct core *core, int64_t now_ns)
{
    CLEANUP(record_list_release) struct record_list decisions = {0};

    core_decide(core, now_ns, &decisions);
    require(core_next_wake_ns(core, now_ns) > now_ns);
}

static void check_snapshot(const struct core *core)
{
    CLEANUP(free_ptr) char *before = core_dump(core);
    struct core *restored = core_new();
    CLEANUP(record_list_release) struct record_list snapshot = {0};
    struct error err;

    core_snapshot(core, 1, &snapshot);
    for (size_t i = 0; i < snapshot.count; i++)
        require(core_apply(restored, &snapshot.items[i], &err) == 0);
    CLEANUP(free_ptr) char *after = core_dump(restored);
    require(strcmp(before, after) == 0);
    core_free(restored);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct core *core = core_new();
    const char *at = (const char *)bytes, *end = at + length;
    bool restoring = false;

    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t line = (size_t)((newline ? newline : end) - at);
        struct error err = {{0}};
        struct record record;

        if (record_json_read(at, line, &record, &err) != 0) {
            require_message(&err);
        } else if (restoring && !record_is_state(record.type) && core_check(core, &err) != 0) {
            break; /* not a snapshot: loading stops here */
        } else if (core_apply(core, &record, &err) != 0) {
            require_message(&err);
        } else {
            restoring = record_is_state(record.type);
            if (!restoring)
                decide(core, record.at_ns);
        }
        at += line + (newline != NULL);
    }
    if (core_check(core, NULL) == 0)
        check_snapshot(core);
    core_free(core);
    return 0;
}
