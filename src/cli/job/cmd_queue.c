/* carma queue: the jobs that wait or run, with why and where. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cluster/cluster.h"
#include "cli/cluster/slurm.h"
#include "cli/commands.h"
#include "cli/show/table.h"
#include "cli/show/answer.h"

struct queue_options {
    struct cli_jobs jobs; /* first: cli_parse_jobs takes this for it */
    bool all;
    bool unfolded;
    int64_t period_ns; /* of --watch; 0: once */
    struct cluster cluster;
};

static const struct argp_option options[] = {
    {"all", 'a', NULL, 0, "ended jobs too", 0},
    CLI_OPTIONS_SELECT,
    {"array", 'r', NULL, 0, "a row for each job of an array, also of those that wait alike", 0},
    CLUSTER_OPTIONS,
    CLI_OPTION_JSON,
    CLI_OPTION_WATCH,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct queue_options *queue = state->input;
    error_t rc;

    switch (key) {
    case 'a':
        queue->all = true;
        return 0;
    case 'r':
        queue->unfolded = true;
        return 0;
    case CLI_WATCH_KEY:
        return cli_parse_watch(state, arg, &queue->period_ns);
    case ARGP_KEY_NO_ARGS:
        return 0;
    case 'y':
        return ARGP_ERR_UNKNOWN;
    default:
        rc = cluster_parse(key, arg, state, &queue->cluster);
        return rc == ARGP_ERR_UNKNOWN ? cli_parse_jobs(key, arg, state) : rc;
    }
}

const struct argp queue_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[IDS...]",
    .doc = "List the jobs that wait or run: user, name, time; the GPUs, or why the job waits."
           "\vTIME is how long a job runs or ran, or how long it waits. MEMORY is its reservation on each of its GPUs. "
           "With a ! it has used more than its first reservation, and the reservation has grown. TURN is a waiting "
           "job's place in the order, 1 the first; 'carma explain' says who goes before it, and why. IDS are like 7, "
           "1,3-5, 7_3 (of array 7) or @ (your last job). With --cluster, "
           "SLURM is Slurm's number of a job; jobs without a NODE wait at Slurm (ST is PD).",
};

static const struct table_column columns[] = {
    {"ID", true, 0, 0},   {"NAME", false, 12, 0}, {"USER", false, 6, 3}, {"ST", false, 0, 0},
    {"GPUS", true, 0, 2}, {"MEMORY", true, 0, 1}, {"TIME", true, 0, 0},  {"WHERE OR WHY NOT", false, 22, 0},
};

/* Stands before the last one where jobs wait for their turn. */
/* Those that are there where a row has something in them, before the last one. */
static const struct table_column turn_column = {"TURN", true, 0, 4}, project_column = {"PROJECT", false, 6, 5};
struct extra {
    bool turns, projects;
};

static int64_t turn_of(const json_t *job)
{
    return answer_integer(json_object_get(job, "turn"), "place", 0);
}

/* The cells behind the job's number. */
static void add_cells(struct table *table, const json_t *job, int64_t now_ns, struct extra extra)
{
    CLEANUP(free_ptr) char *name = answer_safe_text(job, "name");
    CLEANUP(free_ptr) char *user = answer_safe_text(job, "user");
    CLEANUP(free_ptr) char *project = answer_safe_text(job, "account");
    CLEANUP(free_ptr) char *letter = answer_safe_text(job, "letter");
    CLEANUP(free_ptr) char *memory = answer_bytes(job, "reserved_bytes");
    CLEANUP(free_ptr) char *duration = answer_job_time(job, now_ns);
    CLEANUP(free_ptr) char *where = answer_job_where(job);
    bool over = answer_integer(job, "over_reservation_bytes", 0) > 0;

    table_cell(table, STYLE_NONE, "%s", name);
    table_cell(table, STYLE_NONE, "%s", user);
    table_cell(table, answer_state_style(job), "%s", letter);
    table_cell(table, STYLE_NONE, "%" PRId64 "%s", answer_integer(job, "gpus", 0),
               answer_true(job, "exclusive") ? "x" : "");
    table_cell(table, over ? STYLE_RED : STYLE_NONE, "%s%s", over ? "!" : "", memory);
    table_cell(table, STYLE_NONE, "%s", duration);
    if (extra.projects)
        table_cell(table, STYLE_NONE, "%s", project);
    if (extra.turns && turn_of(job) > 0)
        table_cell(table, STYLE_NONE, "%" PRId64, turn_of(job));
    else if (extra.turns)
        table_cell(table, STYLE_DIM, "-");
    table_cell(table, STYLE_NONE, "%s", where);
}

