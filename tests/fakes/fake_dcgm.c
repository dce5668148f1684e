/* A libdcgm of the tests' own: engines, connections, groups, field sets and watches with a state of their own. It
 * refuses the same calls as the real one: another version of a structure, a missing handle or group, a field that is
 * not watched. GPUs 0 and 1 are those of fake_nvml.c; their values are numbers that no two metrics share. The
 * environment variable FAKE_DCGM, a list of words with commas between them and read at each call, makes it fail:
 *
 *     init=N             dcgmInit returns N
 *     no-engine          nobody listens on the port; socket-engine: somebody does on the Unix socket /run/dcgm
 *     embedded=N         no engine can be started here: N;  modules=N: how long its list of modules is (default 11)
 *     gpus=N             the GPUs cannot be listed: N;  hierarchy=N: nor their parts
 *     add=N              entities cannot be grouped
 *     watch=N            the metrics cannot be watched: N, on GPU 1 alone where watch-gpu-1 stands beside it
 *     watch-once=N       the first try to watch them fails
 *     at-once=N          more than N fields in a set cannot be watched;  never=N: field N never can
 *     lost=N             the N-th time that values are asked for, the connection is lost
 *     refused=N          after that, N tries to connect fail
 * status=N           every value has the status N;  blank=K: is a blank of kind K;  over: is impossibly large
 * nan                shares are not numbers
 *     just-over          shares are 1.005
 *     old=S              values are S seconds old
 *     early              values have time stamps 10 s ahead
 *     idle               all values are zero
 *     xid=N              both GPUs had the Xid N;  stuck: and show zeros until they are watched anew
 *     mig                GPU 0 is in MIG mode: GPU instances 3 and 5 with a compute instance 0 each, and 1 in 5
 *     no-compute         compute instances have no values
 *     extra              values come for entities and fields that nobody asked for, too
 *     vnode              the GPUs and MIG instances are those of the virtual node of CARMA_VNODE, and their SM activity
 *                        is its own
 *
 * fake_dcgm_count("connect"), ("embedded"), ("watch"), ("unwatch"), ("open"): how often that was, and how many
 * connections and engines there are now. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "gpu/dcgm/abi.h"
#include "vnode/node.h"

#define FAKE_WORDS "FAKE_DCGM"
#include "words.h"

#define GROUPS 64 /* of each kind, as DCGM has it */

struct group {
    struct dcgm_pair entities[64];
    int count;
};

struct field_group {
    unsigned short fields[16];
    int count;
};

struct watch {
    uintptr_t group, field_group;
    bool anew; /* not the first one of these fields */
};

static struct {
    bool initialized;
    uintptr_t handle; /* of the one connection or engine; 0: none */
    bool embedded;
    struct group groups[GROUPS];
    struct field_group field_groups[GROUPS];
    struct watch watches[GROUPS];
    char names[2 * GROUPS][64];
    int group_count, field_group_count, watch_count, name_count;
} engine;

static struct {
    int connect, embedded, watch, unwatch, open, looks, refusals;
} counts;

static bool was_lost, was_unwatched, failed_once;
static struct node node;

DCGM_API int fake_dcgm_count(const char *what);
int fake_dcgm_count(const char *what)
{
    return strcmp(what, "connect") == 0    ? counts.connect
           : strcmp(what, "embedded") == 0 ? counts.embedded
           : strcmp(what, "watch") == 0    ? counts.watch
           : strcmp(what, "unwatch") == 0  ? counts.unwatch
                                           : counts.open;
}

int dcgmInit(void)
{
    if (code("init"))
        return code("init");
    memset(&engine, 0, sizeof engine);
    memset(&counts, 0, sizeof counts);
    was_lost = was_unwatched = failed_once = false;
    engine.initialized = true;
    if (has("vnode", NULL) && !node.file)
        return node_open(&node, NULL, NULL) == 0 ? DCGM_OK : DCGM_INIT_ERROR;
    return DCGM_OK;
}

int dcgmShutdown(void)
{
    if (!engine.initialized)
        return DCGM_UNINITIALIZED;
    counts.open -= engine.handle != 0;
    memset(&engine, 0, sizeof engine);
    return DCGM_OK;
}

