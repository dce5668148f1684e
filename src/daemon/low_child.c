#include "daemon/low_child.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text/last_line.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/trust/account.h"
#include "base/units.h"

#define LOOK_MS         1000
#define LOWEST_PRIORITY 19
#define IDLE_DISK_CLASS (3 << 13) /* ioprio_set(2) */
#define NOBODY          65534
#define ONE_PROCESS     1

struct low_child {
    struct low_child_limits limits;
    void (*ended)(int rc, const char *output, size_t length, const struct error *err, void *user);
    void *user;
    uv_process_t process;
    uv_pipe_t input, output, complaints;
    uv_write_t writing;
    char *input_text; /* owned */
    uv_timer_t timer;
    unsigned open; /* handles */
    bool running, output_open, complaints_open, freed;
    unsigned seconds;
    struct strbuf text;
    struct last_line complaint; /* on standard error */
    char block[16 << 10];
    struct error why; /* it is being killed; "": it is not */
    int64_t status;
    int signal;
};

static void on_closed(uv_handle_t *handle)
{
    struct low_child *child = handle->data;

    if (--child->open)
        return;
    strbuf_release(&child->text);
    free(child->input_text);
    free(child);
}

static void close_input(struct low_child *child)
{
    if (!uv_is_closing((uv_handle_t *)&child->input))
        uv_close((uv_handle_t *)&child->input, on_closed);
}

/* All of it, or the child reads no more of it. */
static void on_written(uv_write_t *writing, int status)
{
    (void)status;
    close_input(writing->data);
}

/* The process only once it has ended: nobody else reaps it. */
static void close_all(struct low_child *child)
{
    child->freed = true;
    if (!child->running)
        uv_close((uv_handle_t *)&child->process, on_closed);
    close_input(child);
    uv_close((uv_handle_t *)&child->output, on_closed);
    uv_close((uv_handle_t *)&child->complaints, on_closed);
    uv_close((uv_handle_t *)&child->timer, on_closed);
}

static void say_why(struct low_child *child)
{
    const char *line = last_line_text(&child->complaint);

    if (*child->why.text)
        return;
    if (child->signal) {
        error_set(&child->why, EIO, "the %s was ended by signal %d (%s): try again", child->limits.what, child->signal,
                  strsignal(child->signal));
        return;
    }
    line += strncmp(line, "carma: ", 7) == 0 ? 7 : 0;
    if (*line)
        error_set(&child->why, EIO, "%s", line);
    else
        error_set(&child->why, EIO, "the %s failed and does not say why", child->limits.what);
}

static void end_if_done(struct low_child *child)
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

static void kill_child(struct low_child *child)
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
    struct low_child *child = timer->data;
    char most[UNITS_TEXT];

    if (++child->seconds > child->limits.time_s && !child->running) { /* nobody waits for what it has started */
        if (!*child->why.text)
            error_set(&child->why, ETIMEDOUT,
                      "the %s has ended, and what it started keeps its output open: close it there",
                      child->limits.what);
        child->output_open = child->complaints_open = false;
        end_if_done(child);
        return;
    }
    if (*child->why.text)
        return;
    if (child->seconds > child->limits.time_s)
        error_set(&child->why, ETIMEDOUT, "the %s took longer than %u s: %s", child->limits.what, child->limits.time_s,
                  child->limits.too_long);
    else if (child->running && resident_bytes(child->process.pid) > child->limits.memory_bytes)
        error_set(&child->why, ENOMEM, "the %s needs more than %s of memory: %s", child->limits.what,
                  format_bytes(child->limits.memory_bytes, most), child->limits.too_large);
    if (*child->why.text)
        kill_child(child);
}

static void on_exit_of_child(uv_process_t *process, int64_t status, int signal)
{
    struct low_child *child = process->data;

    child->running = false;
    child->status = status;
    child->signal = signal;
    if (child->freed)
        uv_close((uv_handle_t *)&child->process, on_closed);
    else
        end_if_done(child);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct low_child *child = handle->data;

    *buffer = uv_buf_init(child->block, sizeof child->block);
}

