#include "trace/profile.h"

#include <errno.h>
#include <ini.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/install.h"
#include "base/memory.h"
#include "base/text/nearest.h"
#include "base/units.h"

#define PROFILE_LIMIT 65536

enum kind { KIND_TEXT, KIND_U32, KIND_WATTS, KIND_MILLIWATTS, KIND_MIB, KIND_VERSION, KIND_YES_NO, KIND_INSTANCES };

/* Every key of a profile; all are required but those that say so. */
static const struct key {
    const char *section, *name;
    enum kind kind;
    size_t offset, room;
    int64_t low, high; /* of numbers, in the profile's unit */
    bool optional;
} keys[] = {
#define KEY(section, name, kind, member, low, high, ...)                                                               \
    {                                                                                                                  \
        section, name, kind, offsetof(struct node_profile, member), sizeof((struct node_profile *)0)->member, low,     \
            high, __VA_ARGS__                                                                                          \
    }
    KEY("node", "name", KIND_TEXT, name, 0, 0),
    KEY("node", "gpus", KIND_U32, gpu_count, 1, PROFILE_MAX_GPUS),
    KEY("node", "driver_version", KIND_TEXT, driver_version, 0, 0),
    KEY("node", "cuda_version", KIND_VERSION, cuda_version, 1, 1000),
    KEY("gpu", "name", KIND_TEXT, gpu_name, 0, 0),
    KEY("gpu", "memory_mib", KIND_MIB, total_bytes, 1, 16 * 1024 * 1024),
    KEY("gpu", "reserved_mib", KIND_MIB, reserved_bytes, 0, 16 * 1024 * 1024),
    KEY("gpu", "idle_w", KIND_WATTS, idle_w, 0, 10000),
    KEY("gpu", "full_w", KIND_WATTS, full_w, 1, 10000),
    KEY("gpu", "power_limit_w", KIND_MILLIWATTS, power_limit_mw, 1, 10000),
    KEY("gpu", "power_limit_min_w", KIND_MILLIWATTS, power_limit_min_mw, 1, 10000),
    KEY("gpu", "compute_major", KIND_U32, compute_major, 1, 99),
    KEY("gpu", "compute_minor", KIND_U32, compute_minor, 0, 9),
    KEY("gpu", "architecture", KIND_U32, architecture, 1, 99),
    KEY("gpu", "cores", KIND_U32, cores, 1, 1000000),
    KEY("gpu", "clock_idle_mhz", KIND_U32, clock_idle_mhz, 1, 10000),
    KEY("gpu", "clock_max_mhz", KIND_U32, clock_max_mhz, 1, 10000),
    KEY("gpu", "clock_memory_mhz", KIND_U32, clock_memory_mhz, 1, 10000),
    KEY("gpu", "pci_device_id", KIND_U32, pci_device_id, 1, 0xffff),
    KEY("gpu", "pcie_generation", KIND_U32, pcie_generation, 1, 9),
    KEY("gpu", "gpm", KIND_YES_NO, gpm, 0, 0, .optional = true),
    KEY("gpu", "unified", KIND_YES_NO, unified, 0, 0, .optional = true),
    KEY("mig", "gpus", KIND_U32, mig_gpus, 1, PROFILE_MAX_GPUS, .optional = true),
    KEY("mig", "instances", KIND_INSTANCES, instances, 0, 0, .optional = true),
};

struct parse {
    struct node_profile *profile;
    const char *path;
    bool seen[array_size(keys)];
    struct error *err;
    bool failed;
};

/* inih goes on after a key that was refused and at the end returns the first such line: only that one's text counts. */
static int fail(struct parse *parse, const char *name, const char *value, const char *should)
{
    if (!parse->failed)
        error_set(parse->err, EINVAL, "%.40s = '%.40s' should be %s", name, value, should);
    parse->failed = true;
    return 0;
}

static int set_number(struct parse *parse, const struct key *key, char *at, const char *value)
{
    char should[64], *end;
    double number = key->kind == KIND_U32 ? (double)strtoull(value, &end, 0) : strtod(value, &end);

    if (end == value || *end || !(number >= (double)key->low && number <= (double)key->high)) {
        snprintf(should, sizeof should, "a number from %lld to %lld", (long long)key->low, (long long)key->high);
        return fail(parse, key->name, value, should);
    }
    if (key->kind == KIND_WATTS)
        *(double *)(void *)at = number;
    else if (key->kind == KIND_MIB)
        *(int64_t *)(void *)at = (int64_t)number * MIB;
    else if (key->kind == KIND_MILLIWATTS)
        *(uint32_t *)(void *)at = (uint32_t)(number * 1000);
    else if (key->kind == KIND_VERSION) /* 12.4 -> 12040 */
        *(int32_t *)(void *)at = (int32_t)number * 1000 + (int32_t)(number * 10 + 0.5) % 10 * 10;
    else
        *(uint32_t *)(void *)at = (uint32_t)number;
    return 1;
}