#define ROWS 1000 /* of a table: more nobody reads */

/* The jobs that are wanted, in these states unless others were said: all of them, or what `more` of a query has. */
static int ask_for(struct cli *cli, const struct queue_options *queue, const char *states, const char *more,
                   json_t **reply, struct error *err)
{
    const struct selectors *selectors = &queue->jobs.selectors;
    CLEANUP(strbuf_release) struct strbuf path = {0};
    CLEANUP(free_ptr) char *ids = NULL;
    size_t from = 0;

    if (queue->jobs.list.count && !(ids = cli_ids_text(cli, &queue->jobs.list, &from, CLI_IDS_AT_ONCE, err)))
        return -ENOENT;
    strbuf_puts(&path, "/v1/jobs");
    selectors_put(&path, selectors);
    query_put(&path, "ids", ids);
    query_put(&path, "state", selectors->state ? NULL : states);
    if (!more)
        return cli_list_jobs(cli, path.text, cli_call, reply, err);
    strbuf_printf(&path, "%s%s", strchr(path.text, '?') ? "&" : "?", more);
    return cli_call(cli, "GET", path.text, NULL, reply, err);
}

/* The running jobs are shown for any number of jobs that wait before or after them. */
static int add_running(struct cli *cli, const struct queue_options *queue, json_t *reply, struct error *err)
{
    CLEANUP(json_release) json_t *running = NULL;
    json_t *jobs = json_object_get(reply, "jobs"), *job;
    int64_t first = answer_integer(json_array_get(jobs, 0), "id", 0), added = 0;
    int64_t last = answer_integer(json_array_get(jobs, json_array_size(jobs) - 1), "id", 0);
    size_t i, before = 0;
    int rc = ask_for(cli, queue, "running", NULL, &running, err);

    json_array_foreach (json_object_get(running, "jobs"), i, job) {
        int64_t id = answer_integer(job, "id", 0);
        if (id < first)
            json_array_insert(jobs, before++, job);
        else if (id > last)
            json_array_append(jobs, job);
        added += id < first || id > last;
    }
    json_object_set_new(reply, "left_out", json_integer(answer_integer(reply, "left_out", 0) - added));
    return rc;
}

static int ask_for_rows(struct cli *cli, const struct queue_options *queue, const char *states, json_t **reply,
                        struct error *err)
{
    CLEANUP(free_ptr)
    char *rows = xasprintf("%s=%d%s", queue->all ? "last" : "limit", ROWS, queue->unfolded ? "" : "&folded");
    int rc = ask_for(cli, queue, states, rows, reply, err);
    bool any = !queue->jobs.list.count && !queue->jobs.selectors.state; /* those that run, too */

    return rc == 0 && any && answer_integer(*reply, "left_out", 0) > 0 ? add_running(cli, queue, *reply, err) : rc;
}

static void print_table(struct table *table)
{

    table_print(table);
}

/* ---- Over all nodes: Slurm's waiting jobs, and the leases that run on each node ---- */

/* A job of a node. */
struct found {
    const char *node;
    const json_t *job;
    int64_t slurm, now_ns; /* Slurm's number; 0: it is not Slurm's */
    size_t order;
};

