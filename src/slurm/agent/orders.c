#include "slurm/agent/orders.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json/json_read.h"
#include "base/units.h"
#include "slurm/agent/counts.h"
#include "slurm/agent/node.h"
#include "slurm/agent/slurm.h"
#include "slurm/plugin/size.h"
#include "slurm/plugin/spool.h"

enum {
    ORDER_BYTES = 64 << 10,
    FIRST_DELAY_S = 5,
    LONGEST_DELAY_S = 300,
    RETRY_DELAY_S = 3, /* a start in the second of the kill is refused: "credential revoked" */
    MOST_REFUSALS = 3, /* of one node; then another has to be found */
    MOST_RETRIES = 5,
    FORGET_AFTER_S = 7 * 86400,
};

struct order {
    const struct agent *agent;
    unsigned job, restart;
    char what[16];
    bool held; /* the job has been ordered back, and is held until its request is set */
    char name[80];
    char *text;     /* its lines */
    json_t *answer; /* carmad's, of an end */
};

static void path_of(const struct order *order, const char *name, char path[static 512])
{
    snprintf(path, 512, "%s/%s", order->agent->spool, name);
}

/* "held": the plugin waits until the order's own name is gone. "begun": a job that is held now is held by this order.
 */
static void variant(const struct order *order, const char *suffix, char path[static 512])
{
    snprintf(path, 512, "%s/%u.%u.%s.%s", order->agent->spool, order->job, order->restart, order->what, suffix);
}

static void finish(const struct order *order)
{
    char path[512];

    path_of(order, order->name, path);
    unlink(path);
    variant(order, "begun", path);
    unlink(path);
}

static bool read_order(const struct agent *agent, const char *name, struct order *order, struct error *err)
{
    char path[512], suffix[8] = "", rest[64];
    static const struct json_bounds bounds = {.values = 1024, .depth = 8, .bytes = ORDER_BYTES};
    const char *answer;
    size_t length;

    *order = (struct order){.agent = agent};
    if (strlen(name) >= sizeof order->name || sscanf(name, "%u.%u.%63s", &order->job, &order->restart, rest) != 3 ||
        sscanf(rest, "%15[a-z].%7[a-z]", order->what, suffix) < 1 || strcmp(suffix, "begun") == 0)
        return false;
    strcpy(order->name, name);
    order->held = strcmp(suffix, "held") == 0;
    path_of(order, name, path);
    if (file_read(path, ORDER_BYTES, &order->text, &length, err))
        return false;
    answer = strstr(order->text, "answer ");
    if (answer)
        json_read(answer + 7, strlen(answer + 7), JSON_DISABLE_EOF_CHECK, &bounds, &order->answer, NULL);
    return true;
}

static void release_order(struct order *order)
{
    free(order->text);
    json_decref(order->answer);
}

static int64_t order_number(const struct order *order, const char *key, int64_t otherwise)
{
    const char *at = strstr(order->text, key);

    return at && (at == order->text || at[-1] == '\n') ? strtoll(at + strlen(key), NULL, 10) : otherwise;
}

static int64_t answer_number(const struct order *order, const char *key)
{
    return json_integer_value(json_object_get(order->answer, key));
}

static int update(const struct order *order, const char *what, const char *value)
{
    struct text said = {0};
    struct error err;
    char id[32], *word = NULL;
    int rc = -ENOMEM;

    snprintf(id, sizeof id, "JobId=%u", order->job);
    if (asprintf(&word, "%s=%s", what, value) >= 0)
        rc = slurm_run("scontrol", (const char *[]){"update", id, word, NULL}, &said, &err);
    if (rc)
        agent_say("job %u: %s=%s: %s", order->job, what, value, err.text);
    free(word);
    text_release(&said);
    return rc;
}

/* A user's own comment stays. */
static void comment(const struct order *order, const char *line, const char *text)
{
    char now[64] = "";

    if (!counts_property(line, "Comment", now, sizeof now) || strncmp(now, "carma:", 6) == 0)
        update(order, "Comment", text);
}

