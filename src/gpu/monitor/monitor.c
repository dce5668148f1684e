#include "gpu/monitor/monitor.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/install.h"
#include "base/text/last_line.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "gpu/frame.h"

#define PROGRAM         "lib/carma/carma-monitor"
#define SILENCE_NS      (10 * NS_PER_SEC)
#define SILENCE_PERIODS 3
#define START_ALLOWANCE 6 /* times the allowed silence */
#define RESTART_NS      NS_PER_SEC
#define RESTART_GROWTH  64
#define LEFT_MAX        3    /* children that are left behind at a time; more would not get further either */
#define FREE_TIMEOUT_MS 2000 /* ms */
#define READ_ROOM       65536
#define TEXT_ROOM       640

/* The life of the child that is looked after:
 *
 *     WAITING --timer--> RUNNING --it ended--------------------------------> WAITING
 *        ^                  \--silence, nonsense--> KILLED --it ended--------^
 *        |                                            \--timeout over---> it is left behind
 *        +-- fewer than LEFT_MAX are left behind ---------------------------/
 *
 * A running child has ended once it is reaped and both its pipes are at their end. Only then has the line that says why
 * it died surely been read. A killed child that does not end sits in a driver call that never returns. It is left
 * behind, to be reaped when it ends; another one is started, which may have better luck. */
enum phase { WAITING, RUNNING, KILLED };

enum kind { ORDINARY, STUCK, KIND_COUNT }; /* of problems; of each the latest is remembered, so as not to be repeated */

struct child {
    struct gpu_monitor *monitor;
    bool exited;
    int64_t exit_status;
    int exit_signal;
    unsigned pipes_ended;
    unsigned handles_open;
    uv_process_t process;
    uv_pipe_t frames;
    uv_pipe_t complaints;
    struct gpu_frame_decoder decoder;
    struct last_line complaint; /* on stderr */
    struct child *next;         /* of those left behind */
};

struct gpu_monitor {
    uv_loop_t *loop;
    char *program; /* owned, as is all of the following that is a pointer to text, a child or a reading */
    char *period_option;
    char *library_option; /* may be NULL, as the next */
    char *dcgm_option;
    uint64_t silence_ms;
    uint64_t restart_ms;
    void (*on_reading)(void *user, const struct gpu_node_reading *reading);
    void (*on_problem)(void *user, const char *text);
    void *user;

    enum phase phase;
    bool freed;
    uint64_t pause_ms;                /* before the next start */
    char told[KIND_COUNT][TEXT_ROOM]; /* the last report; "" since a reading has come */
    uv_timer_t timer;                 /* WAITING: next start; RUNNING: silence; KILLED: how long its end may take */
    int silences_left;                /* RUNNING: halves of the allowed silence that are left to the child */
    struct child *child;              /* RUNNING, KILLED */
    struct child *left;               /* list of those left behind */
    unsigned left_count;
    unsigned children_open; /* with handles that are not closed yet, of every sort */
    bool timer_closed;
    int progress_fd;       /* -1: there is none */
    _Atomic int *progress; /* the index that the child touches, and 1; 0: none. Mapped, shared with it */
    int hung_at;           /* the output of a child that hung, since a reading has come */
    uint64_t skip;         /* a bit for each index that is not touched any more */
    struct gpu_node_reading *reading;
    char read_room[READ_ROOM];
};

static void start_child(struct gpu_monitor *monitor);

static void tell(struct gpu_monitor *monitor, enum kind kind, const char *text)
{
    if (monitor->freed || strcmp(monitor->told[kind], text) == 0)
        return;
    snprintf(monitor->told[kind], sizeof monitor->told[kind], "%s", text);
    monitor->on_problem(monitor->user, monitor->told[kind]);
}

/* Once it is freed and nothing of it is open any more. */
static void free_when_closed(struct gpu_monitor *monitor)
{
    if (!monitor->timer_closed || monitor->children_open > 0)
        return;
    if (monitor->progress)
        munmap(monitor->progress, sizeof *monitor->progress);
    close_fd(&monitor->progress_fd);
    free(monitor->reading);
    free(monitor->program);
    free(monitor->period_option);
    free(monitor->library_option);
    free(monitor->dcgm_option);
    free(monitor);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct gpu_monitor *monitor = handle->data;

    monitor->timer_closed = true;
    free_when_closed(monitor);
}

