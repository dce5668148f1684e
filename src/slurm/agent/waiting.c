/* How this file works: a node that has no room for a job leaves it to the others: it is "excluded" until a lease ends
 * there, and for some minutes at most. For what cannot be seen from here, such as the job's features or a reservation,
 * may rule out all others, and Slurm never starts a job without a node. The last one that is left is not excluded:
 * there the job waits for a time that grows with each refusal, or until a lease ends. What its user excludes stays so.
 * That a node has "refused" it, so often as the last one, and "excluded" it, since when, are facts of its spool.
 * waiting_look() goes by them, some jobs at a time. Slurm shortens lists, "n1,n2" to "n[1-2]": they are read name by
 * name. */
#include "slurm/agent/waiting.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "slurm/shared/spool.h"

/* MOST_TRIED: of the facts of jobs that wait, at one look. Each costs some of Slurm's programs, and orders wait
 * meanwhile; and of many that come for one lease's end most would be refused again. */
enum { AGAIN_S = 10, MOST_TRIED = 16 };

static const char excluded_since[] = "excluded", refused[] = "refused";

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end ? end + 1 : NULL;
}

static bool has_line(const char *lines, const char *name, size_t length)
{
    for (const char *line = lines; line && *line; line = next_line(line))
        if (strcspn(line, "\n") == length && strncmp(line, name, length) == 0)
            return true;
    return false;
}

/* Not "drained", "idle*" and their like. */
static bool takes_jobs(const char *state)
{
    static const char *const words[] = {"idle", "mixed", "allocated", "completing", "planned"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(state, words[i]) == 0)
            return true;
    return false;
}

bool waiting_leaves_others(const char *nodes, const char *excluded, const char *own, int64_t wanted)
{
    char state[64], name[256], gres[1024];
    int64_t found = 0;

    for (const char *line = nodes; line && *line; line = next_line(line))
        found += sscanf(line, "%63s %255s %1023s", state, name, gres) == 3 && takes_jobs(state) &&
                 strstr(gres, "gpumem:") && strcmp(name, own) != 0 && !has_line(excluded, name, strlen(name));
    return found >= wanted;
}

struct lists {
    bool names_its_nodes;
    int64_t nodes;          /* that it needs */
    struct strbuf excluded; /* a line for each node */
};

