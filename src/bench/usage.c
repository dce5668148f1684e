#include "bench/usage.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

/* As proc(5) has it. */
struct look {
    pid_t pid, session;
    char name[32];
    uint64_t ticks, start_ticks;
    int64_t resident_pages;
};

static bool look_at(const char *pid, struct look *look)
{
    char path[300], text[1024];
    const char *name, *after;
    unsigned long long user, system, start;
    long long pages;
    int fd, session;
    ssize_t length;

    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    name = strchr(text, '(');
    after = strrchr(text, ')');
    if (!name || !after || after < name ||
        sscanf(after + 1, " %*c %*d %*d %d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu %*u %lld",
               &session, &user, &system, &start, &pages) != 5)
        return false;
    *look = (struct look){
        .pid = atoi(pid), .session = session, .ticks = user + system, .start_ticks = start, .resident_pages = pages};
    snprintf(look->name, sizeof look->name, "%.*s", (int)(after - name - 1), name + 1);
    return true;
}

static bool is_meant(const struct bench_usage *usage, const struct look *look)
{
    return (usage->session && look->session == usage->session) || (usage->name && strcmp(look->name, usage->name) == 0);
}

static void add(struct bench_usage *usage, const struct look *look)
{
    struct bench_process *process = NULL;

    for (size_t i = 0; i < usage->count && !process; i++)
        if (usage->processes[i].pid == look->pid && usage->processes[i].start_ticks == look->start_ticks)
            process = &usage->processes[i];
    if (!process) {
        array_reserve(usage->processes, usage->capacity, usage->count + 1);
        process = &usage->processes[usage->count++];
        /* A session's process worked for us; one found by its name may be as old as the machine. */
        *process = (struct bench_process){.pid = look->pid,
                                          .start_ticks = look->start_ticks,
                                          .first_ticks = look->session == usage->session ? 0 : look->ticks};
    }
    process->last_ticks = look->ticks;
    usage->memory_bytes += look->resident_pages * sysconf(_SC_PAGESIZE);
}

void bench_usage_look(struct bench_usage *usages, size_t count)
{
    DIR *directory = opendir("/proc");
    struct dirent *entry;
    struct look look;

    for (size_t i = 0; i < count; i++)
        usages[i].memory_bytes = 0;
    while (directory && (entry = readdir(directory)))
        if (isdigit((unsigned char)entry->d_name[0]) && look_at(entry->d_name, &look))
            for (size_t i = 0; i < count; i++)
                if (is_meant(&usages[i], &look))
                    add(&usages[i], &look);
    if (directory)
        closedir(directory);
    for (size_t i = 0; i < count; i++) {
        struct bench_usage *usage = &usages[i];
        uint64_t ticks = 0;
        for (size_t p = 0; p < usage->count; p++)
            ticks += usage->processes[p].last_ticks - usage->processes[p].first_ticks;
        usage->cpu_s = (double)ticks / (double)sysconf(_SC_CLK_TCK);
        if (usage->memory_bytes > usage->memory_peak_bytes)
            usage->memory_peak_bytes = usage->memory_bytes;
    }
}

void bench_usage_release(struct bench_usage *usage)
{
    free_ptr(&usage->processes);
    usage->count = usage->capacity = 0;
}
