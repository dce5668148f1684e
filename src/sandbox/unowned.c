#include "sandbox/unowned.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

#define WITHOUT_FILE "/dev/zero (deleted)" /* the name of each shared mapping without a file (proc_pid_maps(5)) */

struct object {
    uint64_t inode;
    int64_t bytes; /* up to the last that is mapped */
};

struct objects {
    struct object *items;
    size_t count, capacity;
};

static FILE *open_text(int proc, const char *pid, const char *name)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", pid, name);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);

    return fd >= 0 ? fdopen(fd, "r") : NULL;
}

static void add_process(int proc, const char *pid, struct objects *objects)
{
    FILE *maps = open_text(proc, pid, "maps");
    char *line = NULL;
    size_t room = 0;

    while (maps && getline(&line, &room, maps) > 0) {
        uint64_t from, to, offset, inode;
        if (!strstr(line, WITHOUT_FILE) ||
            sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %" SCNu64, &from, &to, &offset, &inode) != 4)
            continue;
        array_reserve(objects->items, objects->capacity, objects->count + 1);
        objects->items[objects->count++] = (struct object){inode, (int64_t)(offset + to - from)};
    }
    free(line);
    if (maps)
        fclose(maps);
}

/* The largest of an object is its last. */
static int compare(const void *left, const void *right)
{
    const struct object *a = left, *b = right;

    return a->inode != b->inode ? (a->inode > b->inode) - (a->inode < b->inode)
                                : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static int64_t sum_of_objects(int proc)
{
    int own = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = own >= 0 ? fdopendir(own) : NULL;
    const struct dirent *entry;
    struct objects objects = {0};
    int64_t sum = 0;

    while (entries && (entry = readdir(entries)))
        if (isdigit((unsigned char)entry->d_name[0]))
            add_process(proc, entry->d_name, &objects);
    if (entries)
        closedir(entries);
    if (objects.count)
        qsort(objects.items, objects.count, sizeof *objects.items, compare);
    for (size_t i = 0; i < objects.count; i++)
        if (i + 1 == objects.count || objects.items[i].inode != objects.items[i + 1].inode)
            sum += objects.items[i].bytes;
    free(objects.items);
    return sum;
}

/* The sandbox's first process tells of its network namespace. */
static int64_t sum_of_sockets(int proc)
{
    static const char *const files[] = {"net/sockstat", "net/sockstat6"};
    int64_t sum = 0, number;
    char line[256];

    for (size_t i = 0; i < array_size(files); i++) {
        FILE *counts = open_text(proc, "1", files[i]);
        while (counts && fgets(line, sizeof line, counts))
            if (sscanf(line, "sockets: used %" SCNd64, &number) == 1)
                sum += number * UNOWNED_SOCKET_BYTES;
            else if (sscanf(line, "TCP: inuse %" SCNd64, &number) == 1 ||
                     sscanf(line, "TCP6: inuse %" SCNd64, &number) == 1)
                sum += number * 2 * UNOWNED_TCP_BYTES;
        if (counts)
            fclose(counts);
    }
    return sum;
}

int64_t unowned_bytes(int proc)
{
    return sum_of_objects(proc) + sum_of_sockets(proc);
}
