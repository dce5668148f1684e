#include "launch/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/proc.h"
#include "base/text/printable.h"
#include "base/strbuf.h"
#include "launch/cause.h"

#define STATUS_LIMIT 4096 /* bytes; a larger file is not a status */

static const char *const phase_names[LAUNCH_PHASE_COUNT] = {"starting", "running", "ended", "failed"};

/* The bits of `evidence`, from the lowest on. */
static const char *const evidence_names[] = {"output", "file", "steps", "itself", "fence", "limited", "own"};

static const char head[] = "carma-launch 1\n";
static const char tail[] = "\nend\n";

const char *launch_phase_name(enum launch_phase phase)
{
    return (unsigned)phase < LAUNCH_PHASE_COUNT ? phase_names[phase] : "unknown";
}

void status_init(struct launch_status *status)
{
    *status =
        (struct launch_status){.phase = LAUNCH_STARTING, .exit_status = -1, .requested_bytes = -1, .free_bytes = -1};
}

void status_forget_other_boot(struct launch_status *status, const char *boot)
{
    bool over = status->phase == LAUNCH_ENDED || status->phase == LAUNCH_FAILED;

    if (over || !*boot || !*status->boot || strcmp(status->boot, boot) == 0)
        return;
    status->rebooted = true;
    status->shepherd = status->process = 0;
    status->shepherd_start_ticks = status->process_start_ticks = 0;
    *status->cgroup = '\0';
}

struct cause_evidence launch_evidence(const struct launch_status *status)
{
    return (struct cause_evidence){.exit_status = status->exit_status,
                                   .signal = status->signal,
                                   .warned = status->warned,
                                   .orphan = status->cause == EXIT_ORPHAN,
                                   .expired = status->cause == EXIT_EXPIRED,
                                   .stopped = status->stopped,
                                   .timed_out = status->timed_out,
                                   .idle = status->idle,
                                   .host_oom_kill = status->host_oom_kill,
                                   .host_oom_own = status->host_oom_own,
                                   .output = status->output,
                                   .free_bytes = -1};
}

void status_set_message(struct launch_status *status, const char *text, size_t length)
{
    size_t used = 0;

    for (; used < length && used < sizeof status->message - 1 && text[used] && text[used] != '\n'; used++)
        status->message[used] = text[used];
    if (used == sizeof status->message - 1) { /* not half a character at the cut: go back to where the last begins */
        size_t begin = used;
        while (begin && (status->message[begin - 1] & 0xc0) == 0x80)
            begin--;
        if (begin && (status->message[begin - 1] & 0x80))
            used = begin - 1;
    }
    status->message[used] = '\0';
    printable_replace(status->message);
}

char *launch_left_text(const struct launch_status *status)
{
    static const char rest[] = "left behind by its command, and ended: write `wait` as its last line";

    if (status->left_count == 0)
        return NULL;
    return status->left_count == 1
               ? xasprintf("%s: %s", status->left, rest)
               : xasprintf("%s (%" PRIu32 " processes): %s", status->left, status->left_count, rest);
}

static void status_print(const struct launch_status *status, struct strbuf *text)
{
    strbuf_puts(text, head);
    strbuf_printf(text, "phase %s\n", launch_phase_name(status->phase));
    strbuf_printf(text, "job %" PRIu64 "\nlaunch %" PRIu32 "\n", status->job, status->launch);
    strbuf_printf(text, "boot %s\n", status->boot);
    strbuf_printf(text, "shepherd %d %" PRIu64 "\n", (int)status->shepherd, status->shepherd_start_ticks);
    strbuf_printf(text, "process %d %" PRIu64 "\n", (int)status->process, status->process_start_ticks);
    strbuf_printf(text, "started_ns %" PRId64 "\nended_ns %" PRId64 "\n", status->started_ns, status->ended_ns);
    strbuf_printf(text, "exit_status %" PRId32 "\nsignal %" PRId32 "\n", status->exit_status, status->signal);
    if (status->phase == LAUNCH_ENDED)
        strbuf_printf(text, "cause %s\n", exit_cause_name(status->cause));
    strbuf_printf(text, "output %s\n", output_kind_name(status->output));
    strbuf_puts(text, status->evidence ? "evidence" : "");
    for (size_t i = 0; i < array_size(evidence_names); i++)
        if (status->evidence >> i & 1)
            strbuf_printf(text, " %s", evidence_names[i]);
    strbuf_puts(text, status->evidence ? "\n" : "");
    strbuf_printf(text, "requested_bytes %" PRId64 "\nfree_bytes %" PRId64 "\n", status->requested_bytes,
                  status->free_bytes);
    for (uint32_t i = 0; i < status->tenant_count; i++)
        strbuf_printf(text, "tenant %" PRId32 " %" PRId64 "\n", status->tenants[i].pid, status->tenants[i].used_bytes);
    if (status->progress.at_ns)
        strbuf_printf(text, "progress %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", status->progress.step,
                      status->progress.total, status->progress.done, status->progress.at_ns);
    strbuf_printf(text, "host_oom_kill %d\nhost_oom_own %d\n", status->host_oom_kill, status->host_oom_own);
    strbuf_printf(text, "warned %d\nstopped %d\ntimed_out %d\nidle %d\n", status->warned, status->stopped,
                  status->timed_out, status->idle);
    strbuf_printf(text, "cgroup %s\n", status->cgroup);
    if (status->left_count)
        strbuf_printf(text, "left %" PRIu32 " %s\n", status->left_count, status->left);
    strbuf_printf(text, "message %s", status->message);
    strbuf_puts(text, tail);
}