static int read_lists(const struct slurm_job *slurms, struct lists *lists)
{
    struct strbuf said = {0};
    struct error err;
    const char *excluded;
    int rc = slurm_run("squeue", (const char *[]){"-h", "-t", "all", "-o", "%n|%D|%x", "-j", slurms->name, NULL}, &said,
                       &err);

    *lists = (struct lists){0};
    if (!rc) {
        said.text[strcspn(said.text, "\n")] = '\0';
        lists->names_its_nodes = said.text[0] != '|';
        lists->nodes = strtoll(said.text + strcspn(said.text, "|") + 1, NULL, 10);
        excluded = strrchr(said.text, '|');
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
    for (const char *line = lines; line && *line; line = next_line(line)) {
        size_t length = strcspn(line, "\n");
        if (length && (strlen(without) != length || strncmp(line, without, length) != 0))
            strbuf_printf(list, "%s%.*s", list->length > 0 ? "," : "", (int)length, line);
    }
}

/* The nodes of the job's partition, each with its state and what it counts. */
static void read_nodes(const struct slurm_job *slurms, struct strbuf *nodes)
{
    struct error err;

    if (slurm_run("sinfo", (const char *[]){"-h", "-Nr", "-o", "%T %N %G", "-p", slurms->partition, NULL}, nodes, &err))
        agent_say("%s", err.text);
}

bool waiting_exclude(const struct agent *agent, uint32_t job, const struct slurm_job *slurms, enum exclusion how)
{
    struct strbuf nodes = {0}, list = {0};
    struct lists lists;
    bool other = false;

    spool_forget(agent->spool, job, excluded_since);
    if (!read_lists(slurms, &lists) && (!lists.names_its_nodes || how == EXCLUDE_FOR_GOOD)) {
        read_nodes(slurms, &nodes);
        other = waiting_leaves_others(nodes.text, lists.excluded.text, agent->node, lists.nodes);
        if (other || how == EXCLUDE_FOR_GOOD) {
            join(lists.excluded.text, agent->node, &list);
            strbuf_printf(&list, "%s%s", list.length > 0 ? "," : "", agent->node);
            other = !slurm_update(slurms->name, "ExcNodeList", list.text) && other;
            if (other && how == EXCLUDE_A_WHILE)
                spool_put(agent->spool, job, excluded_since, time(NULL));
        }
    }
    strbuf_release(&lists.excluded);
    strbuf_release(&nodes);
    strbuf_release(&list);
    return other;
}

/* waiting_look() looks at the exclusion again in `seconds`, even if no lease has ended here. */
static void look_again(const struct agent *agent, uint32_t job, int64_t seconds)
{
    spool_put(agent->spool, job, excluded_since, time(NULL) - WAITING_LONGEST_S + seconds);
}

/* Another node's agent may write the list at the same time, with this node in it: so it is looked at again. */
static void let_node_again(const struct agent *agent, uint32_t job, const struct slurm_job *slurms)
{
    struct strbuf list = {0};
    struct lists lists;
    int rc = read_lists(slurms, &lists);

    if (!rc && !has_line(lists.excluded.text, agent->node, strlen(agent->node))) {
        spool_forget(agent->spool, job, excluded_since);
    } else if (!rc) {
        join(lists.excluded.text, agent->node, &list);
        slurm_update(slurms->name, "ExcNodeList", list.length > 0 ? list.text : "");
        look_again(agent, job, AGAIN_S);
    }
    strbuf_release(&lists.excluded);
    strbuf_release(&list);
}

/* Since it was last written. */
static int64_t age_s(const struct agent *agent, uint32_t job, const char *fact)
{
    char path[512];
    struct stat info;

    snprintf(path, sizeof path, "%s/%u.%s", agent->spool, job, fact);
    return stat(path, &info) == 0 ? time(NULL) - info.st_mtime : 0;
}

/* Slurm changes the list of a job that waits: of one that runs, or is just being tried elsewhere, it is asked again. A
 * start that is further away than any of ours is its user's wish. Whether it could be let go. */
static bool look_at(const struct agent *agent, uint32_t job, bool excluded, bool was_refused)
{
    char soon[16];
    struct slurm_job slurms;
    struct error err;
    int rc = slurm_show_job(job, &slurms, &err);
    bool waits = !rc && strcmp(slurms.state, "PENDING") == 0;
    time_t now_s = time(NULL);

    if (excluded && waits)
        let_node_again(agent, job, &slurms);
    else if (excluded && rc == -ENOENT)
        spool_forget(agent->spool, job, excluded_since);
    else if (excluded)
        look_again(agent, job, WAITING_LONGEST_S / 10);
    if (was_refused && waits && !slurms.held && slurms.begin_s > now_s + WAITING_LEAST_S &&
        slurms.begin_s <= now_s + WAITING_LONGEST_S) {
        snprintf(soon, sizeof soon, "now+%d", WAITING_LEAST_S);
        slurm_update(slurms.whole, "StartTime", soon);
    }
    if (was_refused && (rc == -ENOENT || (!rc && !waits && age_s(agent, job, refused) > 2 * WAITING_LONGEST_S)))
        spool_forget(agent->spool, job, refused);
    return waits;
}

static int is_fact(const struct dirent *entry)
{
    const char *dot = strchr(entry->d_name, '.');

    return isdigit((unsigned char)entry->d_name[0]) && dot &&
           (strcmp(dot + 1, excluded_since) == 0 || strcmp(dot + 1, refused) == 0);
}

static time_t last_room_s;

bool waiting_had_room(time_t since_s)
{
    return last_room_s >= since_s;
}

void waiting_look(const struct agent *agent, bool room)
{
    struct dirent **names;
    int count = scandir(agent->spool, &names, is_fact, versionsort); /* the oldest jobs first */
    int64_t now_s = time(NULL), since_s, times;
    int left = MOST_TRIED;

    if (room)
        last_room_s = now_s;
    for (int i = 0; i < count; i++) {
        uint32_t job = (uint32_t)strtoul(names[i]->d_name, NULL, 10);
        bool is_first = strcmp(strchr(names[i]->d_name, '.') + 1, excluded_since) == 0;
        bool excluded = is_first && spool_get(agent->spool, job, excluded_since, &since_s) &&
                        (room || now_s - since_s >= WAITING_LONGEST_S);
        bool was_refused = !is_first && room && spool_get(agent->spool, job, refused, &times);
        if (left > 0 && (excluded || was_refused))
            left -= look_at(agent, job, excluded, was_refused);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
}
