/* How this file works: a node that has no room for a job leaves it to the others: it is "excluded" until a lease ends
 * there, and for some minutes at most. For what cannot be seen from here, such as the job's features or a reservation,
 * may rule out all others, and Slurm never starts a job without a node. The last one that is left is not excluded:
 * there the job waits for a time that grows with each refusal, or until a lease ends. What its user excludes stays so.
 * That a node has "refused" it, so often as the last one, and "excluded" it, since when, are facts of its spool.
 * waiting_look() goes by them. Slurm shortens lists, "n1,n2" to "n[1-2]": they are read name by name. */
#include "slurm/agent/waiting.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "slurm/shared/spool.h"

static const char excluded_since[] = "excluded", refused[] = "refused";

static bool has_line(const char *lines, const char *name, size_t length)
{
    for (const char *line = lines; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strcspn(line, "\n") == length && strncmp(line, name, length) == 0)
            return true;
    return false;
}

bool waiting_leaves_another(const char *nodes, const char *excluded, const char *own)
{
    char name[256], gres[1024];

    for (const char *line = nodes; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (sscanf(line, "%255s %1023s", name, gres) == 2 && strstr(gres, "gpumem:") && strcmp(name, own) != 0 &&
            !has_line(excluded, name, strlen(name)))
            return true;
    return false;
}

struct lists {
    bool names_its_nodes;
    struct strbuf excluded; /* a line for each node */
};

static int read_lists(const struct slurm_job *slurms, struct lists *lists)
{
    struct strbuf said = {0};
    struct error err;
    const char *excluded;
    int rc =
        slurm_run("squeue", (const char *[]){"-h", "-t", "all", "-o", "%n|%x", "-j", slurms->name, NULL}, &said, &err);

    *lists = (struct lists){0};
    if (!rc) {
        said.text[strcspn(said.text, "\n")] = '\0';
        lists->names_its_nodes = said.text[0] != '|';
        excluded = strchr(said.text, '|');
        if (excluded && excluded[1] && strcmp(excluded + 1, "(null)") != 0)
            rc = slurm_run("scontrol", (const char *[]){"show", "hostnames", excluded + 1, NULL}, &lists->excluded,
                           &err);
    }
    if (rc)
        agent_say("%s", err.text);
    strbuf_release(&said);
    return rc;
}

/* The lines without `without`, as Slurm takes them. */
static void join(const char *lines, const char *without, struct strbuf *list)
{
    for (const char *line = lines; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        size_t length = strcspn(line, "\n");
        if (length && (strlen(without) != length || strncmp(line, without, length) != 0))
            strbuf_printf(list, "%s%.*s", list->length > 0 ? "," : "", (int)length, line);
    }
}

/* The nodes of the job's partition that run, each with what it counts. */
static void read_nodes(const struct slurm_job *slurms, struct strbuf *nodes)
{
    const char *const running[] = {
        "-h", "-Nr", "-t", "idle,mixed,allocated,completing", "-o", "%N %G", "-p", slurms->partition, NULL};
    struct error err;

    if (slurm_run("sinfo", running, nodes, &err))
        agent_say("%s", err.text);
}

bool waiting_exclude(const struct agent *agent, uint32_t job, const struct slurm_job *slurms, enum exclusion how)
{
    struct strbuf nodes = {0}, list = {0};
    struct lists lists;
    bool other = false;

    if (!read_lists(slurms, &lists) && (!lists.names_its_nodes || how == EXCLUDE_FOR_GOOD)) {
        read_nodes(slurms, &nodes);
        other = waiting_leaves_another(nodes.text, lists.excluded.text, agent->node);
        if (other || how == EXCLUDE_FOR_GOOD) {
            join(lists.excluded.text, agent->node, &list);
            strbuf_printf(&list, "%s%s", list.length > 0 ? "," : "", agent->node);
            if (!slurm_update(slurms->name, "ExcNodeList", list.text) && how == EXCLUDE_A_WHILE)
                spool_put(agent->spool, job, excluded_since, time(NULL));
        }
    }
    strbuf_release(&lists.excluded);
    strbuf_release(&nodes);
    strbuf_release(&list);
    return other;
}

static int let_node_again(const struct agent *agent, const struct slurm_job *slurms)
{
    struct strbuf list = {0};
    struct lists lists;
    int rc = read_lists(slurms, &lists);

    join(lists.excluded.text, agent->node, &list);
    if (!rc)
        rc = slurm_update(slurms->name, "ExcNodeList", list.length > 0 ? list.text : "");
    strbuf_release(&lists.excluded);
    strbuf_release(&list);
    return rc;
}

/* Slurm changes the list of a job that waits: of another it is asked again later. A start that is further away than any
 * of ours is its user's wish. */
static void look_at(const struct agent *agent, uint32_t job, bool excluded, bool was_refused)
{
    char soon[16];
    struct slurm_job slurms;
    struct error err;
    int rc = slurm_show_job(job, &slurms, &err);
    bool waits = !rc && strcmp(slurms.state, "PENDING") == 0;
    time_t now_s = time(NULL);

    if (excluded && !rc && !waits)
        spool_put(agent->spool, job, excluded_since, now_s);
    else if (excluded && (rc == -ENOENT || (waits && !let_node_again(agent, &slurms))))
        spool_forget(agent->spool, job, excluded_since);
    if (was_refused && waits && !slurms.held && slurms.begin_s > now_s + WAITING_LEAST_S &&
        slurms.begin_s <= now_s + WAITING_LONGEST_S) {
        snprintf(soon, sizeof soon, "now+%d", WAITING_LEAST_S);
        slurm_update(slurms.whole, "StartTime", soon);
    }
    if (was_refused && !waits && (!rc || rc == -ENOENT))
        spool_forget(agent->spool, job, refused);
}

static int is_fact(const struct dirent *entry)
{
    const char *dot = strchr(entry->d_name, '.');

    return isdigit((unsigned char)entry->d_name[0]) && dot &&
           (strcmp(dot + 1, excluded_since) == 0 || strcmp(dot + 1, refused) == 0);
}

void waiting_look(const struct agent *agent, bool room)
{
    struct dirent **names;
    int count = scandir(agent->spool, &names, is_fact, alphasort);
    int64_t now_s = time(NULL), since_s, times;

    for (int i = 0; i < count; i++) {
        uint32_t job = (uint32_t)strtoul(names[i]->d_name, NULL, 10);
        bool is_first = strcmp(strchr(names[i]->d_name, '.') + 1, excluded_since) == 0;
        bool excluded = is_first && spool_get(agent->spool, job, excluded_since, &since_s) &&
                        (room || now_s - since_s >= WAITING_LONGEST_S);
        bool was_refused = !is_first && room && spool_get(agent->spool, job, refused, &times);
        if (excluded || was_refused)
            look_at(agent, job, excluded, was_refused);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
}
