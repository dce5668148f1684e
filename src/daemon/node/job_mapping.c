#include "daemon/node/job_mapping.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "core/ledger.h"
#include "daemon/log.h"
#include "daemon/node/job_files.h"
#include "daemon/node/node_internal.h"

/* A file that could not be written is retried with a change, or after this time. */
#define RETRY_WALL_NS (10 * NS_PER_SEC)

struct files {
    struct job_file items[GPU_MAX_DEVICES];
    size_t count;
};

struct job_mapping {
    struct daemon *daemon;
    char *directory;     /* owned: the daemon's settings may be gone before the last work is */
    struct files wanted; /* as asked for last */
    bool asked;          /* something was: until the GPUs are known, nothing is said of them */
    bool changed;        /* `wanted`, since it was taken to be written */
    uv_work_t work;
    bool working;
    struct files writing; /* for the pool's thread, like the next two */
    int status;
    struct error err;
    int64_t failed_wall_ns; /* monotonic; 0: the last writing did not */
    bool told;              /* that it fails */
    bool stopping;
};

static void files_release(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].text);
    files->count = 0;
}

static void files_copy(struct files *to, const struct files *from)
{
    files_release(to);
    *to = *from;
    for (size_t i = 0; i < to->count; i++)
        to->items[i].text = xstrdup(from->items[i].text);
}

static bool files_equal(const struct files *a, const struct files *b)
{
    bool equal = a->count == b->count;

    for (size_t i = 0; equal && i < a->count; i++)
        equal = strcmp(a->items[i].name, b->items[i].name) == 0 && strcmp(a->items[i].text, b->items[i].text) == 0;
    return equal;
}

struct job_mapping *job_mapping_new(struct daemon *daemon)
{
    struct job_mapping *mapping;

    if (!daemon->config.hpc_job_mapping_dir)
        return NULL;
    mapping = xcalloc(1, sizeof *mapping);
    mapping->daemon = daemon;
    mapping->directory = xstrdup(daemon->config.hpc_job_mapping_dir);
    return mapping;
}

/* ---- The wanted files ---- */

/* As dcgm-exporter numbers GPUs: by NVML's index, which is not carma's number; an instance by its GPU instance in it.
 */
static void name_of(const struct gpu_reading *reading, char name[static JOB_FILE_NAME])
{
    if (reading->kind == GPU_INSTANCE)
        snprintf(name, JOB_FILE_NAME, "%" PRIu32 ".%" PRIu32, reading->index, reading->gpu_instance);
    else
        snprintf(name, JOB_FILE_NAME, "%" PRIu32, reading->index);
}

/* Several compute instances of one GPU instance share its file. */
static void add(struct files *files, const char *name, const char *lines)
{
    size_t i = 0;

    while (i < files->count && strcmp(files->items[i].name, name) != 0)
        i++;
    if (i == array_size(files->items))
        return;
    if (i == files->count) {
        memcpy(files->items[i].name, name, JOB_FILE_NAME);
        files->items[files->count++].text = xstrdup(lines);
    } else {
        char *both = xasprintf("%s%s", files->items[i].text, lines);
        free(files->items[i].text);
        files->items[i].text = both;
    }
}

/* GPUs without jobs have no file. */
static void find_wanted(const struct daemon *daemon, struct files *files)
{
    const struct node *node = daemon->node;

    for (uint32_t i = 0; i < node->count; i++) {
        const struct node_gpu *entry = node->gpus[i];
        const struct gpu *gpu = core_gpu(daemon->core, entry->number);
        CLEANUP(strbuf_release) struct strbuf lines = {0};
        char name[JOB_FILE_NAME];

        if (!entry->there || !gpu || gpu->resident_count == 0)
            continue;
        for (uint32_t k = 0; k < gpu->resident_count; k++)
            strbuf_printf(&lines, "%" PRIu64 "\n", gpu->residents[k]->id);
        name_of(&entry->reading, name);
        add(files, name, lines.text);
    }
}

/* ---- Writing ---- */

static void begin(struct job_mapping *mapping);

static void on_pool(uv_work_t *work)
{
    struct job_mapping *mapping = work->data;

    mapping->status = job_files_set(mapping->directory, mapping->writing.items, mapping->writing.count, &mapping->err);
}

static void end(struct job_mapping *mapping)
{
    files_release(&mapping->wanted);
    files_release(&mapping->writing);
    free(mapping->directory);
    free(mapping);
}

static void on_written(uv_work_t *work, int cancelled)
{
    struct job_mapping *mapping = work->data;

    (void)cancelled; /* never is */
    mapping->working = false;
    if (mapping->status != 0 && !mapping->told)
        daemon_log("dcgm-exporter is not told of jobs: %s", mapping->err.text);
    else if (mapping->status == 0 && mapping->told)
        daemon_log("dcgm-exporter is told of jobs again");
    mapping->told = mapping->status != 0;
    mapping->failed_wall_ns = mapping->status != 0 ? nodetime_monotonic_wall_ns() : 0;
    if (mapping->changed)
        begin(mapping);
    else if (mapping->stopping)
        end(mapping);
}

static void begin(struct job_mapping *mapping)
{
    files_copy(&mapping->writing, &mapping->wanted);
    mapping->changed = false;
    mapping->working = true;
    mapping->work.data = mapping;
    uv_queue_work(mapping->daemon->loop, &mapping->work, on_pool, on_written);
}

static bool is_known(const struct node *node)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (node->gpus[i]->at_ns)
            return true;
    return false;
}

void job_mapping_follow(struct job_mapping *mapping)
{
    struct files wanted = {.count = 0};

    if (!mapping || mapping->stopping || !is_known(mapping->daemon->node))
        return;
    find_wanted(mapping->daemon, &wanted);
    if (!mapping->asked || !files_equal(&wanted, &mapping->wanted)) {
        files_release(&mapping->wanted);
        mapping->wanted = wanted;
        mapping->asked = mapping->changed = true;
    } else {
        files_release(&wanted);
        if (mapping->failed_wall_ns && nodetime_monotonic_wall_ns() - mapping->failed_wall_ns > RETRY_WALL_NS)
            mapping->changed = true;
    }
    if (mapping->changed && !mapping->working)
        begin(mapping);
}

void job_mapping_free(struct job_mapping *mapping)
{
    if (!mapping)
        return;
    mapping->stopping = true;
    files_release(&mapping->wanted);
    mapping->changed = mapping->asked;
    if (mapping->working)
        return;
    if (mapping->changed)
        begin(mapping);
    else
        end(mapping);
}
