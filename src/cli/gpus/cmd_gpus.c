/* carma gpus: each GPU's memory, activity and power. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "base/xid.h"
#include "cli/cli.h"
#include "cli/cluster/cluster.h"
#include "cli/commands.h"
#include "cli/show/table.h"
#include "cli/show/answer.h"

struct gpus_options {
    bool json;
    int64_t period_ns; /* of --watch; 0: once */
    struct cluster cluster;
};

static const struct argp_option options[] = {CLUSTER_OPTIONS, CLI_OPTION_JSON, CLI_OPTION_WATCH, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct gpus_options *gpus = state->input;

    switch (key) {
    case CLI_JSON_KEY:
        gpus->json = true;
        return 0;
    case CLI_WATCH_KEY:
        return cli_parse_watch(state, arg, &gpus->period_ns);
    default:
        return cluster_parse(key, arg, state, &gpus->cluster);
    }
}

const struct argp gpus_argp = {
    .options = options,
    .parser = parse,
    .doc = "List the GPUs: memory in use, SM activity (SM ACT: of the daemon's window), power, and the jobs on them. "
           "With --watch, their present activity: SM activity, SM occupancy, DRAM and tensor activity, PCIe traffic to "
           "and from the GPU. SRC is the source that measures it; AGE says how old it is."
           "\vFREE is the memory that the policy counts as free: reservations that are not used yet are not free. An "
           "activity with a ~ is "
           "NVML's utilisation, an upper bound that stands in where no SM activity can be measured.",
};

#define BAR_WIDTH       9
#define PROCESSES_SHOWN 4 /* of a GPU, of those that are no job's that was given it: there may be a hundred */

/* ---- Cells ---- */

static char *memory_text(int64_t used, int64_t total)
{
    char whole[UNITS_TEXT];

    if (total < 0)
        return xstrdup("-");
    format_bytes(total, whole);
    return used < 0 ? xasprintf("- / %s", whole) : xasprintf("%.1f / %s", (double)used / (double)GIB, whole);
}

/* It is there, but too little is known of it. */
static bool is_untold(const json_t *gpu)
{
    const char *why = answer_text(gpu, "why");

    return why && strncmp(why, "NVML does not tell", 18) == 0;
}

/* The memory of the job's processes in the list; -1 where one before `at` is the job's, too. */
static int64_t bytes_of(const json_t *processes, size_t at, int64_t job)
{
    int64_t bytes = 0;
    json_t *process;
    size_t i;

    json_array_foreach (processes, i, process) {
        int64_t held = answer_integer(process, "used_bytes", 0);
        if (answer_integer(process, "job", 0) != job)
            continue;
        if (i < at)
            return -1;
        if (held > 0 && __builtin_add_overflow(bytes, held, &bytes))
            return INT64_MAX;
    }
    return bytes;
}

static char *job_list(const json_t *gpu)
{
    struct strbuf out = {0};
    int64_t servers = answer_integer(gpu, "mps_server_bytes", 0);
    int64_t unmanaged = answer_integer(gpu, "unmanaged_bytes", 0) - servers;
    const json_t *processes = json_object_get(gpu, "unmanaged");
    char text[UNITS_TEXT];
    CLEANUP(free_ptr) char *jobs = answer_gpu_jobs(gpu);
    size_t i = json_array_size(json_object_get(gpu, "jobs")), k, strays = 0;
    json_t *process;

    if (answer_true(gpu, "lost"))
        strbuf_puts(&out, is_untold(gpu) ? "not usable" : "GPU is lost");
    else if (answer_is_drained(gpu))
        strbuf_puts(&out, json_array_size(json_object_get(gpu, "jobs")) ? "draining" : "drained");
    else if (answer_is_reserved(gpu))
        strbuf_puts(&out, "reserved");
    else if (answer_is_heading(gpu))
        return xstrdup("MIG:");
    if (i)
        strbuf_printf(&out, "%s%s", out.length ? ": " : "", jobs);
    if (answer_true(gpu, "lost"))
        return strbuf_steal(&out);
    json_array_foreach (processes, k, process) {
        int64_t id = answer_integer(process, "job", 0), held = id > 0 ? bytes_of(processes, k, id) : -1;
        if (held < 0 || strays++ >= PROCESSES_SHOWN)
            continue; /* of a job that is not named it stays among the unmanaged */
        strbuf_printf(&out, "%sstray %" PRId64 " %s", i++ ? " + " : "", id, format_bytes(held, text));
        unmanaged -= held;
    }
    if (servers > 0)
        strbuf_printf(&out, "%sMPS %s", i++ ? " + " : "", format_bytes(servers, text));
    if (unmanaged > 0)
        strbuf_printf(&out, "%sunmanaged %s", i ? " + " : "", format_bytes(unmanaged, text));
    return strbuf_steal(&out);
}