const char *errorString(int status)
{
    return status == DCGM_REQUIRES_ROOT             ? "This operation requires root"
           : status == DCGM_CONNECTION_NOT_VALID    ? "The connection is not valid"
           : status == DCGM_PROFILING_NOT_SUPPORTED ? "Profiling is not supported"
           : status == DCGM_NOT_SUPPORTED           ? "Not supported"
                                                    : NULL;
}

static int begin(uintptr_t *handle, bool embedded)
{
    static uintptr_t made;

    if (engine.handle)
        return DCGM_GENERIC_ERROR; /* a second one at the same time is carma's mistake */
    memset(&engine, 0, sizeof engine);
    engine.initialized = true;
    engine.embedded = embedded;
    engine.handle = *handle = ++made;
    counts.open++;
    return DCGM_OK;
}

int dcgmConnect_v2(const char *address, struct dcgm_connect *connect, uintptr_t *handle)
{
    counts.connect++;
    if (!engine.initialized)
        return DCGM_UNINITIALIZED;
    if (connect->version != DCGM_VERSION(struct dcgm_connect, 2) || sizeof *connect != 16)
        return DCGM_VERSION_MISMATCH;
    if (connect->timeout_ms == 0 || connect->timeout_ms > 1000 || connect->persist_after_disconnect)
        return DCGM_BAD_PARAMETER; /* would hang, or leave its watches behind */
    if (was_lost && counts.refusals < number("refused", 0)) {
        counts.refusals++;
        return DCGM_CONNECTION_NOT_VALID;
    }
    if (connect->address_is_unix_socket ? !has("socket-engine", NULL) || strcmp(address, "/run/dcgm") != 0
                                        : has("no-engine", NULL) || strcmp(address, "127.0.0.1") != 0)
        return DCGM_CONNECTION_NOT_VALID;
    return begin(handle, false);
}

static int end(uintptr_t handle, bool embedded)
{
    if (handle != engine.handle || engine.embedded != embedded)
        return DCGM_BAD_PARAMETER;
    engine.handle = 0;
    counts.open--;
    return DCGM_OK;
}

int dcgmDisconnect(uintptr_t handle)
{
    return end(handle, false);
}

int dcgmStartEmbedded_v2(struct dcgm_embedded *embedded)
{
    size_t modules = (size_t)number("modules", 11);
    size_t size = (offsetof(struct dcgm_embedded, denied) + modules * 4 + 7) / 8 * 8;

    if (embedded->version != ((unsigned int)size | 1u << 24))
        return DCGM_VERSION_MISMATCH;
    counts.embedded++;
    if (code("embedded"))
        return code("embedded");
    return embedded->mode == DCGM_MODE_AUTO ? begin(&embedded->handle, true) : DCGM_BAD_PARAMETER;
}

int dcgmStopEmbedded(uintptr_t handle)
{
    return end(handle, true);
}

static int check(uintptr_t handle)
{
    if (!engine.initialized)
        return DCGM_UNINITIALIZED;
    return handle && handle == engine.handle ? DCGM_OK : DCGM_CONNECTION_NOT_VALID;
}

static bool known(uintptr_t group, uintptr_t field_group)
{
    return group && group <= (uintptr_t)engine.group_count && field_group &&
           field_group <= (uintptr_t)engine.field_group_count;
}

static int gpu_count(void)
{
    return node.file ? (int)node.file->gpu_count : 2;
}

int dcgmGetAllSupportedDevices(uintptr_t handle, unsigned int ids[DCGM_MAX_GPUS], int *count)
{
    if (check(handle) || code("gpus"))
        return check(handle) ? check(handle) : code("gpus");
    *count = gpu_count();
    for (int i = 0; i < *count; i++)
        ids[i] = (unsigned int)(*count - 1 - i); /* in an order of its own */
    return DCGM_OK;
}

/* The id-th MIG instance of the virtual node, as its GPU and compute instances are numbered; false: there is none. */
static bool node_instance(unsigned int id, unsigned int *gpu, unsigned int *instance)
{
    for (*gpu = 0; *gpu < node.file->gpu_count; ++*gpu) {
        uint32_t count = node.file->gpus[*gpu].mig ? node.file->gpus[*gpu].instance_count : 0;
        *instance = id;
        if (id < count)
            return true;
        id -= count;
    }
    return false;
}

