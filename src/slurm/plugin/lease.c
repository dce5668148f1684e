#include "slurm/plugin/lease.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include "slurm/plugin/http.h"

enum { ANSWER_MS = 500 }; /* between carmad's own deadline and ours */

static void write_request(struct text *body, const struct lease_request *request, int64_t wait_ms)
{
    text_printf(body, "{\"engine\":\"slurm\",\"cluster\":");
    text_json_string(body, request->cluster);
    text_printf(body, ",\"job\":%u,\"restart\":%u,\"node\":", request->job, request->restart);
    text_json_string(body, request->node);
    text_printf(body, ",\"uid\":%u,\"gid\":%u,\"name\":", request->uid, request->gid);
    text_json_string(body, request->name);
    text_printf(body, ",\"command\":");
    text_json(body, request->command, request->command_length);
    if (request->directory != NULL) {
        text_printf(body, ",\"directory\":");
        text_json_string(body, request->directory);
    }
    text_printf(body, ",\"gpus\":%lld,\"gpu_memory\":", (long long)request->gpus);
    if (request->memory_bytes > 0)
        text_printf(body, "%lld", (long long)request->memory_bytes);
    else
        text_printf(body, "null");
    text_printf(body, ",\"exclusive\":%s,\"share\":", request->exclusive ? "true" : "false");
    text_json_string(body, request->share);
    text_printf(body, ",\"wait_ms\":%lld}", (long long)wait_ms);
}

/* No carmad: one is being started again, or the socket's queue is full. */
static bool may_come_back(int code)
{
    return code == -ECONNREFUSED || code == -ENOENT || code == -ECONNRESET || code == -EPIPE;
}

static void pause_before_again(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

/* For requests that do no more when they are made again. */
static int ask_until(const char *socket_path, const char *method, const char *path, const struct text *body,
                     int64_t deadline_ms, int *status, struct text *answer)
{
    for (;;) {
        answer->length = 0;
        int code = http_ask(socket_path, method, path, body, deadline_ms, status, answer);
        if (!may_come_back(code) || http_now_ms() + 100 >= deadline_ms)
            return code;
        pause_before_again();
    }
}

/* carmad answers before the deadline, `left_ms` from now. */
static int send_request(const char *socket_path, const struct lease_request *request, int64_t left_ms,
                        int64_t deadline_ms)
{
    struct text body = {0};
    write_request(&body, request, left_ms > 2 * ANSWER_MS ? left_ms - ANSWER_MS : left_ms / 2);
    int fd = http_send(socket_path, "POST", "/v1/leases", &body, deadline_ms);
    text_release(&body);
    return fd;
}

int lease_ask(const char *socket_path, const struct lease_request *request, int64_t wait_ms, int64_t deadline_ms)
{
    int fd = send_request(socket_path, request, wait_ms, deadline_ms);
    return fd < 0 ? -1 : fd;
}

int lease_take(const char *socket_path, const struct lease_request *request, int asked, int64_t deadline_ms,
               struct text *answer)
{
    for (int fd = asked;; fd = -1) {
        int status = 0;
        answer->length = 0;
        if (fd < 0)
            fd = send_request(socket_path, request, deadline_ms - http_now_ms(), deadline_ms);
        int code = fd < 0 ? fd : http_hear(fd, deadline_ms, &status, answer);
        /* The key makes asking again harmless: a lease that was granted and not heard of is granted again. 503: it is
         * stopping, or has too many requests. */
        if ((may_come_back(code) || (code == 0 && status == 503)) && http_now_ms() + 100 < deadline_ms) {
            pause_before_again();
            continue;
        }
        if (code != 0)
            return code;
        return status == 201 ? 0 : status == 409 ? -EBUSY : status == 422 ? -ERANGE : -EIO;
    }
}

int lease_attach(const char *socket_path, int64_t lease, const char *step, pid_t pid, const char *cgroup,
                 int64_t deadline_ms)
{
    char path[96];
    snprintf(path, sizeof(path), "/v1/leases/%lld/steps/%s", (long long)lease, step);
    struct text body = {0}, answer = {0};
    text_printf(&body, "{\"cgroup\":");
    text_json_string(&body, cgroup);
    text_printf(&body, ",\"pids\":[%d]}", (int)pid);
    int status = 0;
    int code = ask_until(socket_path, "PUT", path, &body, deadline_ms, &status, &answer);
    text_release(&body);
    text_release(&answer);
    return code != 0 ? code : status == 204 ? 0 : -EIO;
}

void lease_write_end(struct text *body, int status, bool stopped, const struct text *output)
{
    if (WIFSIGNALED(status))
        text_printf(body, "{\"signal\":%d", WTERMSIG(status));
    else
        text_printf(body, "{\"exit_status\":%d", WEXITSTATUS(status));
    text_printf(body, ",\"stopped\":%s,\"output\":", stopped ? "true" : "false");
    if (output != NULL && output->length > 0)
        text_json(body, output->bytes, output->length);
    else
        text_printf(body, "null");
    text_printf(body, "}");
}

int lease_end(const char *socket_path, int64_t lease, int status, bool stopped, const struct text *output,
              int64_t deadline_ms, struct text *answer)
{
    char path[64];
    snprintf(path, sizeof(path), "/v1/leases/%lld/end", (long long)lease);
    struct text body = {0};
    lease_write_end(&body, status, stopped, output);
    int answered = 0;
    int code = ask_until(socket_path, "POST", path, &body, deadline_ms, &answered, answer);
    text_release(&body);
    return code != 0 ? code : answered == 200 ? 0 : -EIO;
}

int lease_list(const char *socket_path, const char *cluster, uint32_t job, int64_t deadline_ms, struct text *answer)
{
    struct text path = {0};
    text_printf(&path, "/v1/leases/by-key?cluster=");
    for (const char *at = cluster; *at != '\0'; at++)
        text_printf(&path, "%%%02x", (unsigned char)*at);
    text_printf(&path, "&job=%u", job);
    int status = 0;
    int code = path.failed ? -ENOMEM : ask_until(socket_path, "GET", path.bytes, NULL, deadline_ms, &status, answer);
    text_release(&path);
    return code != 0 ? code : status == 200 ? 0 : -EIO;
}

int lease_capacity(const char *socket_path, int64_t deadline_ms, struct text *answer)
{
    int status = 0;
    int code = ask_until(socket_path, "GET", "/v1/capacity", NULL, deadline_ms, &status, answer);
    return code != 0 ? code : status == 200 ? 0 : -EIO;
}
