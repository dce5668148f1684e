#include "gpu/monitor.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/install.h"
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
#define FREE_PATIENCE   2000 /* ms */
#define READ_ROOM       65536
#define LINE_ROOM       320
#define TEXT_ROOM       640

/* The life of a child:
 *
 *     WAITING --timer--> RUNNING --it ended--------------------------------> CLOSING --handles closed--> WAITING
 *                           \--silence, nonsense--> KILLED --it ended--------^
 *
 * A running child has ended once it is reaped and both its pipes are at their end: only then the line that says why it
 * died has surely been read. A killed child that does not end, being stuck in the driver, is not replaced: the next
 * would be stuck as well, and so on. */
enum phase { WAITING, RUNNING, KILLED, CLOSING };

struct gpu_monitor {
    uv_loop_t *loop;
    char *program; /* owned, as is all of the following that is a pointer to text or a reading */
    char *period_option;
    char *library_option; /* or NULL */
    uint64_t silence_ms;
    uint64_t restart_ms;
    void (*on_reading)(void *user, const struct gpu_node_reading *reading);
    void (*on_problem)(void *user, const char *text);
    void *user;

    enum phase phase;
    bool freed;
    uint64_t pause_ms;    /* before the next start */
    char told[TEXT_ROOM]; /* the problem that was said last; "" since a reading has come */
    uv_timer_t timer;     /* WAITING: next start; RUNNING: silence; freed: patience with the child's end */

    /* Of the current child. */
    int patience; /* halves of the allowed silence that are left to it */
    bool exited;
    int64_t exit_status;
    int exit_signal;
    unsigned pipes_ended;
    unsigned handles_open;
    uv_process_t process;
    uv_pipe_t frames;
    uv_pipe_t complaints;
    struct gpu_frame_decoder decoder;
    struct gpu_node_reading *reading;
    char line[LINE_ROOM]; /* what it last wrote to stderr */
    size_t line_length;
    bool line_ended;
    char read_room[READ_ROOM];
};

static void start_child(struct gpu_monitor *monitor);

static void tell(struct gpu_monitor *monitor, const char *text)
{
    if (monitor->freed || strcmp(monitor->told, text) == 0)
        return;
    snprintf(monitor->told, sizeof monitor->told, "%s", text);
    monitor->on_problem(monitor->user, monitor->told);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct gpu_monitor *monitor = handle->data;

    gpu_frame_decoder_release(&monitor->decoder);
    free(monitor->reading);
    free(monitor->program);
    free(monitor->period_option);
    free(monitor->library_option);
    free(monitor);
}

static void on_pause_over(uv_timer_t *timer)
{
    start_child(timer->data);
}

static void on_child_closed(uv_handle_t *handle)
{
    struct gpu_monitor *monitor = handle->data;

    if (--monitor->handles_open > 0)
        return;
    if (monitor->freed) {
        uv_close((uv_handle_t *)&monitor->timer, on_timer_closed);
        return;
    }
    monitor->phase = WAITING;
    uv_timer_start(&monitor->timer, on_pause_over, monitor->pause_ms, 0);
    if (monitor->pause_ms < monitor->restart_ms * RESTART_GROWTH)
        monitor->pause_ms *= 2;
}

static void close_child(struct gpu_monitor *monitor)
{
    monitor->phase = CLOSING;
    uv_timer_stop(&monitor->timer);
    monitor->handles_open = 3;
    uv_close((uv_handle_t *)&monitor->process, on_child_closed);
    uv_close((uv_handle_t *)&monitor->frames, on_child_closed);
    uv_close((uv_handle_t *)&monitor->complaints, on_child_closed);
}

/* Called where a child may just have ended by itself or by our hand. The problem is told last: its callback may free
 * the monitor. */
static void close_ended_child(struct gpu_monitor *monitor)
{
    bool told = monitor->phase == KILLED;
    char text[TEXT_ROOM];

    if (!monitor->exited || monitor->phase == CLOSING || (monitor->phase == RUNNING && monitor->pipes_ended < 2))
        return;
    close_child(monitor);
    if (told)
        return;
    if (monitor->exit_signal)
        snprintf(text, sizeof text, "%s was ended by signal %d (%s); trying again", monitor->program,
                 monitor->exit_signal, strsignal(monitor->exit_signal));
    else
        snprintf(text, sizeof text, "%s ended with status %" PRId64 "%s%s; trying again",
                 monitor->program, monitor->exit_status, monitor->line_length ? ": " : "", monitor->line);
    tell(monitor, text);
}

static void kill_child(struct gpu_monitor *monitor)
{
    monitor->phase = KILLED;
    uv_timer_stop(&monitor->timer);
    if (!monitor->exited) /* else its pid may be another's by now */
        uv_process_kill(&monitor->process, SIGKILL);
}

static void on_child_exit(uv_process_t *process, int64_t status, int signal_number)
{
    struct gpu_monitor *monitor = process->data;

    monitor->exited = true;
    monitor->exit_status = status;
    monitor->exit_signal = signal_number;
    close_ended_child(monitor);
}

/* Half the allowed silence has passed. The loop runs timers before it reads, so after a stall of the daemon itself the
 * first of these must not be the last: what the child has sent meanwhile is read before the next. */