static void close_timer(struct gpu_monitor *monitor)
{
    if (!uv_is_closing((uv_handle_t *)&monitor->timer))
        uv_close((uv_handle_t *)&monitor->timer, on_timer_closed);
}

static void on_pause_over(uv_timer_t *timer)
{
    start_child(timer->data);
}

/* Starts the next child after the pause, or has the monitor's freeing go on. */
static void start_later(struct gpu_monitor *monitor)
{
    monitor->phase = WAITING;
    uv_timer_stop(&monitor->timer);
    if (monitor->freed) {
        close_timer(monitor);
        return;
    }
    if (monitor->left_count >= LEFT_MAX)
        return; /* the end of one of these goes on from here */
    uv_timer_start(&monitor->timer, on_pause_over, monitor->pause_ms, 0);
    if (monitor->pause_ms < monitor->restart_ms * RESTART_GROWTH)
        monitor->pause_ms *= 2;
}

static void on_child_closed(uv_handle_t *handle)
{
    struct child *child = handle->data;
    struct gpu_monitor *monitor = child->monitor;

    if (--child->handles_open > 0)
        return;
    gpu_frame_decoder_release(&child->decoder);
    free(child);
    monitor->children_open--;
    free_when_closed(monitor);
}

static void close_handle(void *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, on_child_closed);
}

static void close_child(struct child *child)
{
    close_handle(&child->process);
    close_handle(&child->frames);
    close_handle(&child->complaints);
}

/* A child that was left behind has ended after all. */
static void forget_left(struct child *child)
{
    struct gpu_monitor *monitor = child->monitor;
    bool full = monitor->left_count >= LEFT_MAX;
    struct child **at = &monitor->left;

    while (*at != child)
        at = &(*at)->next;
    *at = child->next;
    monitor->left_count--;
    close_child(child);
    if (full && monitor->phase == WAITING && !monitor->freed)
        start_later(monitor);
}

/* Called where the child may just have ended by itself or by our hand. The problem is told last: its callback may free
 * the monitor. */
static void take_end(struct gpu_monitor *monitor)
{
    struct child *child = monitor->child;
    bool told = monitor->phase == KILLED;
    char text[TEXT_ROOM];

    if (!child->exited || (monitor->phase == RUNNING && child->pipes_ended < 2))
        return;
    if (child->exit_signal)
        snprintf(text, sizeof text, "%s was ended by signal %d (%s); trying again", monitor->program,
                 child->exit_signal, strsignal(child->exit_signal));
    else
        snprintf(text, sizeof text, "%s ended with status %" PRId64 "%s%s; trying again", monitor->program,
                 child->exit_status, child->complaint.length ? ": " : "", last_line_text(&child->complaint));
    monitor->child = NULL;
    close_child(child);
    start_later(monitor);
    if (!told)
        tell(monitor, ORDINARY, text);
}

/* The kernel does not end it. Its pipes are closed, its end is still awaited, but keeps no loop going. */
static void leave_behind(uv_timer_t *timer)
{
    struct gpu_monitor *monitor = timer->data;
    struct child *child = monitor->child;
    char text[TEXT_ROOM];

    close_handle(&child->frames);
    close_handle(&child->complaints);
    uv_unref((uv_handle_t *)&child->process);
    child->next = monitor->left;
    monitor->left = child;
    monitor->left_count++;
    monitor->child = NULL;
    start_later(monitor);
    if (monitor->left_count < LEFT_MAX)
        snprintf(text, sizeof text,
                 "%s does not end though it was killed: it hangs in a driver call; it is left behind and another is "
                 "started",
                 monitor->program);
    else
        snprintf(text, sizeof text,
                 "%s: %u of them hang in driver calls and cannot be killed, so no other is started: reset the GPUs, or "
                 "restart the machine",
                 monitor->program, monitor->left_count);
    tell(monitor, STUCK, text);
}

static void kill_child(struct gpu_monitor *monitor)
{
    monitor->phase = KILLED;
    uv_timer_start(&monitor->timer, leave_behind, monitor->silence_ms, 0);
    if (!monitor->child->exited) /* else its pid may be another's by now */
        uv_process_kill(&monitor->child->process, SIGKILL);
}

