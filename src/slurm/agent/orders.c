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
#include "slurm/agent/waiting.h"
#include "slurm/shared/size.h"
#include "slurm/shared/spool.h"

enum {
    ORDER_BYTES = 512 << 10, /* JSON's escapes may make six bytes of one of the output's 64 KiB */
    FIRST_DELAY_S = 5,
    SOON = -1,
    MOST_RETRIES = 5,
    FORGET_AFTER_S = 7 * 86400,
};

struct order {
    const struct agent *agent;
    unsigned job, restart;   /* slurmd's number of the job: on this node no other has it */
    struct slurm_job slurms; /* of the same job */
    char what[16];
    bool held; /* the job has been ordered back, and is held */
    bool set;  /* and has what it shall start with */
    char name[80];
    char *text;     /* its lines */
    json_t *answer; /* carmad's, of an end */
    json_t *body;   /* or what it has not been told of the end */
};

static void path_of(const struct order *order, const char *name, char path[static 512])
{
    snprintf(path, 512, "%s/%s", order->agent->spool, name);
}

/* "held": the plugin waits until the order's own name is gone. "set": what the job shall start with is set, once,
 * however often slurmctld does not answer. "begun": a job that is held now is held by this order. */
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

/* Its last line. */
static json_t *read_json(const struct order *order, const char *key)
{
    static const struct json_bounds bounds = {.values = 1024, .depth = 8, .bytes = ORDER_BYTES};
    const char *at = strstr(order->text, key);
    json_t *found = NULL;

    if (at)
        json_read(at + strlen(key), strlen(at + strlen(key)), JSON_DISABLE_EOF_CHECK, &bounds, &found, NULL);
    return found;
}

static bool read_order(const struct agent *agent, const char *name, struct order *order, struct error *err)
{
    char path[512], suffix[8] = "", rest[64];
    int word = 0, whole = 0;
    size_t length;

    *order = (struct order){.agent = agent};
    if (strlen(name) >= sizeof order->name || sscanf(name, "%u.%u.%63s", &order->job, &order->restart, rest) != 3 ||
        sscanf(rest, "%15[a-z]%n.%7[a-z]%n", order->what, &word, suffix, &whole) < 1 || rest[whole ? whole : word] ||
        strcmp(suffix, "begun") == 0) /* or a file that is being written */
        return false;
    strcpy(order->name, name);
    order->set = strcmp(suffix, "set") == 0;
    order->held = order->set || strcmp(suffix, "held") == 0;
    path_of(order, name, path);
    if (file_read(path, ORDER_BYTES, &order->text, &length, err))
        return false;
    order->answer = read_json(order, "\nanswer ");
    order->body = read_json(order, "\nbody ");
    return true;
}

