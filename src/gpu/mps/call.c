#include "gpu/mps/call.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text/printable.h"
#include "base/strbuf.h"

struct mps_call {
    mps_called *done; /* NULL: forgotten, or already called */
    void *user;
    char *program; /* owned */
    bool late;
    bool exited;
    bool leads; /* a group of its own */
    unsigned handles_open;
    int64_t exit_status;
    int exit_signal;
    int log_fd;
    uv_process_t process;
    uv_pipe_t input, output;
    uv_timer_t timer;
    uv_write_t write;
    uv_shutdown_t shutdown;
    char text[128]; /* the input, while it is written */
    struct strbuf answer;
    char room[4096];
};

static void on_closed(uv_handle_t *handle)
{
    struct mps_call *call = handle->data;

    if (--call->handles_open > 0)
        return;
    strbuf_release(&call->answer);
    free(call->program);
    free(call);
}

static void close_all(struct mps_call *call)
{
    uv_handle_t *handles[] = {(uv_handle_t *)&call->process, (uv_handle_t *)&call->input, (uv_handle_t *)&call->output,
                              (uv_handle_t *)&call->timer};

    for (size_t i = 0; i < array_size(handles); i++)
        if (!uv_is_closing(handles[i]))
            uv_close(handles[i], on_closed);
}

static void tell(struct mps_call *call, int status, const struct error *err)
{
    mps_called *done = call->done;

    call->done = NULL;
    if (done)
        done(call->user, status, call->answer.text ? call->answer.text : "", err);
}

/* The last line that it printed, for the message. */
static const char *last_line(struct mps_call *call)
{
    char *text = call->answer.text;
    char *line;

    while (call->answer.length && strchr("\r\n ", text[call->answer.length - 1]))
        text[--call->answer.length] = '\0';
    if (!call->answer.length)
        return "it said nothing";
    line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    printable_replace(line);
    return line;
}

static void finish(struct mps_call *call)
{
    struct error err = {{0}};
    int status = 0;

    if (call->late)
        status = error_set(&err, ETIMEDOUT, "%s does not answer", call->program);
    else if (call->exit_signal)
        status = error_set(&err, EIO, "%s was ended by signal %d", call->program, call->exit_signal);
    else if (call->exit_status)
        status = error_set(&err, EIO, "%s ended with status %" PRId64 ": %.200s", call->program, call->exit_status,
                           last_line(call));
    close_all(call);
    tell(call, status, &err);
}

/* Its output before it ended is in the pipe. Its daemon, where it left one, may hold the pipe open for ever. */
static void read_rest(struct mps_call *call)
{
    uv_os_fd_t fd;
    ssize_t count;

    if (uv_is_closing((uv_handle_t *)&call->output) || uv_fileno((uv_handle_t *)&call->output, &fd) != 0)
        return;
    uv_read_stop((uv_stream_t *)&call->output);
    while (call->answer.length < MPS_MAX_ANSWER && (count = read(fd, call->room, sizeof call->room)) > 0)
        strbuf_append(&call->answer, call->room, (size_t)count);
}

static void on_ended(uv_process_t *process, int64_t status, int signal_number)
{
    struct mps_call *call = process->data;

    call->exited = true;
    call->exit_status = status;
    call->exit_signal = signal_number;
    read_rest(call);
    finish(call);
}

static void on_late(uv_timer_t *timer)
{
    struct mps_call *call = timer->data;

    call->late = true;
    if (!call->exited) /* with its children: a daemon that comes up later would have no owner */
        uv_kill(call->leads ? -call->process.pid : call->process.pid, SIGKILL);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct mps_call *call = handle->data;

    *buffer = uv_buf_init(call->room, sizeof call->room);
}

static void on_output(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct mps_call *call = stream->data;

    if (count > 0 && call->answer.length < MPS_MAX_ANSWER)
        strbuf_append(&call->answer, buffer->base, (size_t)count);
    else if (count < 0)
        uv_read_stop(stream);
}

static void on_shut(uv_shutdown_t *request, int status)
{
    struct mps_call *call = request->data;

    if (!uv_is_closing((uv_handle_t *)&call->input))
        uv_close((uv_handle_t *)&call->input, on_closed);
}

static void on_written(uv_write_t *request, int status)
{
    struct mps_call *call = request->data;

    (void)status; /* it may have ended without reading: its status tells the reason */
    if (!uv_is_closing((uv_handle_t *)&call->input))
        uv_shutdown(&call->shutdown, (uv_stream_t *)&call->input, on_shut);
}

static bool is_own(const char *variable)
{
    static const char *const own[] = {"CUDA_MPS_PIPE_DIRECTORY=",
                                      "CUDA_MPS_LOG_DIRECTORY=",
                                      "CUDA_VISIBLE_DEVICES=",
                                      "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=",
                                      "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=",
                                      "CUDA_MPS_PROTOCOL_VERSION="}; /* a daemon goes by it, before any option */

    for (size_t i = 0; i < array_size(own); i++)
        if (strncmp(variable, own[i], strlen(own[i])) == 0)
            return true;
    return false;
}

/* The daemon's environment with the variables of this control daemon; the array and its first three are the
 * caller's. */