static int write_text(int fd, const struct launch_status *status)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    ssize_t count;

    status_print(status, &text);
    count = write(fd, text.text, text.length);
    return count == (ssize_t)text.length ? 0
           : count < 0                   ? errno
                                         : ENOSPC; /* a short write of so little: the disk is full */
}

static int make_file(const char *path, struct error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    return fd < 0 ? error_set(err, errno, "cannot write '%s': %s", path, strerror(errno)) : fd;
}

/* Others have removed the run directory, or that of all runs. The state's is not made: it is the daemon's. */
static void make_directories(const char *run_directory)
{
    CLEANUP(free_ptr) char *runs = xstrndup(run_directory, (size_t)(strrchr(run_directory, '/') - run_directory));

    mkdir(runs, 0700);
    mkdir(run_directory, 0700);
}

int status_write(const char *run_directory, const struct launch_status *status, enum status_write how,
                 struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/status", run_directory);
    CLEANUP(free_ptr) char *temporary = xasprintf("%s.%d.tmp", path, (int)getpid());
    CLEANUP(close_fd) int fd = make_file(temporary, err);
    int code;

    if (fd == -ENOENT) {
        make_directories(run_directory);
        fd = make_file(temporary, err);
    }
    if (fd < 0)
        return fd;
    code = write_text(fd, status);
    if (code == 0 && how == STATUS_LAST && fsync(fd) < 0)
        code = errno;
    if (code == 0 && (how == STATUS_EXCLUSIVE ? link(temporary, path) : rename(temporary, path)) < 0)
        code = errno;
    if (code || how == STATUS_EXCLUSIVE)
        unlink(temporary);
    return code ? error_set(err, code, "cannot write '%s': %s", path, strerror(code)) : 0;
}

static char *first_of(const char *run_directory)
{
    return xasprintf("%s/status.first", run_directory);
}

int status_open_first(const char *run_directory, struct error *err)
{
    CLEANUP(free_ptr) char *first = first_of(run_directory);

    return make_file(first, err);
}

int status_write_first(int fd, const struct launch_status *status, struct error *err)
{
    int code = write_text(fd, status);

    return code ? error_set(err, code, "cannot write the first status: %s", strerror(code)) : 0;
}

int status_name_first(const char *run_directory, const struct launch_status *status, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/status", run_directory);
    CLEANUP(free_ptr) char *first = first_of(run_directory);
    int code = link(first, path) < 0 ? errno : 0;

    if (code == ENOENT) /* others have removed the file while its shepherd waited for a job */
        return status_write(run_directory, status, STATUS_EXCLUSIVE, err);
    return code ? error_set(err, code, "cannot write '%s': %s", path, strerror(code)) : 0;
}

void status_close_first(int fd, const char *run_directory)
{
    CLEANUP(free_ptr) char *first = first_of(run_directory);

    close(fd);
    unlink(first);
}

static bool parse_phase(const char *value, struct launch_status *status)
{
    for (int i = 0; i < LAUNCH_PHASE_COUNT; i++) {
        if (strcmp(value, phase_names[i]) == 0) {
            status->phase = (enum launch_phase)i;
            return true;
        }
    }
    return false;
}

static bool parse_cause(const char *value, struct launch_status *status)
{
    for (int i = 0; i < EXIT_CAUSE_COUNT; i++) {
        if (strcmp(value, exit_cause_name((uint32_t)i)) == 0) {
            status->cause = (enum exit_cause)i;
            return true;
        }
    }
    return false;
}

static bool parse_output(const char *value, struct launch_status *status)
{
    for (uint32_t i = 0; i < OUTPUT_KIND_COUNT; i++) {
        if (strcmp(value, output_kind_name(i)) == 0) {
            status->output = (enum output_kind)i;
            return true;
        }
    }
    return false;
}

/* Words that this version does not know say nothing to it. */
static bool parse_evidence(char *value, struct launch_status *status)
{
    char *word;

    while ((word = strsep(&value, " ")))
        for (size_t i = 0; i < array_size(evidence_names); i++)
            if (strcmp(word, evidence_names[i]) == 0)
                status->evidence |= 1u << i;
    return true;
}

static bool parse_left(const char *value, struct launch_status *status)
{
    int begin = 0;

    if (sscanf(value, "%" SCNu32 " %n", &status->left_count, &begin) != 1 || !begin)
        return false;
    snprintf(status->left, sizeof status->left, "%s", value + begin);
    printable_replace(status->left);
    return true;
}