static int write_down_end(const struct order *order)
{
    char *text = order->answer ? json_dumps(order->answer, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    int rc = text ? update(order, "AdminComment", text) : 0;

    free(text);
    return rc;
}

static int64_t count_up(const struct order *order, const char *fact)
{
    int64_t times = 0;

    spool_get(order->agent->spool, order->job, fact, &times);
    spool_put(order->agent->spool, order->job, fact, times + 1);
    return times + 1;
}

/* Whether the order's job may go back: Slurm holds it running, or has found it failed while no agent was there. Every
 * other end was somebody's wish. */
static bool may_go_back(const struct order *order, const char *state, const char *line)
{
    char restarts[16] = "";
    int64_t retried = 0;

    spool_get(order->agent->spool, order->job, "retried", &retried);
    counts_property(line, "Restarts", restarts, sizeof restarts);
    return (strcmp(state, "RUNNING") == 0 || strcmp(state, "FAILED") == 0) &&
           strtoul(restarts, NULL, 10) == order->restart && (order->answer == NULL || retried < MOST_RETRIES);
}

/* Holds the job. true: done with it for now. */
static bool order_back(struct order *order, const char *line)
{
    char state[32] = "", begun[512], own[512], held[512], id[16];
    struct text said = {0};
    struct error err;
    int rc;

    counts_property(line, "JobState", state, sizeof state);
    variant(order, "begun", begun);
    if (strcmp(state, "COMPLETING") == 0 && access(begun, F_OK))
        return false; /* its end is not told yet */
    if (strcmp(state, "COMPLETING") != 0 && !(strcmp(state, "SPECIAL_EXIT") == 0 && access(begun, F_OK) == 0)) {
        if (!may_go_back(order, state, line)) {
            finish(order);
            return true;
        }
        spool_order(order->agent->spool, order->job, order->restart,
                    strcmp(order->what, "retry") == 0 ? "retry.begun" : "refused.begun", "");
        snprintf(id, sizeof id, "%u", order->job);
        rc = slurm_run("scontrol", (const char *[]){"requeuehold", "State=SpecialExit", id, NULL}, &said, &err);
        text_release(&said);
        if (rc == -EAGAIN)
            return false;
        if (rc) {
            agent_say("job %u stays ended: %s", order->job, err.text);
            comment(order, line, "carma:not requeued: the job may not be");
            finish(order);
            return true;
        }
    }
    path_of(order, order->name, own);
    variant(order, "held", held);
    rename(own, held);
    return false;
}

static int read_node(const struct order *order, struct counts_node *node, struct error *err)
{
    char list[NODE_LIST_BYTES];
    json_t *capacity = NULL;
    int rc = agent_ask(order->agent, "GET", "/v1/capacity", NULL, &capacity, err);

    if (!rc)
        rc = node_full_list(order->agent, list, err);
    if (!rc && !counts_read_node(list, json_integer_value(json_object_get(capacity, "gpus")), node))
        rc = error_set(err, EINVAL, "Slurm's node %s counts no gpumem: see docs/slurm.md", order->agent->node);
    json_decref(capacity);
    return rc;
}

/* More than before after an OOM, and never less; whole GPUs at the end. */
static int set_request(const struct order *order, const char *line)
{
    char old[512] = "", text[96], was[UNITS_TEXT], is[UNITS_TEXT];
    const char *cause = json_string_value(json_object_get(order->answer, "cause"));
    int64_t gpus = order_number(order, "gpus ", 1), next = answer_number(order, "request_bytes"), before = 0;
    struct counts_node node;
    struct text list = {0};
    struct error err;
    int rc = read_node(order, &node, &err);

    if (rc) {
        agent_say("job %u: its request stays: %s", order->job, err.text);
        return rc;
    }
    counts_property(line, "TresPerNode", old, sizeof old);
    if (size_of_gres(old, "gpumem", &before))
        before /= gpus;
    if (cause && strcmp(cause, "gpu_oom") == 0 && next < before + before / 4)
        next = before + before / 4;
    if (next < before)
        next = before;
    if (json_is_true(json_object_get(order->answer, "exclusive")) || next > node.whole_bytes)
        next = node.whole_bytes;
    counts_request(old, &node, gpus, next, &list);
    rc = list.failed ? -ENOMEM : update(order, "Gres", list.bytes);
    snprintf(text, sizeof text, "carma:%s:%s->%s", cause ? cause : "retry", format_bytes(before, was),
             format_bytes(next, is));
    if (!rc)
        comment(order, line, text);
    text_release(&list);
    return rc;
}

/* Another node, where the job may run on one that has not refused it. */
static void exclude_node(const struct order *order, const char *line, bool never)
{
    char excluded[512] = "", partition[128] = "", list[640];
    struct text nodes = {0};
    struct error err;
    bool other = never;

    counts_property(line, "ExcNodeList", excluded, sizeof excluded);
    counts_property(line, "Partition", partition, sizeof partition);
    if (strcmp(excluded, "(null)") == 0)
        excluded[0] = '\0';
    snprintf(list, sizeof list, "%s%s%s", excluded, excluded[0] ? "," : "", order->agent->node);
    if (!never &&
        slurm_run("sinfo", (const char *[]){"-h", "-N", "-o", "%N", "-p", partition, NULL}, &nodes, &err) == 0) {
        char *rest = nodes.bytes;

        for (const char *node; (node = strsep(&rest, "\n"));)
            other =
                other || (*node && !strstr(list, node)); /* a name within another's excludes too few, not too many */
    }
    text_release(&nodes);
    /* All have refused it by now: begin again. */
    update(order, "ExcNodeList", other ? list : "");
}

static int set_refusal(const struct order *order, const char *line, int64_t *delay_s)
{
    const char *reason = strstr(order->text, "reason ");
    bool never = order_number(order, "never ", 0) != 0;
    int64_t times = count_up(order, "refused");
    char text[512];

    *delay_s = FIRST_DELAY_S;
    for (int64_t i = 1; i < times && *delay_s < LONGEST_DELAY_S; i++)
        *delay_s *= 2;
    if (*delay_s > LONGEST_DELAY_S)
        *delay_s = LONGEST_DELAY_S;
    if (never || times >= MOST_REFUSALS)
        exclude_node(order, line, never);
    snprintf(text, sizeof text, "carma:refused:%s:%.400s", order->agent->node, reason ? reason + 7 : "");
    text[strcspn(text, "\n")] = '\0';
    comment(order, line, text);
    return 0;
}

/* Sets what the held job shall start with, and lets it go. */
static bool let_go(const struct order *order, const char *line)
{
    char state[32] = "", begin[32], id[16];
    int64_t delay_s = RETRY_DELAY_S;
    struct text said = {0};
    struct error err;
    int rc = 0;

    counts_property(line, "JobState", state, sizeof state);
    if (strcmp(state, "COMPLETING") == 0 || strcmp(state, "RUNNING") == 0)
        return false;
    if (strcmp(state, "SPECIAL_EXIT") == 0) {
        if (order->answer) {
            write_down_end(order);
            set_request(order, line); /* where that fails, a start with the old request is better than none */
            count_up(order, "retried");
        } else {
            set_refusal(order, line, &delay_s);
        }
        snprintf(begin, sizeof begin, "now+%lld", (long long)delay_s);
        rc = update(order, "StartTime", begin);
        snprintf(id, sizeof id, "%u", order->job);
        if (!rc)
            rc = slurm_run("scontrol", (const char *[]){"release", id, NULL}, &said, &err);
        text_release(&said);
        if (rc)
            return false;
        agent_say("job %u is queued again after '%s', in %lld s", order->job, order->what, (long long)delay_s);
    }
    finish(order);
    return true;
}

/* true: there is nothing more to do for it. */
static bool carry_out(struct order *order)
{
    struct text line = {0};
    struct error err;
    bool done;
    int rc;

    if (strcmp(order->what, "ended") == 0) {
        if (write_down_end(order) == -EAGAIN)
            return false;
        spool_forget(order->agent->spool, order->job, "refused");
        spool_forget(order->agent->spool, order->job, "retried");
        finish(order);
        return true;
    }
    rc = slurm_show_job(order->job, &line, &err);
    if (rc == -ENOENT)
        finish(order);
    else if (rc)
        agent_say("job %u: %s", order->job, err.text);
    if (rc)
        done = rc == -ENOENT;
    else
        done = order->held ? let_go(order, line.bytes) : order_back(order, line.bytes);
    text_release(&line);
    return done;
}

/* Facts about jobs whose end nobody told; those about the node stay. */
static void forget_old(const struct agent *agent, const char *name)
{
    char path[512];
    struct stat info;

    snprintf(path, sizeof path, "%s/%s", agent->spool, name);
    if (isdigit((unsigned char)name[0]) && stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
        time(NULL) - info.st_mtime > FORGET_AFTER_S)
        unlink(path);
}

bool orders_carry_out(const struct agent *agent)
{
    struct dirent **names;
    struct error err;
    bool waiting = false;
    int count = scandir(agent->spool, &names, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        struct order order;

        if (read_order(agent, names[i]->d_name, &order, &err))
            waiting = !carry_out(&order) || waiting;
        else
            forget_old(agent, names[i]->d_name);
        release_order(&order);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    return waiting;
}
