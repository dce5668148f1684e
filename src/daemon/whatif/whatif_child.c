#include "daemon/whatif/whatif_child.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "base/units.h"

#define LOOK_MS         1000
#define LOWEST_PRIORITY 19
#define IDLE_DISK_CLASS (3 << 13) /* ioprio_set(2) */
#define ONE_PROCESS     1

struct whatif_child {
    struct whatif_limits limits;
    void (*ended)(int rc, const char *output, size_t length, const struct error *err, void *user);
    void *user;
    uv_process_t process;
    uv_pipe_t output, complaints;
    uv_timer_t timer;
    unsigned open; /* handles */
    bool running, output_open, complaints_open, freed;
    unsigned seconds;
    struct strbuf text;
    char line[400]; /* the last on standard error */
    size_t line_length;
    bool line_ended;
    char block[16 << 10];
    struct error why; /* it is being killed; "": it is not */
    int64_t status;
    int signal;
};

static void on_closed(uv_handle_t *handle)
{
    struct whatif_child *child = handle->data;

    if (--child->open)
        return;
    strbuf_release(&child->text);
    free(child);
}

static void close_all(struct whatif_child *child)
{
    child->freed = true;
    uv_close((uv_handle_t *)&child->process, on_closed);
    uv_close((uv_handle_t *)&child->output, on_closed);
    uv_close((uv_handle_t *)&child->complaints, on_closed);
    uv_close((uv_handle_t *)&child->timer, on_closed);
}

static void say_why(struct whatif_child *child)
{
    const char *line = child->line;

    if (*child->why.text)
        return;
    if (child->signal) {
        error_set(&child->why, EIO, "the simulation was ended by signal %d (%s): try again", child->signal,
                  strsignal(child->signal));
        return;
    }
    line += strncmp(line, "carma: ", 7) == 0 ? 7 : 0;
    error_set(&child->why, EIO, "%s", *line ? line : "the simulation failed and does not say why");
    error_make_printable(&child->why);
}

static void end_if_done(struct whatif_child *child)
{
    bool failed;

    if (child->running || child->output_open || child->complaints_open || child->freed)
        return;
    failed = (child->status && child->status != child->limits.status) || child->signal || *child->why.text;
    if (failed)
        say_why(child);
    close_all(child); /* freed later, on the loop */
    child->ended(failed ? -EIO : 0, child->text.text ? child->text.text : "", child->text.length, &child->why,
                 child->user);
}

static void kill_child(struct whatif_child *child)
{
    if (child->running)
        kill(-child->process.pid, SIGKILL); /* its group */
}

static int64_t resident_bytes(int pid)
{
    char path[64];
    long long pages = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    file = fopen(path, "re");
    if (file && fscanf(file, "%*d %lld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static void on_look(uv_timer_t *timer)
{
    struct whatif_child *child = timer->data;
    char most[UNITS_TEXT];

    if (!child->running || *child->why.text)
        return;
    if (++child->seconds > child->limits.time_s)
        error_set(&child->why, ETIMEDOUT, "the simulation took longer than %u s: ask about fewer policies",
                  child->limits.time_s);
    else if (resident_bytes(child->process.pid) > child->limits.memory_bytes)
        error_set(&child->why, ENOMEM,
                  "the simulation needs more than %s of memory: this node's past is too long for it",
                  format_bytes(child->limits.memory_bytes, most));
    if (*child->why.text)
        kill_child(child);
}

static void on_exit_of_child(uv_process_t *process, int64_t status, int signal)
{
    struct whatif_child *child = process->data;

    child->running = false;
    child->status = status;
    child->signal = signal;
    end_if_done(child);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct whatif_child *child = handle->data;

    *buffer = uv_buf_init(child->block, sizeof child->block);
}

static void on_output(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct whatif_child *child = stream->data;

    if (count > 0 && child->text.length + (size_t)count <= child->limits.output_bytes) {
        strbuf_append(&child->text, buffer->base, (size_t)count);
    } else if (count > 0 && !*child->why.text) {
        error_set(&child->why, EFBIG, "the simulation says more than %zu bytes", child->limits.output_bytes);
        kill_child(child);
    } else if (count < 0) {
        child->output_open = false;
        uv_read_stop(stream);
        end_if_done(child);
    }
}

static void on_complaint(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct whatif_child *child = stream->data;

    for (ssize_t i = 0; i < count; i++) {
        if (buffer->base[i] == '\n') {
            child->line_ended = true;
            continue;
        }
        if (child->line_ended)
            child->line_length = 0;
        child->line_ended = false;
        if (child->line_length + 1 < sizeof child->line)
            child->line[child->line_length++] = buffer->base[i];
        child->line[child->line_length] = '\0';
    }
    if (count < 0) {
        child->complaints_open = false;
        uv_read_stop(stream);
        end_if_done(child);
    }
}

/* Limits for the sake of others: it is the last to get the CPU and the disk. It is also the first to be killed for
 * memory, from which the daemon's own setting would protect it. Where the daemon dies, it ends by itself after as much
 * CPU time. */
static void put_last(int pid, const struct whatif_limits *limits)
{
    const struct rlimit cpu = {limits->time_s, limits->time_s}, none = {0, 0};
    char path[64];
    FILE *file;

    setpriority(PRIO_PROCESS, (id_t)pid, LOWEST_PRIORITY);
    syscall(SYS_ioprio_set, ONE_PROCESS, pid, IDLE_DISK_CLASS);
    prlimit(pid, RLIMIT_CPU, &cpu, NULL);
    prlimit(pid, RLIMIT_CORE, &none, NULL);
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", pid);
    file = fopen(path, "we");
    if (file) {
        fputs("1000", file);
        fclose(file);
    }
}

int whatif_child_start(uv_loop_t *loop, char **argv, const struct whatif_limits *limits,
                       void (*ended)(int rc, const char *output, size_t length, const struct error *err, void *user),
                       void *user, struct whatif_child **started, struct error *err)
{
    struct whatif_child *child = xcalloc(1, sizeof *child);
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&child->output},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&child->complaints},
    };
    uv_process_options_t options = {.file = argv[0],
                                    .args = argv,
                                    .exit_cb = on_exit_of_child,
                                    .stdio = stdio,
                                    .stdio_count = array_size(stdio),
                                    .flags = UV_PROCESS_DETACHED};
    int rc;

    child->limits = *limits;
    child->ended = ended;
    child->user = user;
    child->open = 4;
    uv_pipe_init(loop, &child->output, 0);
    uv_pipe_init(loop, &child->complaints, 0);
    uv_timer_init(loop, &child->timer);
    child->process.data = child->output.data = child->complaints.data = child->timer.data = child;
    rc = uv_spawn(loop, &child->process, &options);
    if (rc < 0) {
        close_all(child);
        return error_set(err, rc, "cannot start %s (%s): check the installation", argv[0], uv_strerror(rc));
    }
    put_last(child->process.pid, limits);
    child->running = child->output_open = child->complaints_open = true;
    uv_read_start((uv_stream_t *)&child->output, on_alloc, on_output);
    uv_read_start((uv_stream_t *)&child->complaints, on_alloc, on_complaint);
    uv_timer_start(&child->timer, on_look, LOOK_MS, LOOK_MS);
    *started = child;
    return 0;
}

void whatif_child_free(struct whatif_child *child)
{
    if (!child)
        return;
    kill_child(child);
    close_all(child);
}