static bool parse_tenant(const char *value, struct launch_status *status)
{
    struct classify_tenant tenant;

    if (sscanf(value, "%" SCNd32 " %" SCNd64, &tenant.pid, &tenant.used_bytes) != 2)
        return false;
    if (status->tenant_count < CLASSIFY_MAX_TENANTS)
        status->tenants[status->tenant_count++] = tenant;
    return true;
}

static bool parse_progress(const char *value, struct progress_count *count)
{
    return sscanf(value, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, &count->step, &count->total, &count->done,
                  &count->at_ns) == 4 &&
           count->step >= 0 && count->total >= 0 && count->done >= 0 && count->done <= PROGRESS_DONE_MOST &&
           count->at_ns > 0;
}

static bool parse_bool(const char *value, bool *result)
{
    int number;

    if (sscanf(value, "%d", &number) != 1)
        return false;
    *result = number != 0;
    return true;
}

static bool parse_text(const char *value, char *text, size_t size)
{
    if (strlen(value) >= size)
        return false;
    memcpy(text, value, strlen(value) + 1);
    return true;
}

static bool parse_line(const char *key, char *value, struct launch_status *status)
{
    if (strcmp(key, "phase") == 0)
        return parse_phase(value, status);
    if (strcmp(key, "cause") == 0)
        return parse_cause(value, status);
    if (strcmp(key, "job") == 0)
        return sscanf(value, "%" SCNu64, &status->job) == 1;
    if (strcmp(key, "launch") == 0)
        return sscanf(value, "%" SCNu32, &status->launch) == 1;
    if (strcmp(key, "boot") == 0)
        return parse_text(value, status->boot, sizeof status->boot);
    if (strcmp(key, "shepherd") == 0)
        return sscanf(value, "%d %" SCNu64, &status->shepherd, &status->shepherd_start_ticks) == 2;
    if (strcmp(key, "process") == 0)
        return sscanf(value, "%d %" SCNu64, &status->process, &status->process_start_ticks) == 2;
    if (strcmp(key, "started_ns") == 0)
        return sscanf(value, "%" SCNd64, &status->started_ns) == 1;
    if (strcmp(key, "ended_ns") == 0)
        return sscanf(value, "%" SCNd64, &status->ended_ns) == 1;
    if (strcmp(key, "exit_status") == 0)
        return sscanf(value, "%" SCNd32, &status->exit_status) == 1;
    if (strcmp(key, "signal") == 0)
        return sscanf(value, "%" SCNd32, &status->signal) == 1;
    if (strcmp(key, "requested_bytes") == 0)
        return sscanf(value, "%" SCNd64, &status->requested_bytes) == 1;
    if (strcmp(key, "free_bytes") == 0)
        return sscanf(value, "%" SCNd64, &status->free_bytes) == 1;
    if (strcmp(key, "output") == 0)
        return parse_output(value, status);
    if (strcmp(key, "evidence") == 0)
        return parse_evidence(value, status);
    if (strcmp(key, "tenant") == 0)
        return parse_tenant(value, status);
    if (strcmp(key, "progress") == 0)
        return parse_progress(value, &status->progress);
    if (strcmp(key, "host_oom_kill") == 0)
        return parse_bool(value, &status->host_oom_kill);
    if (strcmp(key, "warned") == 0)
        return parse_bool(value, &status->warned);
    if (strcmp(key, "host_oom_own") == 0)
        return parse_bool(value, &status->host_oom_own);
    if (strcmp(key, "stopped") == 0)
        return parse_bool(value, &status->stopped);
    if (strcmp(key, "timed_out") == 0)
        return parse_bool(value, &status->timed_out);
    if (strcmp(key, "idle") == 0)
        return parse_bool(value, &status->idle);
    if (strcmp(key, "left") == 0)
        return parse_left(value, status);
    if (strcmp(key, "cgroup") == 0)
        return parse_text(value, status->cgroup, sizeof status->cgroup);
    if (strcmp(key, "message") == 0)
        status_set_message(status, value, strlen(value));
    return true;
}

int status_parse(const char *name, const char *text, size_t length, struct launch_status *status, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrndup(text, length);
    char *next = copy, *line;

    status_init(status);
    if (strlen(copy) != length || strncmp(copy, head, sizeof head - 1) != 0 ||
        strcmp(copy + length - (sizeof tail - 1), tail) != 0)
        return error_set(err, EINVAL, "'%s' is not a whole launch status of this version", name);
    copy[length - (sizeof tail - 1)] = '\0';
    next += sizeof head - 1;
    while ((line = strsep(&next, "\n"))) {
        char *value = strchr(line, ' ');
        if (!value)
            return error_set(err, EINVAL, "'%s' has a line without a value: '%.60s'", name, line);
        *value++ = '\0';
        if (!parse_line(line, value, status))
            return error_set(err, EINVAL, "'%s' has a bad %s: '%.60s'", name, line, value);
    }
    return 0;
}

int launch_read_status(const char *run_directory, struct launch_status *status, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/status", run_directory);
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;
    int code = file_read(path, STATUS_LIMIT, &text, &length, err);

    code = code < 0 ? code : status_parse(path, text, length, status, err);
    if (code == 0)
        status_forget_other_boot(status, proc_boot());
    return code;
}