static enum term_style activity_style(int64_t permille)
{
    return permille >= 800 ? STYLE_RED : permille >= 400 ? STYLE_YELLOW : permille > 0 ? STYLE_GREEN : STYLE_DIM;
}

/* "A100-SXM4-40GB": the maker's name would only take space. */
static char *short_name(const json_t *gpu)
{
    const char *name = answer_text(gpu, "name");

    return term_escape(name && strncmp(name, "NVIDIA ", 7) == 0 ? name + 7 : name);
}

static const json_t *metric(const json_t *gpu, const char *name)
{
    return json_object_get(json_object_get(gpu, "metrics"), name);
}

static bool is_coarse(const json_t *gpu)
{
    const char *source = answer_text(metric(gpu, "sm_activity"), "source");

    return source && strcmp(source, "utilization") == 0;
}

static void index_cell(struct table *table, const json_t *gpu)
{
    int64_t index = answer_integer(gpu, "index", -1);

    if (index < 0)
        table_cell(table, STYLE_NONE, "-");
    else
        table_cell(table, answer_true(gpu, "lost") ? STYLE_RED : STYLE_NONE, "%" PRId64, index);
}

static void activity_cell(struct table *table, const json_t *gpu, const json_t *object, const char *member)
{
    CLEANUP(free_ptr) char *activity = answer_permille(object, member);
    bool coarse = is_coarse(gpu) && answer_integer(object, member, -1) >= 0;

    table_cell(table, activity_style(answer_integer(object, member, 0)), "%s%s", coarse ? "~" : "", activity);
}

static void power_cell(struct table *table, const json_t *gpu)
{
    int64_t power = answer_integer(gpu, "power_mw", -1);

    if (power < 0)
        table_cell(table, STYLE_NONE, "-");
    else
        table_cell(table, STYLE_NONE, "%" PRId64 " W", (power + 500) / 1000);
}

static void memory_cell(struct table *table, const json_t *gpu)
{
    CLEANUP(free_ptr)
    char *memory = memory_text(answer_integer(gpu, "used_bytes", -1), answer_integer(gpu, "total_bytes", -1));

    table_cell(table, STYLE_NONE, "%s", memory);
}

static void jobs_cell(struct table *table, const json_t *gpu)
{
    CLEANUP(free_ptr) char *jobs = job_list(gpu);

    table_cell(table,
               answer_true(gpu, "lost")                            ? STYLE_RED
               : answer_is_drained(gpu) || answer_is_reserved(gpu) ? STYLE_YELLOW
                                                                   : STYLE_NONE,
               "%s", jobs);
}

/* ---- Once: the GPUs and their jobs ---- */

static const struct table_column columns[] = {
    {"GPU", true, 0, 0},  {"NAME", false, 10, 4}, {"", false, 0, 2},     {"MEMORY IN USE", true, 0, 0},
    {"FREE", true, 0, 1}, {"SM ACT", true, 0, 0}, {"POWER", true, 0, 3}, {"JOBS", false, 10, 0},
};

