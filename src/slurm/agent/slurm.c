#include "slurm/agent/slurm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/kernel/aside.h"
#include "base/memory.h"
#include "slurm/agent/agent.h"
#include "slurm/agent/counts.h"

enum { MOST_ARGUMENTS = 8, PATIENCE_MS = 15000 };

/* In a child of its own, which is killed where that takes too long. Its status is the last line. */
static void execute(const void *argv, int to)
{
    char *const *words = *(char *const *const *)argv;
    int status = 0;
    pid_t program = fork();

    if (program == 0) {
        int null = open("/dev/null", O_RDONLY);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (null >= 0 && dup2(null, 0) == 0 && dup2(to, 1) == 1 && dup2(to, 2) == 2)
            execvp(words[0], words);
        _exit(127);
    }
    if (program > 0 && waitpid(program, &status, 0) == program)
        dprintf(to, "\n%d", status);
}

/* Its standard output and error. 0 where its status was; -ETIMEDOUT or -EIO. */
static int run(char **argv, struct strbuf *output)
{
    CLEANUP(free_ptr) char *said = aside_ask(execute, &argv, PATIENCE_MS);
    char *status = said ? strrchr(said, '\n') : NULL;

    if (!status)
        return said ? -EIO : -ETIMEDOUT;
    strbuf_append(output, said, (size_t)(status - said));
    return strcmp(status, "\n0") == 0 ? 0 : -EIO;
}

int slurm_run(const char *program, const char *const arguments[], struct strbuf *output, struct error *err)
{
    char *argv[MOST_ARGUMENTS + 2] = {(char *)program};
    for (size_t i = 0; i < MOST_ARGUMENTS && arguments[i] != NULL; i++)
        argv[i + 1] = (char *)arguments[i];
    int code = run(argv, output);
    if (code == 0)
        return 0;
    char said[200] = "";
    if (output->text != NULL)
        snprintf(said, sizeof(said), "%s", output->text);
    said[strcspn(said, "\n")] = '\0';
    if (strstr(said, "Invalid job id") != NULL)
        code = -ENOENT;
    else if (strstr(said, "already finished") != NULL)
        code = -ESRCH;
    else if (code == -ETIMEDOUT || strstr(said, "ontact") != NULL || strstr(said, "timed out") != NULL ||
             strstr(said, "ero Bytes") != NULL || strstr(said, "onnection re") != NULL)
        code = -EAGAIN;
    return error_set(err, -code, "%s %s %s: %s", program, arguments[0], arguments[1] != NULL ? arguments[1] : "",
                     said[0] != '\0' ? said : strerror(-code));
}

int slurm_update(const char *job, const char *what, const char *value)
{
    CLEANUP(free_ptr) char *id = xasprintf("JobId=%s", job), *word = xasprintf("%s=%s", what, value);
    struct strbuf said = {0};
    struct error err;
    int rc = slurm_run("scontrol", (const char *[]){"update", id, word, NULL}, &said, &err);

    if (rc && rc != -ESRCH)
        agent_say("job %s: %s=%s: %s", job, what, value, err.text);
    strbuf_release(&said);
    return rc;
}

/* JobArrayID is the name by which Slurm's commands know the job. */
static const char fields[] = "JobID:|,JobArrayID:|,State:|,PriorityLong:|,RestartCnt:|,Partition:|,tres-per-node:|,"
                             "EligibleTime:|";

/* "2026-11-30T12:00:00", local; 0: anything else. */
static time_t read_time(const char *text)
{
    struct tm time = {.tm_isdst = -1};

    return strptime(text, "%Y-%m-%dT%H:%M:%S", &time) ? mktime(&time) : 0;
}

/* squeue sorts the tasks of an array: the job's own line is any. */
static bool read_job(const char *line, uint32_t job, struct slurm_job *found)
{
    char begin[32];
    unsigned number;
    int64_t priority;

    *found = (struct slurm_job){0};
    if (sscanf(line, "%u|%47[0-9_+]|%23[A-Z_]|%" SCNd64 "|%" SCNd64 "|%2047[^|\n]|%511[^|\n]|%31[^|\n]|", &number,
               found->name, found->state, &priority, &found->restarts, found->partition, found->gres, begin) != 8 ||
        number != job)
        return false;
    snprintf(found->whole, sizeof found->whole, "%.*s", (int)strcspn(found->name, "+"), found->name);
    found->held = priority == 0;
    found->begin_s = read_time(begin);
    return true;
}

int slurm_show_job(uint32_t job, struct slurm_job *found, struct error *err)
{
    char id[16];
    struct strbuf said = {0};
    bool is = false;

    snprintf(id, sizeof id, "%u", job);
    int rc = slurm_run("squeue", (const char *[]){"-h", "-t", "all", "-O", fields, "-j", id, NULL}, &said, err);
    for (const char *line = rc ? NULL : said.text; line && !is;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        is = read_job(line, job, found);
    if (!rc && !is)
        rc = error_set(err, ENOENT, "Slurm has no job %u any more", job);
    strbuf_release(&said);
    return rc;
}

int slurm_show_node(const char *node, struct strbuf *line, struct error *err)
{
    return slurm_run("scontrol", (const char *[]){"show", "node", "-o", node, NULL}, line, err);
}

int slurm_node_began(const char *node, time_t *began, struct error *err)
{
    struct strbuf line = {0};
    char value[32];
    int rc = slurm_show_node(node, &line, err);

    if (!rc &&
        (!counts_property(line.text, "SlurmdStartTime", value, sizeof value) || (*began = read_time(value)) == 0))
        rc = error_set(err, EINVAL, "Slurm does not tell when the slurmd of %s began", node);
    strbuf_release(&line);
    return rc;
}