static void on_output(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct low_child *child = stream->data;

    if (count > 0 && child->text.length + (size_t)count <= child->limits.output_bytes) {
        strbuf_append(&child->text, buffer->base, (size_t)count);
    } else if (count > 0 && !*child->why.text) {
        error_set(&child->why, EFBIG, "the %s says more than %zu bytes", child->limits.what,
                  child->limits.output_bytes);
        kill_child(child);
    } else if (count < 0) {
        child->output_open = false;
        uv_read_stop(stream);
        end_if_done(child);
    }
}

static void on_complaint(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct low_child *child = stream->data;

    if (count > 0) {
        last_line_add(&child->complaint, buffer->base, (size_t)count);
    } else if (count < 0) {
        child->complaints_open = false;
        uv_read_stop(stream);
        end_if_done(child);
    }
}

/* Limits for the sake of others: it is the last to get the CPU and the disk. It is also the first to be killed for
 * memory, from which the daemon's own setting would protect it. Where the daemon dies, it ends by itself after as much
 * CPU time. */
static void put_last(int pid, const struct low_child_limits *limits)
{
    const struct rlimit cpu = {limits->time_s, limits->time_s}, none = {0, 0};
    char path[64];
    FILE *file;

    if (!limits->prompt) {
        setpriority(PRIO_PROCESS, (id_t)pid, LOWEST_PRIORITY);
        syscall(SYS_ioprio_set, ONE_PROCESS, pid, IDLE_DISK_CLASS);
    }
    prlimit(pid, RLIMIT_CPU, &cpu, NULL);
    prlimit(pid, RLIMIT_CORE, &none, NULL);
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", pid);
    file = fopen(path, "we");
    if (file) {
        fputs("1000", file);
        fclose(file);
    }
}

int low_child_start(uv_loop_t *loop, char **argv, const char *input, const struct low_child_limits *limits,
                    void (*ended)(int rc, const char *output, size_t length, const struct error *err, void *user),
                    void *user, struct low_child **started, struct error *err)
{
    struct low_child *child = xcalloc(1, sizeof *child);
    uv_stdio_container_t stdio[] = {
        {.flags = input ? UV_CREATE_PIPE | UV_READABLE_PIPE : UV_IGNORE, .data.stream = (uv_stream_t *)&child->input},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&child->output},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&child->complaints},
    };
    uv_process_options_t options = {.file = argv[0],
                                    .args = argv,
                                    .exit_cb = on_exit_of_child,
                                    .stdio = stdio,
                                    .stdio_count = array_size(stdio),
                                    .flags = UV_PROCESS_DETACHED};
    char *nobodys[] = {(char[]){"PATH=/usr/local/bin:/usr/bin:/bin"}, (char[]){"LANG=C.UTF-8"}, NULL};
    int rc;

    if (limits->as_nobody) {
        options.env = nobodys;
        options.cwd = "/";
    }
    if (limits->as_nobody && geteuid() == 0) { /* and without a further group */
        options.flags |= UV_PROCESS_SETUID | UV_PROCESS_SETGID;
        options.uid = NOBODY;
        options.gid = ACCOUNT_NOBODYS_GROUP;
    }

    child->limits = *limits;
    child->ended = ended;
    child->user = user;
    child->input_text = xstrdup(input);
    child->open = 5;
    uv_pipe_init(loop, &child->input, 0);
    uv_pipe_init(loop, &child->output, 0);
    uv_pipe_init(loop, &child->complaints, 0);
    uv_timer_init(loop, &child->timer);
    child->writing.data = child->input.data = child;
    child->process.data = child->output.data = child->complaints.data = child->timer.data = child;
    rc = uv_spawn(loop, &child->process, &options);
    if (rc < 0) {
        close_all(child);
        return error_set(err, rc, "cannot start %s (%s): check the installation", argv[0], uv_strerror(rc));
    }
    put_last(child->process.pid, limits); /* before it has its input */
    if (input)
        uv_write(&child->writing, (uv_stream_t *)&child->input,
                 &(uv_buf_t){.base = child->input_text, .len = strlen(input)}, 1, on_written);
    child->running = child->output_open = child->complaints_open = true;
    uv_read_start((uv_stream_t *)&child->output, on_alloc, on_output);
    uv_read_start((uv_stream_t *)&child->complaints, on_alloc, on_complaint);
    uv_timer_start(&child->timer, on_look, LOOK_MS, LOOK_MS);
    *started = child;
    return 0;
}

void low_child_free(struct low_child *child)
{
    if (!child)
        return;
    kill_child(child);
    close_all(child);
}