static void on_child_exit(uv_process_t *process, int64_t status, int signal_number)
{
    struct child *child = process->data;

    child->exited = true;
    child->exit_status = status;
    child->exit_signal = signal_number;
    if (child == child->monitor->child)
        take_end(child->monitor);
    else
        forget_left(child);
}

/* Half the allowed silence has passed. The loop runs timers before it reads, so after a stall of the daemon itself the
 * first of these must not be the last. The child's output of the meantime is read before the next. */
static void on_half_silence(uv_timer_t *timer)
{
    struct gpu_monitor *monitor = timer->data;
    char text[TEXT_ROOM];
    int at;

    if (--monitor->silences_left > 0)
        return;
    at = monitor->progress ? atomic_load(monitor->progress) : 0;
    kill_child(monitor);
    snprintf(text, sizeof text,
             "%s fell silent (a driver call that hangs? see dmesg for Xid errors); it is killed and started again",
             monitor->program);
    if (at > 0 && at <= 63 && at == monitor->hung_at) { /* once may have been a busy machine */
        monitor->skip |= UINT64_C(1) << (at - 1);
        snprintf(
            text, sizeof text,
            "%s fell silent: a driver call on the GPU with index %d hangs (see dmesg for Xid errors); it is killed "
            "and started again without that GPU: reset it, then restart carmad",
            monitor->program, at - 1);
    }
    monitor->hung_at = at;
    tell(monitor, ORDINARY, text);
    if (!monitor->freed)
        take_end(monitor); /* where it had exited, but something else held its pipes open */
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct child *child = handle->data;

    *buffer = uv_buf_init(child->monitor->read_room, sizeof child->monitor->read_room);
}

static void take_frames(struct gpu_monitor *monitor, const void *bytes, size_t count)
{
    struct error err;
    int rc = 0;

    while (monitor->phase == RUNNING && !monitor->freed &&
           (rc = gpu_frame_decode(&monitor->child->decoder, &bytes, &count, monitor->reading, &err)) == 1) {
        monitor->pause_ms = monitor->restart_ms;
        monitor->hung_at = 0;
        memset(monitor->told, 0, sizeof monitor->told);
        monitor->silences_left = 2;
        uv_timer_again(&monitor->timer);
        monitor->on_reading(monitor->user, monitor->reading);
    }
    if (rc < 0) {
        char text[TEXT_ROOM];
        kill_child(monitor);
        snprintf(text, sizeof text, "%s: %s; it is killed and started again", monitor->program, err.text);
        tell(monitor, ORDINARY, text);
        if (!monitor->freed)
            take_end(monitor);
    }
}

static void on_pipe_end(struct child *child, uv_stream_t *stream)
{
    uv_read_stop(stream);
    child->pipes_ended++;
    take_end(child->monitor);
}

static void on_frames(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct child *child = stream->data;

    if (count > 0)
        take_frames(child->monitor, buffer->base, (size_t)count);
    else if (count < 0)
        on_pipe_end(child, stream);
}

static void on_complaints(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct child *child = stream->data;

    if (count > 0)
        last_line_add(&child->complaint, buffer->base, (size_t)count);
    else if (count < 0)
        on_pipe_end(child, stream);
}

