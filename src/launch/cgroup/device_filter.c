#include "launch/cgroup/device_filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "launch/cgroup/cgroup.h"

#define KEPT 32 /* sets of GPUs that jobs have, in turns, on a large node */

/* ---- Which nodes ---- */

/* The number behind the key in a file of "KEY NUMBER" lines; -1: there is none. */
static int64_t number_behind(const char *text, const char *key)
{
    size_t length = strlen(key);

    for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        uint32_t number;
        if (strncmp(line, key, length) == 0 && sscanf(line + length, " %" SCNu32, &number) == 1)
            return number;
    }
    return -1;
}

int device_filter_add_instance(struct device_filter *filter, const char *mig_minors, uint32_t gpu_minor,
                               uint32_t gpu_instance, uint32_t compute_instance)
{
    CLEANUP(free_ptr) char *gpu = xasprintf("gpu%" PRIu32 "/gi%" PRIu32 "/access ", gpu_minor, gpu_instance);
    CLEANUP(free_ptr)
    char *compute =
        xasprintf("gpu%" PRIu32 "/gi%" PRIu32 "/ci%" PRIu32 "/access ", gpu_minor, gpu_instance, compute_instance);
    int64_t nodes[] = {number_behind(mig_minors, gpu), number_behind(mig_minors, compute)};

    for (size_t i = 0; i < array_size(nodes); i++) {
        if (nodes[i] < 0 || filter->cap_count == DEVICE_FILTER_CAPS)
            return -ENOENT;
        filter->caps[filter->cap_count++] = (uint32_t)nodes[i];
    }
    return 0;
}

/* ---- Into the kernel ---- */

/* Those that were asked for last. */
static struct kept {
    char *text; /* owned; NULL: none */
    int program;
} kept[KEPT];
static size_t kept_in_all;

int device_filter_kept(const char *text)
{
    struct kept *oldest = &kept[kept_in_all % KEPT];
    struct device_filter filter;
    int program;

    for (size_t i = 0; i < KEPT; i++)
        if (kept[i].text && strcmp(kept[i].text, text) == 0)
            return kept[i].program;
    program = device_filter_parse(text, &filter) < 0 ? -EINVAL : device_filter_load(&filter);
    if (program < 0)
        return program;
    if (oldest->text)
        close_fd(&oldest->program);
    free(oldest->text);
    *oldest = (struct kept){.text = xstrdup(text), .program = program};
    kept_in_all++;
    return program;
}

int device_filter_put_on(int program, const char *cgroup, struct error *err)
{
    CLEANUP(close_fd) int group = cgroup_open(cgroup);
    int code = program < 0 ? program : group < 0 ? group : device_filter_put(program, group);

    return code < 0 ? error_set(err, code, "cannot put a device filter on the control group '%s': %s", cgroup,
                                strerror(-code))
                    : 0;
}

int device_filter_attach(const struct device_filter *filter, const char *cgroup, struct error *err)
{
    CLEANUP(close_fd) int program = device_filter_load(filter);

    return device_filter_put_on(program, cgroup, err);
}

int device_filter_try(struct error *err)
{
    CLEANUP(free_ptr) char *name = xasprintf("try-%d", (int)getpid());
    CLEANUP(free_ptr) char *cgroup = cgroup_make(name);
    int code;

    if (!cgroup)
        return error_set(err, ENOENT, "no control group of version 2 can be made here");
    code = device_filter_attach(&(struct device_filter){0}, cgroup, err);
    cgroup_remove(cgroup);
    return code;
}

int device_filter_load_try(struct error *err)
{
    CLEANUP(close_fd) int program = device_filter_load(&(struct device_filter){0});

    return program < 0 ? error_set(err, program, "the kernel takes no device filter: %s", strerror(-program)) : 0;
}

/* ---- As text ---- */

static void print_list(struct strbuf *text, const uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        strbuf_printf(text, "%s%" PRIu32, i ? "," : "", numbers[i]);
}

char *device_filter_print(const struct device_filter *filter)
{
    struct strbuf text = {0};

    print_list(&text, filter->gpus, filter->gpu_count);
    strbuf_printf(&text, ";%" PRIu32 ";", filter->caps_major);
    print_list(&text, filter->caps, filter->cap_count);
    return strbuf_steal(&text);
}

static bool parse_list(const char **at, char end, uint32_t *numbers, uint32_t most, uint32_t *count)
{
    for (*count = 0; **at != end; *at += **at == ',') {
        char *behind;
        unsigned long number = strtoul(*at, &behind, 10);
        if (behind == *at || (*behind != ',' && *behind != end) || number > UINT32_MAX || *count == most)
            return false;
        numbers[(*count)++] = (uint32_t)number;
        *at = behind;
    }
    *at += end != '\0';
    return true;
}

int device_filter_parse(const char *text, struct device_filter *filter)
{
    uint32_t count;

    *filter = (struct device_filter){0};
    return parse_list(&text, ';', filter->gpus, RECORD_MAX_GPUS, &filter->gpu_count) &&
                   parse_list(&text, ';', &filter->caps_major, 1, &count) && count == 1 &&
                   parse_list(&text, '\0', filter->caps, DEVICE_FILTER_CAPS, &filter->cap_count)
               ? 0
               : -EINVAL;
}