/* "3g.20gb 2g.10gb": names of NVIDIA's instance profiles; their sizes are in GB until check() has them. */
static int set_instances(struct parse *parse, const char *name, const char *value)
{
    struct node_profile *profile = parse->profile;

    for (const char *at = value; *at;) {
        struct profile_instance *instance = &profile->instances[profile->instance_count];
        size_t length = strcspn(at, " ");
        unsigned int slices, gb;
        char rest;

        if (profile->instance_count == PROFILE_MAX_INSTANCES || length >= sizeof instance->name)
            return fail(parse, name, value, "at most 7 instances, as \"3g.20gb 2g.10gb\"");
        memcpy(instance->name, at, length);
        if (sscanf(instance->name, "%1ug.%3ugb%c", &slices, &gb, &rest) != 2 || slices < 1 || slices > 7 || gb < 1)
            return fail(parse, name, value, "instances as \"3g.20gb 2g.10gb\"");
        instance->slices = slices;
        instance->bytes = (int64_t)gb * GIB;
        profile->instance_count++;
        at += length + strspn(at + length, " ");
    }
    return 1;
}

static int on_key(void *user, const char *section, const char *name, const char *value)
{
    struct parse *parse = user;

    for (size_t i = 0; i < array_size(keys); i++) {
        const struct key *key = &keys[i];
        char *at = (char *)parse->profile + key->offset;

        if (strcmp(section, key->section) != 0 || strcmp(name, key->name) != 0)
            continue;
        if (parse->seen[i])
            return fail(parse, name, value, "given once only");
        parse->seen[i] = true;
        if (key->kind == KIND_INSTANCES)
            return set_instances(parse, name, value);
        if (key->kind == KIND_YES_NO) {
            *(bool *)(void *)at = strcmp(value, "yes") == 0;
            return strcmp(value, "yes") == 0 || strcmp(value, "no") == 0 ? 1 : fail(parse, name, value, "yes or no");
        }
        if (key->kind != KIND_TEXT)
            return set_number(parse, key, at, value);
        if (!*value || strlen(value) >= key->room)
            return fail(parse, name, value, "a short text");
        memset(at, 0, key->room);
        memcpy(at, value, strlen(value));
        return 1;
    }
    return fail(parse, name, value, "left out: there is no such key here");
}

static int check_mig(struct parse *parse)
{
    struct node_profile *profile = parse->profile;
    uint32_t slices = 0;
    int64_t eighths = 0;

    if ((profile->mig_gpus == 0) != (profile->instance_count == 0) || profile->mig_gpus > profile->gpu_count)
        return error_set(parse->err, EINVAL, "%s: [mig] needs gpus, at most the node's, and instances", parse->path);
    for (uint32_t i = 0; i < profile->instance_count; i++) {
        struct profile_instance *instance = &profile->instances[i];
        int64_t parts = (8 * instance->bytes + profile->total_bytes / 2) / profile->total_bytes;

        instance->bytes = (profile->total_bytes - profile->reserved_bytes) / 8 * parts;
        eighths += parts;
        slices += instance->slices;
        if (parts == 0)
            return error_set(parse->err, EINVAL, "%s: instance %s has less than an eighth of memory_mib", parse->path,
                             instance->name);
    }
    if (slices > 7 || eighths > 8)
        return error_set(parse->err, EINVAL,
                         "%s: the instances are %u of 7 compute slices and %lld of 8 memory slices: too many",
                         parse->path, slices, (long long)eighths);
    return 0;
}

static int check(struct parse *parse)
{
    const struct node_profile *profile = parse->profile;

    for (size_t i = 0; i < array_size(keys); i++)
        if (!parse->seen[i] && !keys[i].optional)
            return error_set(parse->err, EINVAL, "%s: '%s' of section [%s] is missing", parse->path, keys[i].name,
                             keys[i].section);
    if (profile->reserved_bytes >= profile->total_bytes)
        return error_set(parse->err, EINVAL, "%s: reserved_mib leaves nothing of memory_mib", parse->path);
    if (profile->idle_w >= profile->full_w)
        return error_set(parse->err, EINVAL, "%s: idle_w should be less than full_w", parse->path);
    return check_mig(parse);
}

int node_profile_read(const char *name, struct node_profile *profile, struct error *err)
{
    CLEANUP(free_ptr) char *relative = xasprintf("share/carma/nodes/%s.ini", name);
    CLEANUP(free_ptr) char *path = strchr(name, '/') || strstr(name, ".ini") ? xstrdup(name) : install_path(relative);
    CLEANUP(free_ptr) char *text = NULL;
    struct parse parse = {.profile = profile, .path = path, .err = err};
    size_t length;
    int rc = file_read(path, PROFILE_LIMIT, &text, &length, err);

    if (rc < 0) {
        CLEANUP(free_ptr) char *directory = install_path("share/carma/nodes");
        CLEANUP(free_ptr) char *meant = path == name ? xstrdup("") : nearest_file(name, directory, ".ini");
        error_prefix(err, "node profile '%.60s'%s", name, meant);
        return rc;
    }
    *profile = (struct node_profile){.gpm = true};
    rc = ini_parse_string(text, on_key, &parse);
    if (rc != 0) {
        if (!parse.failed)
            error_set(err, EINVAL, "this is neither 'key = value' nor a [section]");
        error_prefix(err, "%s:%d", path, rc);
        return -EINVAL;
    }
    return check(&parse);
}