static void add_row(struct table *table, const json_t *gpu)
{
    CLEANUP(free_ptr) char *name = short_name(gpu);
    CLEANUP(free_ptr)
    char *bar = term_bar((double)answer_integer(gpu, "used_bytes", -1), (double)answer_integer(gpu, "total_bytes", -1),
                         BAR_WIDTH);
    CLEANUP(free_ptr) char *free_memory = answer_bytes(gpu, "free_bytes");

    index_cell(table, gpu);
    table_cell(table, STYLE_NONE, "%s", name);
    table_cell(table, STYLE_BLUE, "%s", bar);
    memory_cell(table, gpu);
    table_cell(table, STYLE_NONE, "%s", free_memory);
    activity_cell(table, gpu, gpu, "sm_activity_permille");
    power_cell(table, gpu);
    jobs_cell(table, gpu);
}

/* ---- Watching: the GPUs' activity now ---- */

static const struct table_column watch_columns[] = {
    {"GPU", true, 0, 0},     {"NAME", false, 10, 4}, {"MEMORY IN USE", true, 0, 2}, {"SM ACT", true, 0, 0},
    {"SM OCC", true, 0, 0},  {"DRAM", true, 0, 0},   {"TENSOR", true, 0, 0},        {"PCIE TX", true, 0, 5},
    {"PCIE RX", true, 0, 6}, {"POWER", true, 0, 0},  {"SRC", false, 0, 0},          {"AGE", true, 0, 0},
    {"JOBS", false, 10, 0},
};

static void traffic_cell(struct table *table, const json_t *gpu, const char *name)
{
    CLEANUP(free_ptr) char *traffic = answer_bytes(metric(gpu, name), "value");
    bool known = answer_integer(metric(gpu, name), "value", -1) >= 0;

    table_cell(table, STYLE_NONE, "%s%s", traffic, known ? "/s" : "");
}

static void source_cells(struct table *table, const json_t *gpu)
{
    static const char *const names[] = {"sm_activity", "dram_activity", "graphics_activity"};
    const json_t *measured = NULL;
    char text[UNITS_TEXT];

    for (size_t i = 0; i < array_size(names) && !measured; i++)
        if (answer_integer(metric(gpu, names[i]), "age_ns", -1) >= 0)
            measured = metric(gpu, names[i]);
    CLEANUP(free_ptr) char *source = answer_safe_text(measured, "source");
    table_cell(table, STYLE_NONE, "%s", is_coarse(gpu) ? "util" : source);
    if (measured)
        table_cell(table, STYLE_NONE, "%s", format_duration(answer_integer(measured, "age_ns", 0), text));
    else
        table_cell(table, STYLE_NONE, "-");
}

static void add_watch_row(struct table *table, const json_t *gpu)
{
    static const char *const activities[] = {"sm_activity", "sm_occupancy", "dram_activity", "tensor_activity"};
    CLEANUP(free_ptr) char *name = short_name(gpu);

    index_cell(table, gpu);
    table_cell(table, STYLE_NONE, "%s", name);
    memory_cell(table, gpu);
    activity_cell(table, gpu, metric(gpu, activities[0]), "value");
    for (size_t i = 1; i < array_size(activities); i++) {
        CLEANUP(free_ptr) char *activity = answer_permille(metric(gpu, activities[i]), "value");
        table_cell(table, STYLE_NONE, "%s", activity);
    }
    traffic_cell(table, gpu, "pcie_tx");
    traffic_cell(table, gpu, "pcie_rx");
    power_cell(table, gpu);
    source_cells(table, gpu);
    jobs_cell(table, gpu);
}

/* ---- Below the table: facts that do not fit into its cells ---- */

static int by_bytes(const void *a, const void *b)
{
    int64_t x = answer_integer(*(json_t *const *)a, "used_bytes", 0),
            y = answer_integer(*(json_t *const *)b, "used_bytes", 0);

    return (x < y) - (x > y);
}

