#include "slurm/shared/spool.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "slurm/shared/ask.h"

enum { FACT_BYTES = 4096, PAUSE_MS = 10 };

int spool_order(const char *folder, uint32_t job, uint32_t restart, const char *what, const char *lines,
                struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%u.%u.%s", folder, job, restart, what);

    return file_write_atomic(path, lines, strlen(lines), 0600, err);
}

bool spool_await(const char *folder, uint32_t job, uint32_t restart, const char *what, int64_t deadline_ms)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%u.%u.%s", folder, job, restart, what);

    while (access(path, F_OK) == 0) {
        if (ask_now_ms() >= deadline_ms)
            return false;
        poll(NULL, 0, PAUSE_MS);
    }
    return true;
}

int spool_put_text(const char *folder, uint32_t job, const char *name, const char *text)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%u.%s", folder, job, name);

    return file_replace(path, text, strlen(text), 0600, NULL);
}

int spool_put(const char *folder, uint32_t job, const char *name, int64_t value)
{
    char text[32];

    snprintf(text, sizeof text, "%lld\n", (long long)value);
    return spool_put_text(folder, job, name, text);
}

bool spool_get_text(const char *folder, uint32_t job, const char *name, char *text, size_t size)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%u.%s", folder, job, name);
    CLEANUP(free_ptr) char *found = NULL;
    size_t length;

    if (file_read(path, FACT_BYTES, &found, &length, NULL) || length == 0 || length >= size)
        return false;
    snprintf(text, size, "%s", found);
    return true;
}

bool spool_get(const char *folder, uint32_t job, const char *name, int64_t *value)
{
    char text[32], *end;

    if (!spool_get_text(folder, job, name, text, sizeof text))
        return false;
    *value = strtoll(text, &end, 10);
    return end > text;
}

void spool_forget(const char *folder, uint32_t job, const char *name)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%u.%s", folder, job, name);

    unlink(path);
}
