#include "launch/cgroup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

#define TEXT_LIMIT 16384

char *cgroup_parse(const char *text)
{
    for (const char *line = text; line && *line;) {
        size_t length = strcspn(line, "\n");
        if (strncmp(line, "0::/", 4) == 0)
            return xstrndup(line + 3, length - 3);
        line = line[length] ? line + length + 1 : NULL;
    }
    return NULL;
}

char *cgroup_of(pid_t pid)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/cgroup", (int)pid);
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;

    return file_read(path, TEXT_LIMIT, &text, &length, NULL) < 0 ? NULL : cgroup_parse(text);
}

bool cgroup_is_within(const char *path, const char *group)
{
    size_t length = strlen(group);

    while (length && group[length - 1] == '/')
        length--;
    return strncmp(path, group, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

int64_t cgroup_oom_kills(const char *path)
{
    const char *root = getenv("CARMA_CGROUP_ROOT");
    CLEANUP(free_ptr) char *file = xasprintf("%s%s/memory.events", root ? root : CGROUP_ROOT, path);
    CLEANUP(free_ptr) char *text = NULL;
    const char *line;
    int64_t count;
    size_t length;

    if (file_read(file, TEXT_LIMIT, &text, &length, NULL) < 0)
        return -1;
    line = strncmp(text, "oom_kill ", 9) == 0 ? text : strstr(text, "\noom_kill ");
    return line && sscanf(line, " oom_kill %" SCNd64, &count) == 1 && count >= 0 ? count : -1;
}