static void list_node_instances(struct dcgm_mig_hierarchy *hierarchy)
{
    unsigned int gpu, i;

    for (unsigned int id = 0; node_instance(id, &gpu, &i); id++) {
        const struct node_instance *instance = &node.file->gpus[gpu].instances[i];
        struct dcgm_pair outer = {DCGM_ENTITY_GPU_INSTANCE, id};
        hierarchy->parts[hierarchy->count++] = (struct dcgm_mig_part){
            .entity = outer, .parent = {DCGM_ENTITY_GPU, gpu}, .nvml_gpu_instance = instance->gpu_instance};
        hierarchy->parts[hierarchy->count++] =
            (struct dcgm_mig_part){.entity = {DCGM_ENTITY_COMPUTE_INSTANCE, id},
                                   .parent = outer,
                                   .nvml_gpu_instance = instance->gpu_instance,
                                   .nvml_compute_instance = instance->compute_instance};
    }
}

int dcgmGetGpuInstanceHierarchy(uintptr_t handle, struct dcgm_mig_hierarchy *hierarchy)
{
    static const struct dcgm_mig_part parts[] = {
        {{DCGM_ENTITY_GPU_INSTANCE, 0}, {DCGM_ENTITY_GPU, 0}, "", 0, 3, UINT32_MAX, 9, 3},
        {{DCGM_ENTITY_COMPUTE_INSTANCE, 0}, {DCGM_ENTITY_GPU_INSTANCE, 0}, "", 0, 3, 0, 2, 3},
        {{DCGM_ENTITY_GPU_INSTANCE, 1}, {DCGM_ENTITY_GPU, 0}, "", 0, 5, UINT32_MAX, 9, 3},
        {{DCGM_ENTITY_COMPUTE_INSTANCE, 1}, {DCGM_ENTITY_GPU_INSTANCE, 1}, "", 0, 5, 0, 0, 1},
        {{DCGM_ENTITY_COMPUTE_INSTANCE, 2}, {DCGM_ENTITY_GPU_INSTANCE, 1}, "", 0, 5, 1, 0, 1},
    };

    _Static_assert(sizeof parts[0] == 164 && sizeof *hierarchy == 8 + 448 * 164, "not DCGM's layout");
    if (check(handle) || code("hierarchy"))
        return check(handle) ? check(handle) : code("hierarchy");
    if (hierarchy->version != DCGM_VERSION(struct dcgm_mig_hierarchy, 2))
        return DCGM_VERSION_MISMATCH;
    hierarchy->count = has("mig", NULL) ? sizeof parts / sizeof *parts : 0;
    memcpy(hierarchy->parts, parts, hierarchy->count * sizeof *parts);
    if (node.file)
        list_node_instances(hierarchy);
    return DCGM_OK;
}

static int take_name(const char *name)
{
    for (int i = 0; i < engine.name_count; i++)
        if (strcmp(engine.names[i], name) == 0)
            return DCGM_DUPLICATE_KEY;
    snprintf(engine.names[engine.name_count++], sizeof engine.names[0], "%s", name);
    return DCGM_OK;
}

int dcgmGroupCreate(uintptr_t handle, int kind, const char *name, uintptr_t *group)
{
    char full[64];

    snprintf(full, sizeof full, "g%s", name);
    if (check(handle) || kind != DCGM_GROUP_EMPTY || take_name(full))
        return check(handle) ? check(handle) : kind != DCGM_GROUP_EMPTY ? DCGM_BAD_PARAMETER : DCGM_DUPLICATE_KEY;
    engine.groups[engine.group_count] = (struct group){0};
    *group = (uintptr_t)++engine.group_count;
    return DCGM_OK;
}

int dcgmGroupAddEntity(uintptr_t handle, uintptr_t group, int entity_group, unsigned int entity_id)
{
    if (check(handle) || code("add"))
        return check(handle) ? check(handle) : code("add");
    if (!group || group > (uintptr_t)engine.group_count)
        return DCGM_BAD_PARAMETER;
    struct group *to = &engine.groups[group - 1];
    to->entities[to->count++] = (struct dcgm_pair){entity_group, entity_id};
    return DCGM_OK;
}