/* The largest, and the sum of the others. */
static void print_unmanaged(const json_t *gpu)
{
    const json_t *list = json_object_get(gpu, "unmanaged");
    size_t count = json_array_size(list), i;
    CLEANUP(free_ptr) json_t **processes = xcalloc(count + 1, sizeof(json_t *));
    int64_t index = answer_integer(gpu, "index", -1), rest = 0;
    char text[UNITS_TEXT];

    for (i = 0; i < count; i++)
        processes[i] = json_array_get(list, i);
    qsort(processes, count, sizeof *processes, by_bytes);
    for (i = 0; i < count && i < PROCESSES_SHOWN; i++) {
        CLEANUP(free_ptr) char *process = view_process(processes[i]);
        printf("GPU %" PRId64 ": %s and is ", index, process);
        if (answer_integer(processes[i], "job", 0) > 0)
            printf("job %" PRId64 "'s, which was not given this GPU\n", answer_integer(processes[i], "job", 0));
        else
            puts("unmanaged");
    }
    for (; i < count; i++)
        if (__builtin_add_overflow(rest, answer_integer(processes[i], "used_bytes", 0), &rest))
            rest = INT64_MAX;
    if (count > PROCESSES_SHOWN)
        printf("GPU %" PRId64 ": %zu more process%s with %s, unmanaged or of jobs that were not given this GPU "
               "('carma gpus --json' lists them)\n",
               index, count - PROCESSES_SHOWN, count - PROCESSES_SHOWN == 1 ? "" : "es", format_bytes(rest, text));
}

/* Why a GPU is not shared as `auto` would; once where it is the same of several. */
static void print_share_why(const json_t *gpu, char **said)
{
    CLEANUP(free_ptr) char *why = answer_text(gpu, "share_why") ? answer_safe_text(gpu, "share_why") : NULL;

    if (!why || (*said && strcmp(*said, why) == 0))
        return;
    printf("GPU %" PRId64 ": shared by %s although share = auto: %s\n", answer_integer(gpu, "index", -1),
           answer_text(gpu, "share"), why);
    free(*said);
    *said = xstrdup(why);
}

/* Why it takes no job, how old its figures are then, and what else NVML does not tell. */
static void print_untold(const json_t *gpu)
{
    CLEANUP(free_ptr) char *why = answer_text(gpu, "why") ? answer_safe_text(gpu, "why") : NULL;
    CLEANUP(free_ptr) char *unknown = answer_text(gpu, "unknown") ? answer_safe_text(gpu, "unknown") : NULL;
    int64_t age_ns = answer_integer(gpu, "age_ns", -1);
    char age[UNITS_TEXT];
    CLEANUP(free_ptr)
    char *name = answer_integer(gpu, "index", -1) < 0 ? answer_safe_text(gpu, "uuid")
                                                      : xasprintf("%" PRId64, answer_integer(gpu, "index", -1));

    if (why && age_ns >= 0 && !is_untold(gpu) && answer_true(gpu, "lost"))
        printf("GPU %s takes no job: %s; its figures are %s old\n", name, why, format_duration(age_ns, age));
    else if (why)
        printf("GPU %s takes no job: %s\n", name, why);
    if (unknown)
        printf("GPU %s: NVML does not tell %s\n", name, unknown);
}

static void print_said(const json_t *gpu)
{
    json_t *note;
    size_t i;

    json_array_foreach (json_object_get(gpu, "notes"), i, note) {
        CLEANUP(free_ptr) char *text = term_escape(json_string_value(note));
        printf("GPU %" PRId64 ": %s\n", answer_integer(gpu, "index", -1), text);
    }
}