/* The leases of one job stand together, whatever their nodes; jobs that are not Slurm's come after them. */
static int compare_found(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    uint64_t first = (uint64_t)x->slurm - 1, second = (uint64_t)y->slurm - 1;

    if (first != second)
        return first < second ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* The jobs of all nodes, the first ROWS of each; owned by the caller. */
static struct found *find_jobs(const json_t *reply, size_t *count)
{
    struct found *found = NULL;
    size_t capacity = 0, i, k;
    json_t *node, *job;

    *count = 0;
    json_array_foreach (json_object_get(reply, "nodes"), i, node) {
        json_array_foreach (json_object_get(node, "jobs"), k, job) {
            if (k == ROWS)
                break;
            array_reserve(found, capacity, *count + 1);
            int64_t slurm = answer_integer(job, "slurm_job", 0);
            found[*count] = (struct found){answer_text(node, "name"), job, slurm > 0 ? slurm : 0,
                                           answer_integer(node, "now_ns", 0), *count};
            ++*count;
        }
    }
    if (*count)
        qsort(found, *count, sizeof *found, compare_found);
    return found;
}

static void add_found(struct table *table, const struct found *found)
{
    table_cell(table, STYLE_NONE, "%s", found->node);
    if (found->slurm)
        table_cell(table, STYLE_NONE, "%" PRId64, found->slurm);
    else
        table_cell(table, STYLE_NONE, "-");
    table_cell(table, STYLE_NONE, "%" PRId64, answer_integer(found->job, "id", 0));
    add_cells(table, found->job, found->now_ns, (struct extra){0});
}

static void add_waiting(struct table *table, const json_t *job)
{
    CLEANUP(free_ptr) char *id = answer_safe_text(job, "job");
    CLEANUP(free_ptr) char *name = answer_safe_text(job, "name");
    CLEANUP(free_ptr) char *user = answer_safe_text(job, "user");
    CLEANUP(free_ptr) char *why = slurm_why(job);
    CLEANUP(free_ptr) char *safe = term_escape(why);
    int64_t waited_s = (int64_t)time(NULL) - answer_integer(job, "submitted_s", 0);
    char text[UNITS_TEXT];

    table_cell(table, STYLE_DIM, "-");
    table_cell(table, STYLE_NONE, "%s", id);
    table_cell(table, STYLE_NONE, "-");
    table_cell(table, STYLE_NONE, "%s", name);
    table_cell(table, STYLE_NONE, "%s", user);
    table_cell(table, STYLE_NONE, "PD");
    table_cell(table, STYLE_NONE, "-");
    table_cell(table, STYLE_NONE, "-");
    table_cell(table, STYLE_NONE, "%s", format_duration((waited_s > 0 ? waited_s : 0) * NS_PER_SEC, text));
    table_cell(table, STYLE_NONE, "%s", safe);
}

static void print_cluster(const json_t *reply)
{
    struct table_column shown[2 + array_size(columns)] = {{"NODE", false, 6, 0, false}, {"SLURM", true, 0, 0, false}};
    const json_t *slurm = json_object_get(reply, "slurm"), *waiting = json_object_get(slurm, "waiting");
    size_t count, i, left_out = 0;
    CLEANUP(free_ptr) struct found *found = find_jobs(reply, &count);
    struct table *table;
    json_t *job, *node;

    memcpy(shown + 2, columns, sizeof columns);
    shown[2].optional = 4;
    table = table_new(shown, array_size(shown));
    for (i = 0; i < count; i++)
        add_found(table, &found[i]);
    json_array_foreach (waiting, i, job) {
        if (i == ROWS)
            break;
        add_waiting(table, job);
    }
    print_table(table);
    left_out = json_array_size(waiting) > ROWS ? json_array_size(waiting) - ROWS : 0;
    json_array_foreach (json_object_get(reply, "nodes"), i, node) {
        size_t jobs = json_array_size(json_object_get(node, "jobs"));
        left_out += jobs > ROWS ? jobs - ROWS : 0;
    }
    if (left_out)
        printf("and %zu more: carma queue --cluster --json has them all\n", left_out);
    if (answer_text(slurm, "error")) {
        CLEANUP(free_ptr) char *why = answer_safe_text(slurm, "error");
        printf("jobs that wait at Slurm: squeue: %s\n", why);
    }
}

#define WORDS 16

/* An option and its argument ("": it has none), behind the words that are there; NULL: not this one. */
static void put_words(const char *words[WORDS], const char *option, const char *argument)
{
    if (!argument)
        return;
    while (*words)
        words++;
    *words++ = option;
    if (*argument)
        *words = argument;
}

static int draw_cluster(const struct queue_options *queue)
{
    const struct selectors *selectors = &queue->jobs.selectors;
    const char *words[WORDS] = {"queue", "--json"};
    const char *const *const commands[] = {words};
    CLEANUP(child_release) struct child squeue = {.argv = slurm_waiting_argv};
    CLEANUP(json_release) json_t *reply = NULL;
    struct error err;
    json_t *slurm;

    put_words(words, "--all", queue->all ? "" : NULL);
    put_words(words, "--me", selectors->me ? "" : NULL);
    put_words(words, "--user", selectors->user);
    put_words(words, "--state", selectors->state);
    put_words(words, "--name", selectors->name);
    put_words(words, "--account", selectors->account);
    put_words(words, "--tag", selectors->tag);
    if (cluster_ask(&queue->cluster, commands, array_size(commands), &squeue, &reply, &err))
        return cli_fail("%s", err.text);
    slurm = slurm_waiting(&squeue, queue->cluster.timeout_ms);
    if (slurm)
        json_object_set_new(reply, "slurm", slurm);
    if (queue->jobs.json) {
        cluster_print_json(reply);
    } else {
        print_cluster(reply);
        cluster_print_silent(reply);
    }
    return cluster_status(reply);
}

/* ---- Of one node ---- */

static void print_jobs(const json_t *reply)
{
    struct table_column shown[array_size(columns) + 2];
    const json_t *jobs = json_object_get(reply, "jobs");
    size_t last = array_size(columns) - 1, i;
    struct extra extra = {0};
    struct table *table;
    json_t *job;

    memcpy(shown, columns, sizeof columns);
    json_array_foreach (jobs, i, job) {
        extra.turns |= turn_of(job) > 0;
        extra.projects |= answer_text(job, "account") != NULL;
    }
    if (extra.projects)
        shown[last++] = project_column;
    if (extra.turns)
        shown[last++] = turn_column;
    shown[last++] = columns[array_size(columns) - 1];
    table = table_new(shown, last);
    json_array_foreach (jobs, i, job) {
        CLEANUP(free_ptr) char *id = answer_job_id(job);
        table_cell(table, STYLE_NONE, "%s", id);
        add_cells(table, job, answer_integer(reply, "now_ns", 0), extra);
    }
    print_table(table);
    if (answer_integer(reply, "left_out", 0) > 0)
        printf("and %" PRId64 " more: carma queue --json has them all\n", answer_integer(reply, "left_out", 0));
}

static int draw(struct cli *cli, void *input)
{
    const struct queue_options *queue = input;
    const char *states = queue->all || queue->jobs.list.count ? "all" : NULL;
    CLEANUP(json_release) json_t *reply = NULL;
    struct error err;

    if (queue->cluster.wanted)
        return draw_cluster(queue);
    if (queue->jobs.json ? ask_for(cli, queue, states, NULL, &reply, &err)
                         : ask_for_rows(cli, queue, states, &reply, &err))
        return cli_fail("%s", err.text);
    if (queue->jobs.json) {
        cli_print_json(reply);
        return CLI_OK;
    }
    print_jobs(reply);
    return CLI_OK;
}

int cmd_queue(struct cli *cli, int argc, char **argv)
{
    struct queue_options queue = {0};
    int status;

    cluster_init(&queue.cluster);
    if (cli_parse(cli, argc, argv, &queue, &status))
        status = cli_watch(cli, queue.period_ns, draw, &queue);
    cli_jobs_release(&queue.jobs);
    return status;
}