int dcgmFieldGroupCreate(uintptr_t handle, int count, const unsigned short *fields, const char *name,
                         uintptr_t *field_group)
{
    struct field_group *to = &engine.field_groups[engine.field_group_count];
    char full[64];

    snprintf(full, sizeof full, "f%s", name);
    if (check(handle) || take_name(full))
        return check(handle) ? check(handle) : DCGM_DUPLICATE_KEY;
    memcpy(to->fields, fields, (size_t)count * sizeof *fields);
    to->count = count;
    *field_group = (uintptr_t)++engine.field_group_count;
    return DCGM_OK;
}

static struct watch *find_watch(uintptr_t group, uintptr_t field_group)
{
    for (int i = 0; i < engine.watch_count; i++)
        if (engine.watches[i].group == group && engine.watches[i].field_group == field_group)
            return &engine.watches[i];
    return NULL;
}

static int refuse_metrics(const struct group *group, const struct field_group *fields)
{
    if (fields->fields[0] < DCGM_FIELD_GRAPHICS_ACTIVITY)
        return DCGM_OK;
    counts.watch++;
    if (code("watch-once") && !failed_once) {
        failed_once = true;
        return code("watch-once");
    }
    if (code("watch") && (!has("watch-gpu-1", NULL) || group->entities[0].id == 1))
        return code("watch");
    for (int i = 0; i < fields->count; i++)
        if (fields->fields[i] == code("never"))
            return DCGM_PROFILING_MULTI_PASS;
    return fields->count > number("at-once", INFINITY) ? DCGM_PROFILING_MULTI_PASS : DCGM_OK;
}

int dcgmWatchFields(uintptr_t handle, uintptr_t group, uintptr_t field_group, long long period_us, double keep_s,
                    int keep_samples)
{
    if (check(handle))
        return check(handle);
    if (!known(group, field_group) || period_us < 100000 || keep_s < 0 || keep_samples < 0)
        return DCGM_BAD_PARAMETER;
    if (engine.groups[group - 1].count == 0)
        return -35; /* an empty group */
    int status = refuse_metrics(&engine.groups[group - 1], &engine.field_groups[field_group - 1]);
    if (status == DCGM_OK && !find_watch(group, field_group)) {
        if (engine.watch_count == GROUPS)
            return DCGM_GENERIC_ERROR;
        engine.watches[engine.watch_count++] = (struct watch){group, field_group, was_unwatched};
    }
    return status;
}

int dcgmUnwatchFields(uintptr_t handle, uintptr_t group, uintptr_t field_group)
{
    struct watch *watch = find_watch(group, field_group);

    if (check(handle) || !watch)
        return check(handle) ? check(handle) : DCGM_NOT_WATCHED;
    if (engine.field_groups[field_group - 1].fields[0] >= DCGM_FIELD_GRAPHICS_ACTIVITY) {
        counts.unwatch++;
        was_unwatched = true;
    }
    *watch = engine.watches[--engine.watch_count];
    return DCGM_OK;
}

int dcgmUpdateAllFields(uintptr_t handle, int wait)
{
    return check(handle) ? check(handle) : wait ? DCGM_OK : DCGM_BAD_PARAMETER;
}

static double node_activity(struct dcgm_pair pair)
{
    unsigned int gpu = pair.id, instance = 0;
    bool part = pair.group != DCGM_ENTITY_GPU;
    struct node_bank *bank;

    if ((part && !node_instance(pair.id, &gpu, &instance)) || node_begin(&node, &bank) != 0)
        return 0;
    double activity = part ? bank->gpus[gpu].instances[instance].sm_activity : bank->gpus[gpu].sm_activity;
    node_abandon(&node);
    return activity;
}

/* Shares are below 1 and differ by field and entity; traffic is the field's number in MB/s. */
static double metric_value(unsigned short field, struct dcgm_pair pair, bool anew)
{
    double share = (field - 1000) / 100.0 + pair.id / 4.0 + (pair.group == DCGM_ENTITY_GPU ? 0 : pair.group / 20.0);

    if (node.file && field == DCGM_FIELD_SM_ACTIVITY)
        return node_activity(pair);
    if (has("idle", NULL) || (has("stuck", NULL) && !anew))
        return 0;
    return field == DCGM_FIELD_PCIE_TX || field == DCGM_FIELD_PCIE_RX ? field * 1e6 : share;
}