static void on_half_silence(uv_timer_t *timer)
{
    struct gpu_monitor *monitor = timer->data;
    char text[TEXT_ROOM];

    if (--monitor->patience > 0)
        return;
    kill_child(monitor);
    snprintf(text, sizeof text,
             "%s fell silent (a driver call that hangs? see dmesg for Xid errors); it is killed and "
             "started again once it has ended",
             monitor->program);
    tell(monitor, text);
    if (!monitor->freed)
        close_ended_child(monitor); /* where it had exited, but something else held its pipes open */
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct gpu_monitor *monitor = handle->data;

    *buffer = uv_buf_init(monitor->read_room, sizeof monitor->read_room);
}

static void take_frames(struct gpu_monitor *monitor, const void *bytes, size_t count)
{
    struct error err;
    int rc = 0;

    while (monitor->phase == RUNNING && !monitor->freed &&
           (rc = gpu_frame_decode(&monitor->decoder, &bytes, &count, monitor->reading, &err)) == 1) {
        monitor->pause_ms = monitor->restart_ms;
        monitor->told[0] = '\0';
        monitor->patience = 2;
        uv_timer_again(&monitor->timer);
        monitor->on_reading(monitor->user, monitor->reading);
    }
    if (rc < 0) {
        char text[TEXT_ROOM];
        kill_child(monitor);
        snprintf(text, sizeof text, "%s: %s; it is killed and started again", monitor->program,
                 err.text);
        tell(monitor, text);
        if (!monitor->freed)
            close_ended_child(monitor);
    }
}

static void on_frames(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct gpu_monitor *monitor = stream->data;

    if (count > 0) {
        take_frames(monitor, buffer->base, (size_t)count);
    } else if (count < 0) {
        uv_read_stop(stream);
        monitor->pipes_ended++;
        close_ended_child(monitor);
    }
}

/* Keeps the last line. */
static void on_complaints(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct gpu_monitor *monitor = stream->data;

    for (ssize_t i = 0; i < count; i++) {
        char c = buffer->base[i];
        if (c == '\n') {
            monitor->line_ended = true;
            continue;
        }
        if (monitor->line_ended)
            monitor->line_length = 0;
        monitor->line_ended = false;
        if (monitor->line_length + 1 < sizeof monitor->line)
            monitor->line[monitor->line_length++] = (unsigned char)c < ' ' || c == 0x7f ? '?' : c;
        monitor->line[monitor->line_length] = '\0';
    }
    if (count < 0) {
        uv_read_stop(stream);
        monitor->pipes_ended++;
        close_ended_child(monitor);
    }
}

static void start_child(struct gpu_monitor *monitor)
{
    char *args[] = {monitor->program, monitor->period_option, monitor->library_option, NULL};
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&monitor->frames},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&monitor->complaints},
    };
    uv_process_options_t options = {.file = monitor->program,
                                    .args = args,
                                    .exit_cb = on_child_exit,
                                    .stdio = stdio,
                                    .stdio_count = array_size(stdio)};
    uint64_t half_ms = (monitor->silence_ms + 1) / 2;
    int rc;

    gpu_frame_decoder_release(&monitor->decoder);
    monitor->exited = false;
    monitor->pipes_ended = 0;
    monitor->line[0] = '\0';
    monitor->line_length = 0;
    monitor->line_ended = false;
    uv_pipe_init(monitor->loop, &monitor->frames, 0);
    uv_pipe_init(monitor->loop, &monitor->complaints, 0);
    monitor->process.data = monitor->frames.data = monitor->complaints.data = monitor;
    monitor->phase = RUNNING;
    rc = uv_spawn(monitor->loop, &monitor->process, &options);
    if (rc < 0) {
        char text[TEXT_ROOM];
        close_child(monitor);
        snprintf(text, sizeof text, "cannot start %s (%s): check the installation; trying again",
                 monitor->program, uv_strerror(rc));
        tell(monitor, text);
        return;
    }
    uv_read_start((uv_stream_t *)&monitor->frames, on_alloc, on_frames);
    uv_read_start((uv_stream_t *)&monitor->complaints, on_alloc, on_complaints);
    monitor->patience = 2 * START_ALLOWANCE;
    uv_timer_start(&monitor->timer, on_half_silence, half_ms, half_ms);
}

static uint64_t positive_ms(int64_t ns)
{
    return ns > NS_PER_MS ? (uint64_t)(ns / NS_PER_MS) : 1;
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
    monitor->silence_ms = positive_ms(options->silence_wall_ns ? options->silence_wall_ns : silence_ns);
    monitor->restart_ms = positive_ms(options->restart_wall_ns ? options->restart_wall_ns : RESTART_NS);
    monitor->pause_ms = monitor->restart_ms;
    monitor->on_reading = options->on_reading;
    monitor->on_problem = options->on_problem;
    monitor->user = options->user;
    monitor->reading = xcalloc(1, sizeof *monitor->reading);
    uv_timer_init(loop, &monitor->timer);
    monitor->timer.data = monitor;
    start_child(monitor);
    return monitor;
}

static void on_patience_over(uv_timer_t *timer)
{
    close_child(timer->data);
}

void gpu_monitor_free(struct gpu_monitor *monitor)
{
    if (!monitor || monitor->freed)
        return;
    monitor->freed = true;
    switch (monitor->phase) {
    case WAITING:
        uv_close((uv_handle_t *)&monitor->timer, on_timer_closed);
        break;
    case RUNNING:
    case KILLED:
        kill_child(monitor);
        uv_timer_start(&monitor->timer, on_patience_over, FREE_PATIENCE, 0);
        close_ended_child(monitor);
        break;
    case CLOSING: /* on_child_closed goes on from here */
        break;
    }
}