static void print_notes(const json_t *reply)
{
    CLEANUP(free_ptr) char *said = NULL;
    bool coarse = false;
    json_t *gpu, *one;
    size_t i;

    json_array_foreach (json_object_get(reply, "gpus"), i, gpu) {
        const json_t *xid = json_object_get(gpu, "xid");
        coarse = coarse || is_coarse(gpu);
        if (answer_text(gpu, "unmanaged_why")) {
            CLEANUP(free_ptr) char *why = answer_safe_text(gpu, "unmanaged_why");
            printf("GPU %" PRId64 ": memory is not told apart by job: %s\n", answer_integer(gpu, "index", -1), why);
        }
        print_untold(gpu);
        print_said(gpu);
        print_unmanaged(gpu);
        print_share_why(gpu, &said);
        if (json_is_object(xid)) {
            CLEANUP(free_ptr) char *at = answer_time(answer_integer(xid, "at_ns", 0));
            CLEANUP(free_ptr) char *uuid = answer_safe_text(gpu, "uuid");
            const char *meaning = xid_text((uint32_t)answer_integer(xid, "code", 0));
            printf("%s: Xid %" PRId64 "%s%s at %s\n", uuid, answer_integer(xid, "code", 0), *meaning ? ", " : "",
                   meaning, at);
        }
    }
    json_array_foreach (json_object_get(reply, "reservations"), i, one) {
        CLEANUP(free_ptr) char *text = answer_reservation(one);
        puts(text);
    }
    if (coarse)
        puts("~ NVML's utilisation in place of SM activity: an upper bound");
    if (answer_text(reply, "problem")) {
        CLEANUP(free_ptr) char *problem = answer_safe_text(reply, "problem");
        puts(problem);
    }
    if (answer_text(reply, "limits")) {
        CLEANUP(free_ptr) char *limits = answer_safe_text(reply, "limits");
        puts(limits);
    }
}

/* ---- Over all nodes ---- */

#define NODE_ROWS 256 /* of one node: sixteen GPUs in seven instances each are fewer */

static int draw_cluster(const struct gpus_options *gpus)
{
    static const char *const words[] = {"gpus", "--json", NULL};
    static const char *const *const commands[] = {words};
    struct table_column shown[1 + array_size(watch_columns)] = {{"NODE", false, 6, 0, false}};
    CLEANUP(json_release) json_t *reply = NULL;
    bool watch = gpus->period_ns > 0;
    size_t i, k, count = watch ? array_size(watch_columns) : array_size(columns);
    struct error err;
    json_t *node, *gpu;

    if (cluster_ask(&gpus->cluster, commands, array_size(commands), NULL, &reply, &err))
        return cli_fail("%s", err.text);
    if (gpus->json) {
        cluster_print_json(reply);
        return cluster_status(reply);
    }
    memcpy(shown + 1, watch ? watch_columns : columns, count * sizeof *shown);
    struct table *table = table_new(shown, 1 + count);
    json_array_foreach (json_object_get(reply, "nodes"), i, node) {
        json_array_foreach (json_object_get(node, "gpus"), k, gpu) {
            if (k == NODE_ROWS)
                break;
            table_cell(table, STYLE_NONE, "%s", answer_text(node, "name"));
            if (watch)
                add_watch_row(table, gpu);
            else
                add_row(table, gpu);
        }
    }
    table_print(table);
    cluster_print_silent(reply);
    return cluster_status(reply);
}

static int draw(struct cli *cli, void *input)
{
    const struct gpus_options *gpus = input;
    CLEANUP(json_release) json_t *reply = NULL;
    bool watch = gpus->period_ns > 0;
    struct error err;
    json_t *gpu;
    size_t i;

    if (gpus->cluster.wanted)
        return draw_cluster(gpus);
    if (cli_call(cli, "GET", "/v1/gpus", NULL, &reply, &err))
        return cli_fail("%s", err.text);
    if (gpus->json) {
        cli_print_json(reply);
        return CLI_OK;
    }
    struct table *table =
        watch ? table_new(watch_columns, array_size(watch_columns)) : table_new(columns, array_size(columns));
    json_array_foreach (json_object_get(reply, "gpus"), i, gpu) {
        if (watch)
            add_watch_row(table, gpu);
        else
            add_row(table, gpu);
    }
    table_print(table);
    print_notes(reply);
    return CLI_OK;
}

int cmd_gpus(struct cli *cli, int argc, char **argv)
{
    struct gpus_options gpus = {0};
    int status;

    cluster_init(&gpus.cluster);
    if (!cli_parse(cli, argc, argv, &gpus, &status))
        return status;
    return cli_watch(cli, gpus.period_ns, draw, &gpus);
}