static char **environment_of(const struct mps_endpoint *endpoint)
{
    size_t count = 0, at = 0;
    char **result;

    while (environ[count])
        count++;
    result = xcalloc(count + 4, sizeof *result);
    result[at++] = xasprintf("CUDA_MPS_PIPE_DIRECTORY=%s", endpoint->pipe_directory);
    result[at++] = xasprintf("CUDA_MPS_LOG_DIRECTORY=%s", endpoint->log_directory);
    result[at++] = xasprintf("CUDA_VISIBLE_DEVICES=%s", endpoint->gpus);
    for (size_t i = 0; i < count; i++)
        if (!is_own(environ[i]))
            result[at++] = environ[i];
    return result;
}

static int spawn(struct mps_call *call, const struct mps_endpoint *endpoint, const struct mps_command *command)
{
    char *arguments[array_size(command->arguments) + 2] = {call->program};
    char **environment = environment_of(endpoint);
    uv_stdio_container_t stdio[] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&call->input},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&call->output},
        {.flags = UV_INHERIT_FD, .data.fd = 1},
    };
    uv_process_options_t options = {.file = call->program,
                                    .args = arguments,
                                    .env = environment,
                                    .exit_cb = on_ended,
                                    .stdio = stdio,
                                    .stdio_count = array_size(stdio)};
    int rc;

    for (size_t i = 0; i < array_size(command->arguments) && command->arguments[i]; i++)
        arguments[i + 1] = (char *)(uintptr_t)command->arguments[i]; /* uv takes them as execvp() does */
    if (call->log_fd >= 0) {
        stdio[0] = (uv_stdio_container_t){.flags = UV_IGNORE};
        stdio[1] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = call->log_fd};
        stdio[2] = stdio[1];
        options.flags = UV_PROCESS_DETACHED; /* a session of its own: it outlives us */
        call->leads = true;
    } else {
        stdio[2].flags = UV_IGNORE;
    }
    rc = uv_spawn(endpoint->loop, &call->process, &options);
    for (size_t i = 0; i < 3; i++)
        free(environment[i]);
    free(environment);
    return rc;
}

static void on_not_spawned(uv_timer_t *timer)
{
    struct mps_call *call = timer->data;
    int code = (int)call->exit_status;
    struct error err;
    int status;

    /* execvp() says so, too, where a folder of PATH cannot be read. */
    if (code == -EACCES && !strchr(call->program, '/'))
        code = -ENOENT;
    if (code == -ENOENT)
        status = error_set(&err, ENOENT,
                           "there is no MPS control program '%s': install the NVIDIA driver's, or name it by "
                           "the setting mps_control; or set share to another mode",
                           call->program);
    else
        status =
            error_set(&err, -code, "cannot run the MPS control program '%s': %s", call->program, uv_strerror(code));
    close_all(call);
    tell(call, status, &err);
}

/* `log_fd`: of a call that becomes a daemon; else -1. */
static struct mps_call *begin(const struct mps_endpoint *endpoint, const struct mps_command *command, int log_fd,
                              uint64_t timeout_wall_ms, mps_called *done, void *user)
{
    struct mps_call *call = xcalloc(1, sizeof *call);
    uv_buf_t input;
    int rc;

    call->done = done;
    call->user = user;
    call->program = xstrdup(endpoint->program);
    call->log_fd = log_fd;
    uv_timer_init(endpoint->loop, &call->timer);
    uv_pipe_init(endpoint->loop, &call->input, 0);
    uv_pipe_init(endpoint->loop, &call->output, 0);
    call->process.data = call->input.data = call->output.data = call->timer.data = call;
    call->write.data = call->shutdown.data = call;
    call->handles_open = 4;
    rc = spawn(call, endpoint, command);
    close_fd(&call->log_fd);
    if (rc < 0) { /* told on the loop, as anything else */
        call->exit_status = rc;
        uv_timer_start(&call->timer, on_not_spawned, 0, 0);
        return call;
    }
    uv_timer_start(&call->timer, on_late, timeout_wall_ms, 0);
    if (call->leads)
        return call;
    uv_read_start((uv_stream_t *)&call->output, on_alloc, on_output);
    snprintf(call->text, sizeof call->text, "%s", command->input);
    input = uv_buf_init(call->text, (unsigned)strlen(call->text));
    uv_write(&call->write, (uv_stream_t *)&call->input, &input, 1, on_written);
    return call;
}

struct mps_call *mps_call(const struct mps_endpoint *endpoint, const struct mps_command *command,
                          uint64_t timeout_wall_ms, mps_called *done, void *user)
{
    return begin(endpoint, command, -1, timeout_wall_ms, done, user);
}

struct mps_call *mps_call_daemon(const struct mps_endpoint *endpoint, bool multiuser, uint64_t timeout_wall_ms,
                                 mps_called *done, void *user)
{
    CLEANUP(free_ptr) char *log = xasprintf("%s/start.log", endpoint->log_directory);
    struct mps_command command = {.arguments = {"-d"}};
    int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);

    if (multiuser)
        command.arguments[1] = "-multiuser-server";
    if (log_fd < 0)
        log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return begin(endpoint, &command, log_fd, timeout_wall_ms, done, user);
}

void mps_call_forget(struct mps_call *call)
{
    if (call)
        call->done = NULL;
}
