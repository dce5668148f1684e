/* A client's bytes: bytes of a connection, or (with a first byte '{') the body of a submission. Through the HTTP server
 * and the daemon's requests into core and store. The daemon has a GPU that is lost, so that jobs are taken and none is
 * started. For all input, the first answer is one: an error's is one line. */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "daemon/engine/engine.h"
#include "fuzz_daemon.h"

#define SILENCE_MS 50

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, path, strlen(path) + 1);
    require(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

static void send_all(int fd, const void *bytes, size_t length)
{
    require(send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length); /* less than a socket holds */
}

static void on_silence(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

/* The answers until the other side closes, or waits for the rest of a cut request. */
static void receive(struct daemon *daemon, int fd, struct strbuf *answer)
{
    char bytes[4096];
    bool silent = false;
    uv_timer_t silence;

    uv_timer_init(daemon->loop, &silence);
    silence.data = &silent;
    uv_timer_start(&silence, on_silence, SILENCE_MS, 0);
    while (!silent) {
        ssize_t length = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);

        if (length == 0)
            break;
        if (length > 0)
            strbuf_append(answer, bytes, (size_t)length);
        else
            uv_run(daemon->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&silence, NULL);
    uv_run(daemon->loop, UV_RUN_NOWAIT);
}

/* Of JSON answers the body, where all of it is there: HEAD has none. */
static void check(const struct strbuf *answer)
{
    const char *head = answer->text, *end, *length;
    struct error err = {{0}};
    const char *error;
    long status, size;

    if (!answer->length)
        return; /* cut off, or nothing was asked */
    require(strncmp(head, "HTTP/1.", 7) == 0 && strlen(head) > 12);
    status = strtol(head + 9, NULL, 10);
    require(status >= 100 && status < 600 && status != 500);
    end = strstr(head, "\r\n\r\n");
    require(end);
    length = strstr(head, "Content-Length: ");
    if (!length || length > end || !strstr(head, "application/json") || strstr(head, "application/json") > end)
        return;
    end += 4;
    size = strtol(length + strlen("Content-Length: "), NULL, 10);
    if (answer->length - (size_t)(end - head) < (size_t)size || strncmp(end, "HTTP/1.", 7) == 0)
        return;
    json_t *json = json_loadb(end, (size_t)size, 0, NULL);
    require(json_is_object(json));
    if (status >= 400) {
        error = json_string_value(json_object_get(json, "error"));
        require(error);
        error_set(&err, 0, "%s", error);
        require_message(&err);
    }
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    CLEANUP(strbuf_release) struct strbuf answer = {0};
    struct daemon daemon;
    struct error err;
    char head[128];

    if (length > 64 << 10)
        return 0;
    fuzz_daemon_directory();
    require(fuzz_daemon_start(&daemon, &err) == 0);
    struct record gpu = {
        .type = RECORD_GPU_BACK, .at_ns = 1, .gpu = {.total_bytes = 40 * GIB, .share = SHARE_TIME_SLICE}};
    strcpy(gpu.gpu.uuid, "GPU-00000000-0000-0000-0000-000000000001");
    require(engine_input(daemon.engine, &gpu, NULL) == 0);
    gpu.type = RECORD_GPU_LOST;
    require(engine_input(daemon.engine, &gpu, NULL) == 0);
    int fd = connect_to(daemon.config.socket);
    if (length && *bytes == '{') {
        snprintf(head, sizeof head, "POST /v1/jobs HTTP/1.1\r\nHost: carma\r\nContent-Length: %zu\r\n\r\n", length);
        send_all(fd, head, strlen(head));
    }
    send_all(fd, bytes, length);
    shutdown(fd, SHUT_WR);
    receive(&daemon, fd, &answer);
    check(&answer);
    close(fd);
    fuzz_daemon_stop(&daemon);
    return 0;
}