static void start_child(struct gpu_monitor *monitor)
{
    struct child *child = xcalloc(1, sizeof *child);
    static char progress_option[] = "--progress-fd=3";
    CLEANUP(free_ptr) char *skip_option = xasprintf("--skip=%" PRIu64, monitor->skip);
    char *args[7] = {monitor->program, monitor->period_option};
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&child->frames},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&child->complaints},
        {.flags = UV_INHERIT_FD, .data.fd = monitor->progress_fd},
    };
    uv_process_options_t options = {.file = monitor->program,
                                    .args = args,
                                    .exit_cb = on_child_exit,
                                    .stdio = stdio,
                                    .stdio_count = monitor->progress ? 4 : 3};
    uint64_t half_ms = (monitor->silence_ms + 1) / 2;
    int rc, count = 2;

    if (monitor->library_option)
        args[count++] = monitor->library_option;
    if (monitor->dcgm_option)
        args[count++] = monitor->dcgm_option;
    if (monitor->skip)
        args[count++] = skip_option;
    if (monitor->progress) {
        args[count++] = progress_option;
        atomic_store(monitor->progress, 0);
    }
    child->monitor = monitor;
    child->handles_open = 3;
    monitor->children_open++;
    uv_pipe_init(monitor->loop, &child->frames, 0);
    uv_pipe_init(monitor->loop, &child->complaints, 0);
    child->process.data = child->frames.data = child->complaints.data = child;
    rc = uv_spawn(monitor->loop, &child->process, &options);
    if (rc < 0) {
        char text[TEXT_ROOM];
        close_child(child);
        start_later(monitor);
        snprintf(text, sizeof text, "cannot start %s (%s): check the installation; trying again", monitor->program,
                 uv_strerror(rc));
        tell(monitor, ORDINARY, text);
        return;
    }
    monitor->child = child;
    monitor->phase = RUNNING;
    uv_read_start((uv_stream_t *)&child->frames, on_alloc, on_frames);
    uv_read_start((uv_stream_t *)&child->complaints, on_alloc, on_complaints);
    monitor->silences_left = 2 * START_ALLOWANCE;
    uv_timer_start(&monitor->timer, on_half_silence, half_ms, half_ms);
}

static uint64_t positive_ms(int64_t ns)
{
    return ns > NS_PER_MS ? (uint64_t)(ns / NS_PER_MS) : 1;
}

/* Shared memory for where the child is. It goes without where there is none. */
static void make_progress(struct gpu_monitor *monitor)
{
    void *page = MAP_FAILED;

    monitor->progress_fd = memfd_create("carma-monitor", MFD_CLOEXEC);
    if (monitor->progress_fd >= 0 && ftruncate(monitor->progress_fd, sizeof *monitor->progress) == 0)
        page = mmap(NULL, sizeof *monitor->progress, PROT_READ | PROT_WRITE, MAP_SHARED, monitor->progress_fd, 0);
    if (page != MAP_FAILED)
        monitor->progress = page;
}

struct gpu_monitor *gpu_monitor_new(uv_loop_t *loop, const struct gpu_monitor_options *options)
{
    struct gpu_monitor *monitor = xcalloc(1, sizeof *monitor);
    int64_t silence_ns = SILENCE_PERIODS * nodetime_to_wall_ns(options->period_ns);

    if (silence_ns < SILENCE_NS)
        silence_ns = SILENCE_NS;
    monitor->loop = loop;
    monitor->program = options->program ? xstrdup(options->program) : install_path(PROGRAM);
    monitor->period_option = xasprintf("--period-ms=%" PRId64, options->period_ns / NS_PER_MS);
    monitor->library_option = options->library ? xasprintf("--library=%s", options->library) : NULL;
    monitor->dcgm_option = options->dcgm_library ? xasprintf("--dcgm=%s", options->dcgm_library) : NULL;
    monitor->silence_ms = positive_ms(options->silence_wall_ns ? options->silence_wall_ns : silence_ns);
    monitor->restart_ms = positive_ms(options->restart_wall_ns ? options->restart_wall_ns : RESTART_NS);
    monitor->pause_ms = monitor->restart_ms;
    monitor->on_reading = options->on_reading;
    monitor->on_problem = options->on_problem;
    monitor->user = options->user;
    monitor->reading = xcalloc(1, sizeof *monitor->reading);
    make_progress(monitor);
    uv_timer_init(loop, &monitor->timer);
    monitor->timer.data = monitor;
    start_child(monitor);
    return monitor;
}

/* The child that was to end with the monitor does not. */
static void on_free_timeout(uv_timer_t *timer)
{
    struct gpu_monitor *monitor = timer->data;

    close_child(steal_ptr(&monitor->child));
    close_timer(monitor);
}

void gpu_monitor_free(struct gpu_monitor *monitor)
{
    if (!monitor || monitor->freed)
        return;
    monitor->freed = true;
    for (struct child *child = monitor->left; child; child = child->next)
        close_child(child);
    if (!monitor->child) {
        close_timer(monitor);
        return;
    }
    kill_child(monitor);
    uv_timer_start(&monitor->timer, on_free_timeout, FREE_TIMEOUT_MS, 0);
    take_end(monitor);
}