static void release_order(struct order *order)
{
    free(order->text);
    json_decref(order->answer);
    json_decref(order->body);
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

/* A user's own comment stays. */
static void comment(const struct order *order, const char *text)
{
    struct strbuf now = {0};
    struct error err;

    if (!slurm_run("squeue", (const char *[]){"-h", "-t", "all", "-O", "Comment:", "-j", order->slurms.name, NULL},
                   &now, &err) &&
        (strncmp(now.text, "(null)", 6) == 0 || strncmp(now.text, "carma:", 6) == 0))
        slurm_update(order->slurms.name, "Comment", text);
    strbuf_release(&now);
}

static int write_down_end(const struct order *order)
{
    char *text = order->answer ? json_dumps(order->answer, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    int rc = text ? slurm_update(order->slurms.name, "AdminComment", text) : 0;

    free(text);
    return rc;
}

static int64_t times_of(const struct order *order, const char *fact)
{
    int64_t times = 0;

    spool_get(order->agent->spool, order->job, fact, &times);
    return times;
}

/* The order has come so far, and the next agent begins there. */
static void go_on_as(struct order *order, const char *suffix)
{
    char own[512], next[512];

    path_of(order, order->name, own);
    variant(order, suffix, next);
    rename(own, next);
    snprintf(order->name, sizeof order->name, "%s", strrchr(next, '/') + 1);
}

/* Whether the order's job may go back: Slurm holds it running, or has found it failed while no agent was there. Every
 * other end was somebody's wish. */
static bool may_go_back(const struct order *order)
{
    const struct slurm_job *slurms = &order->slurms;

    return (strcmp(slurms->state, "RUNNING") == 0 || strcmp(slurms->state, "FAILED") == 0) &&
           slurms->restarts == order->restart && (order->answer == NULL || times_of(order, "retried") < MOST_RETRIES);
}

/* Holds the job. It waits at Slurm like one that never began: dependents see no failure. true: done with it for now. */
static bool order_back(struct order *order)
{
    char begun[512];
    struct slurm_job *slurms = &order->slurms;
    struct strbuf said = {0};
    struct error err, lost;
    int rc;

    variant(order, "begun", begun);
    if (access(begun, F_OK) || slurms->restarts != (int64_t)order->restart + 1) {
        if (strcmp(slurms->state, "COMPLETING") == 0)
            return false; /* its end is not told yet */
        if (!may_go_back(order)) {
            finish(order);
            return true;
        }
        spool_order(order->agent->spool, order->job, order->restart,
                    strcmp(order->what, "retry") == 0 ? "retry.begun" : "refused.begun", "", NULL);
        rc = slurm_run("scontrol", (const char *[]){"requeuehold", slurms->whole, NULL}, &said, &err);
        strbuf_release(&said);
        /* A slow slurmctld is asked again, by scontrol too, and refuses to requeue what waits already. */
        if (rc == -EAGAIN || (rc && slurm_show_job(order->job, slurms, &lost) == -EAGAIN))
            return false;
        if (rc && slurms->restarts != (int64_t)order->restart + 1) {
            agent_say("job %s stays ended: %s", slurms->name, err.text);
            comment(order, "carma:not requeued: the job may not be");
            finish(order);
            return true;
        }
    }
    go_on_as(order, "held");
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
static int set_request(const struct order *order)
{
    const char *old = order->slurms.gres;
    char text[96], was[UNITS_TEXT], is[UNITS_TEXT];
    const char *cause = json_string_value(json_object_get(order->answer, "cause"));
    int64_t gpus = order_number(order, "gpus ", 1), next = answer_number(order, "request_bytes"), before = 0;
    struct counts_node node;
    struct strbuf list = {0};
    struct error err;
    int rc = read_node(order, &node, &err);

    if (rc) {
        agent_say("job %s: its request stays: %s", order->slurms.name, err.text);
        return rc;
    }
    before = order_number(order, "memory ", 0); /* and not what slurmctld says now: it may have heard of the new one */
    if (before == 0 && size_of_gres(old, "gpumem", &before))
        before /= gpus;
    if (cause && strcmp(cause, "gpu_oom") == 0 && next < before + before / 4)
        next = before + before / 4;
    if (next < before)
        next = before;
    if (json_is_true(json_object_get(order->answer, "exclusive")) || next > node.whole_bytes)
        next = node.whole_bytes;
    counts_request(old, &node, gpus, next, &list);
    rc = slurm_update(order->slurms.name, "Gres", list.text);
    snprintf(text, sizeof text, "carma:%s:%s->%s", cause ? cause : "retry", format_bytes(before, was),
             format_bytes(next, is));
    if (!rc)
        comment(order, text);
    strbuf_release(&list);
    return rc;
}

/* When its file was written; a later name keeps that. */
static time_t written_s(const struct order *order)
{
    char path[512];
    struct stat info;

    path_of(order, order->name, path);
    return stat(path, &info) == 0 ? info.st_mtime : 0;
}

/* A slurmd that begins while a job ends takes it for running from then on. It refuses to start it again, and Slurm
 * drains the node for that ("Duplicate jobid"). */
static bool slurmd_takes_it_for_running(const struct order *order)
{
    struct error err;
    time_t began, written = written_s(order);

    return written && !slurm_node_began(order->agent->node, &began, &err) && began >= written;
}

/* Whether the value of "Name   = value" in scontrol's configuration has the word. */
static bool config_has(const struct strbuf *config, const char *name, const char *word)
{
    const char *line = strstr(config->text, name), *at = line ? strstr(line, word) : NULL;

    return at && at < line + 1 + strcspn(line + 1, "\n");
}

/* By ending jobs: one that is suspended keeps its GPU memory, in Slurm's count and here. */
static bool slurm_preempts(void)
{
    struct strbuf config = {0};
    struct error err;
    bool does = !slurm_run("scontrol", (const char *[]){"show", "config", NULL}, &config, &err) &&
                config_has(&config, "\nPreemptType ", "preempt/") &&
                !config_has(&config, "\nPreemptType ", "preempt/none") &&
                !config_has(&config, "\nPreemptMode ", "SUSPEND");

    strbuf_release(&config);
    return does;
}

/* Memory that is free in pieces is room to Slurm, which then preempts nobody for the job. */
static void ask_for_preemption(const struct order *order, int64_t refusals)
{
    struct strbuf line = {0}, list = {0};
    struct error err;
    char all[NODE_LIST_BYTES], used[NODE_LIST_BYTES];

    if (slurm_preempts() &&
        !slurm_run("scontrol", (const char *[]){"-d", "show", "node", "-o", order->agent->node, NULL}, &line, &err) &&
        counts_property(line.text, "Gres", all, sizeof all) &&
        counts_property(line.text, "GresUsed", used, sizeof used) &&
        counts_beyond_free(order->slurms.gres, all, used, refusals, &list))
        slurm_update(order->slurms.name, "Gres", list.text);
    strbuf_release(&line);
    strbuf_release(&list);
}

/* So often has it been refused now where no other node was left to it; SOON: there may be room by now. */
static int64_t set_refusal(const struct order *order, int64_t times)
{
    const char *reason = strstr(order->text, "reason ");
    char text[512];
    enum exclusion how = order_number(order, "never ", 0)     ? EXCLUDE_FOR_GOOD
                         : slurmd_takes_it_for_running(order) ? EXCLUDE_UNLESS_LAST
                                                              : EXCLUDE_A_WHILE;

    if (times < 0)
        times = 0;
    if (how == EXCLUDE_A_WHILE && waiting_had_room(written_s(order)))
        times = SOON;
    else
        times += !waiting_exclude(order->agent, order->job, &order->slurms, how);
    if (order_number(order, "room ", 0))
        ask_for_preemption(order, times > 0 ? times : 1);
    snprintf(text, sizeof text, "carma:refused:%s:%.400s", order->agent->node, reason ? reason + 7 : "");
    text[strcspn(text, "\n")] = '\0';
    comment(order, text);
    return times;
}

/* Seconds until a job starts again: soon where another node is left to it, else later with each refusal. */
static int64_t delay_of(const struct order *order)
{
    int64_t delay_s = FIRST_DELAY_S, times = times_of(order, "refused");

    if (order->answer || times < 0 || times_of(order, "excluded"))
        return WAITING_LEAST_S;
    for (int64_t i = 1; i < times && delay_s < WAITING_LONGEST_S; i++)
        delay_s *= 2;
    return delay_s < WAITING_LONGEST_S ? delay_s : WAITING_LONGEST_S;
}

/* Whether processes of the job still end, or of a component beside it: until then Slurm sets its own StartTime. */
static bool still_ends(const struct slurm_job *slurms)
{
    struct strbuf states = {0};
    struct error err;
    bool ends = strcmp(slurms->state, "COMPLETING") == 0;

    if (!ends && strcmp(slurms->whole, slurms->name) != 0) {
        const char *const all[] = {"-h", "-t", "all", "-o", "%T", "-j", slurms->whole, NULL};
        ends = slurm_run("squeue", all, &states, &err) || strstr(states.text, "COMPLETING");
    }
    strbuf_release(&states);
    return ends;
}

/* Sets what the held job shall start with. false: slurmctld does not answer. */
static bool set_start(struct order *order)
{
    const char *fact = order->answer ? "retried" : "refused";
    int64_t times = times_of(order, fact);

    /* Where its request cannot be set, a start with the old one is better than none. */
    if (order->answer && (write_down_end(order) == -EAGAIN || set_request(order) == -EAGAIN))
        return false;
    if (!order->answer)
        times = set_refusal(order, times);
    else if (slurmd_takes_it_for_running(order))
        waiting_exclude(order->agent, order->job, &order->slurms, EXCLUDE_UNLESS_LAST);
    spool_put(order->agent->spool, order->job, fact, order->answer ? times + 1 : times);
    go_on_as(order, "set");
    return true;
}

/* Lets the held job go, unless somebody has ended it or let it go meanwhile. */
static bool let_go(struct order *order)
{
    const struct slurm_job *slurms = &order->slurms;
    char begin[32];
    int64_t delay_s;
    struct strbuf said = {0};
    struct error err;
    int rc = 0;

    if (still_ends(slurms))
        return false;
    if (slurms->held && slurms->restarts == (int64_t)order->restart + 1) {
        if (!order->set && !set_start(order))
            return false;
        delay_s = delay_of(order);
        snprintf(begin, sizeof begin, "now+%lld", (long long)delay_s);
        rc = slurm_update(slurms->whole, "StartTime", begin);
        if (!rc)
            rc = slurm_run("scontrol", (const char *[]){"release", slurms->whole, NULL}, &said, &err);
        strbuf_release(&said);
        if (rc)
            return false;
        agent_say("job %s is queued again after '%s', in %lld s", slurms->name, order->what, (long long)delay_s);
    }
    finish(order);
    return true;
}

/* The lease of this start on this node; 0: carmad has none. */
static int find_lease(const struct order *order, int64_t *id, struct error *err)
{
    char path[64];
    json_t *reply = NULL, *lease;
    size_t i;
    int rc;

    snprintf(path, sizeof path, "/v1/leases/by-key?job=%u", order->job);
    rc = agent_ask(order->agent, "GET", path, NULL, &reply, err);
    *id = 0;
    json_array_foreach (json_object_get(reply, "leases"), i, lease) {
        const char *node = json_string_value(json_object_get(lease, "node"));
        if (node && strcmp(node, order->agent->node) == 0 &&
            json_integer_value(json_object_get(lease, "restart")) == (json_int_t)order->restart &&
            json_integer_value(json_object_get(lease, "id")) > *id)
            *id = json_integer_value(json_object_get(lease, "id"));
    }
    json_decref(reply);
    return rc;
}

/* carmad's answer becomes the order that the plugin would have left. */
static bool tell_end(const struct order *order)
{
    char path[64];
    struct strbuf lines = {0};
    struct error err;
    json_t *reply = NULL;
    int64_t id;
    int rc = find_lease(order, &id, &err);
    bool is = !rc && id > 0 && order->body;

    snprintf(path, sizeof path, "/v1/leases/%lld/end", (long long)id);
    if (is)
        rc = agent_ask(order->agent, "POST", path, order->body, &reply, &err);
    if (is && !rc) {
        const char *verdict = json_string_value(json_object_get(reply, "verdict"));
        char *answer = json_dumps(reply, JSON_COMPACT | JSON_PRESERVE_ORDER);
        strbuf_printf(&lines, "gpus %lld\nmemory %lld\nanswer %s\n", (long long)order_number(order, "gpus ", 1),
                      (long long)order_number(order, "memory ", 0), answer ? answer : "{}");
        rc = spool_order(order->agent->spool, order->job, order->restart,
                         verdict && strcmp(verdict, "retry") == 0 ? "retry" : "ended", lines.text, &err);
        free(answer);
    }
    json_decref(reply);
    strbuf_release(&lines);
    if (!rc)
        finish(order);
    return !rc;
}

static bool ended; /* a start that ran: there is room for jobs that wait */

bool orders_have_ended(void)
{
    bool have = ended;

    ended = false;
    return have;
}

/* A start that was refused is no end: the job's refusals are counted on. */
static bool note_end(const struct order *order)
{
    static const char *const facts[] = {"refused", "retried", "excluded"};
    const char *cause = json_string_value(json_object_get(order->answer, "cause"));
    bool ran = !cause || strcmp(cause, "expired") != 0;

    if (ran && write_down_end(order) == -EAGAIN)
        return false;
    for (size_t i = 0; ran && i < sizeof facts / sizeof *facts; i++)
        spool_forget(order->agent->spool, order->job, facts[i]);
    finish(order);
    ended = ended || ran;
    return true;
}

/* true: there is nothing more to do for it. */
static bool carry_out(struct order *order)
{
    struct error err;
    int rc = slurm_show_job(order->job, &order->slurms, &err);

    if (rc == -ENOENT) {
        finish(order);
        return true;
    }
    if (rc) {
        agent_say("job %u: %s", order->job, err.text);
        return false;
    }
    if (strcmp(order->what, "end") == 0)
        return tell_end(order);
    if (strcmp(order->what, "ended") == 0)
        return note_end(order);
    return order->held ? let_go(order) : order_back(order);
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

/* true: it waits for Slurm. */
static bool look_at(const struct agent *agent, const char *name, bool held)
{
    struct order order;
    struct error err;
    bool waiting = false;

    if (!read_order(agent, name, &order, &err))
        forget_old(agent, name);
    else if (order.held == held)
        waiting = !carry_out(&order);
    release_order(&order);
    return waiting;
}

bool orders_carry_out(const struct agent *agent)
{
    struct dirent **names;
    bool waiting = false;
    int count = scandir(agent->spool, &names, NULL, alphasort);

    /* Those first that a job's end waits for. */
    for (int held = 0; held <= 1; held++)
        for (int i = 0; i < count; i++)
            waiting = look_at(agent, names[i]->d_name, held) || waiting;
    for (int i = 0; i < count; i++)
        free(names[i]);
    if (count >= 0)
        free(names);
    return waiting;
}