static void set_number(struct dcgm_field_value *value, double number)
{
    double blank;

    if (has("nan", NULL))
        number = NAN;
    if (has("over", NULL))
        number = value->type == DCGM_TYPE_INT64 ? 1e13 : 1.5;
    if (has("just-over", NULL) && value->type == DCGM_TYPE_DOUBLE)
        number = 1.005;
    if (value->type == DCGM_TYPE_DOUBLE)
        value->value.number = has("blank", &blank) ? DCGM_BLANK_DOUBLE + blank : number;
    else
        value->value.int64 = has("blank", &blank) ? DCGM_BLANK_INT64 + (int64_t)blank : (int64_t)number;
}

static int64_t value_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 +
           (has("early", NULL) ? 10000000 : -(int64_t)(number("old", 0.02) * 1e6));
}

static void make_value(struct dcgm_field_value *value, unsigned short field, struct dcgm_pair pair, bool anew)
{
    *value = (struct dcgm_field_value){
        .version = DCGM_VERSION(struct dcgm_field_value, 1), .field = field, .at_us = value_time()};
    if (field == DCGM_FIELD_UUID) {
        value->type = DCGM_TYPE_STRING;
        if (node.file)
            snprintf(value->value.text, sizeof value->value.text, "%s", node.file->gpus[pair.id].uuid);
        else
            snprintf(value->value.text, sizeof value->value.text, "GPU-00000000-0000-0000-0000-00000000000%u", pair.id);
        return;
    }
    value->type = field == DCGM_FIELD_XID || field == DCGM_FIELD_PCIE_TX || field == DCGM_FIELD_PCIE_RX
                      ? DCGM_TYPE_INT64
                      : DCGM_TYPE_DOUBLE;
    if (field == DCGM_FIELD_XID) {
        value->value.int64 = code("xid") ? code("xid") : DCGM_BLANK_INT64;
        return;
    }
    value->status = code("status");
    set_number(value, metric_value(field, pair, anew));
    if (pair.group != DCGM_ENTITY_GPU && value->type == DCGM_TYPE_INT64)
        value->value.int64 = DCGM_BLANK_INT64 + DCGM_BLANK_NOT_SUPPORTED;
    if (pair.group == DCGM_ENTITY_COMPUTE_INSTANCE && (field == DCGM_FIELD_DRAM_ACTIVITY || has("no-compute", NULL)))
        value->value.number = DCGM_BLANK_DOUBLE + DCGM_BLANK_NOT_SUPPORTED;
}

int dcgmGetLatestValues_v2(uintptr_t handle, uintptr_t group, uintptr_t field_group, dcgm_value_callback *callback,
                           void *user)
{
    const struct watch *watch = find_watch(group, field_group);
    struct dcgm_field_value *value;

    _Static_assert(sizeof *value == 4120, "not DCGM's layout");
    if (check(handle))
        return check(handle);
    if (!known(group, field_group))
        return DCGM_BAD_PARAMETER;
    const struct group *entities = &engine.groups[group - 1];
    const struct field_group *fields = &engine.field_groups[field_group - 1];
    if (fields->fields[0] >= DCGM_FIELD_GRAPHICS_ACTIVITY)
        counts.looks++;
    if (counts.looks >= number("lost", INFINITY) && !was_lost) {
        was_lost = true;
        return DCGM_CONNECTION_NOT_VALID; /* the handle stays until it is given back */
    }
    value = malloc(sizeof *value);
    if (!value)
        abort();
    for (int e = 0; e < entities->count; e++) {
        for (int f = 0; f < fields->count; f++) {
            make_value(value, fields->fields[f], entities->entities[e], watch && watch->anew);
            if (!watch)
                value->status = DCGM_NOT_WATCHED;
            if (callback(entities->entities[e].group, entities->entities[e].id, value, 1, user) < 0)
                break;
            if (has("extra", NULL)) {
                callback(DCGM_ENTITY_GPU, 31, value, 1, user);
                value->field = 1084;
                callback(entities->entities[e].group, entities->entities[e].id, value, 1, user);
            }
        }
    }
    free(value);
    return DCGM_OK;
}
