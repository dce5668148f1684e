/* Requests that are not for the daemon, since it opens no path that a user names. These ask for the user's name, and
 * for the output of the user's job. The code of `carma logs` opens that with the user's rights. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text/printable.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cli/cluster/cluster.h"
#include "cli/cluster/slurm.h"
#include "cli/job/log_file.h"
#include "cli/show/markup.h"
#include "cli/show/answer.h"
#include "client/client.h"
#include "dashboard/dashboard.h"

#define LOG_LIMIT_BYTES   (64 << 10)
#define LOG_DEFAULT_BYTES (16 << 10)
#define DAEMON_TIMEOUT_MS 10000
#define JSON_TYPE         "application/json"

/* ---- Errors ---- */

void dashboard_answer_error(struct dashboard_answer *answer, unsigned status, const char *accept, const char *why)
{
    struct strbuf out = {0};
    struct error line;

    error_set(&line, 0, "%s", why);
    error_make_printable(&line);
    *answer = (struct dashboard_answer){.status = status, .type = JSON_TYPE};
    if (accept && strstr(accept, "text/html")) {
        answer->type = "text/html; charset=utf-8";
        strbuf_puts(&out, "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                          "<meta name=\"viewport\" content=\"width=device-width\">\n"
                          "<meta name=\"color-scheme\" content=\"light dark\">\n");
        if (status == 502 || status == 503) /* the daemon may be back soon */
            strbuf_puts(&out, "<meta http-equiv=\"refresh\" content=\"3\">\n");
        strbuf_puts(&out, "<title>carma</title>\n<main>\n<h1>carma</h1>\n<p>");
        *line.text = (char)toupper((unsigned char)*line.text);
        markup_append(&out, line.text);
        strbuf_puts(&out, ".</p>\n</main>\n</html>\n");
    } else {
        CLEANUP(json_release) json_t *json = json_pack("{s:s}", "error", line.text);
        CLEANUP(free_ptr) char *text = json ? printable_json(json_dumps(json, JSON_COMPACT)) : NULL;

        strbuf_puts(&out, text ? text : "{\"error\":\"what went wrong cannot be written down\"}");
    }
    answer->length = out.length;
    answer->body = strbuf_steal(&out);
}

/* ---- The user ---- */

static void say_who(const struct dashboard_place *place, struct dashboard_answer *answer)
{
    uid_t uid = place->tcp ? place->token.owner : getuid();
    char buffer[4096];
    struct passwd entry, *found = NULL;
    CLEANUP(free_ptr) char *directory = getcwd(NULL, 0);
    CLEANUP(json_release) json_t *json = NULL;

    if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) != 0)
        found = NULL;
    json = json_pack("{s:s?, s:I, s:s, s:s?}", "user", found ? found->pw_name : NULL, "uid", (json_int_t)uid, "daemon",
                     place->name, "directory", directory);
    *answer = (struct dashboard_answer){
        .status = 200, .type = JSON_TYPE, .body = json ? json_dumps(json, JSON_COMPACT) : NULL};
    if (answer->body)
        answer->length = strlen(answer->body);
    else
        dashboard_answer_error(answer, 500, NULL,
                               "the name of the user, of the daemon's socket or of this directory is not UTF-8");
}

/* ---- A job's output ---- */

/* "jobs/ID/log" or "jobs/ID/log?bytes=N" */
static bool read_log_target(const char *target, uint64_t *id, int64_t *bytes)
{
    static const char query[] = "?bytes=";
    char digits[19];
    int end = 0;

    *bytes = LOG_DEFAULT_BYTES;
    if (sscanf(target, "jobs/%18[0-9]/log%n", digits, &end) != 1 || !end)
        return false;
    *id = strtoull(digits, NULL, 10);
    target += end;
    return !*target || (strncmp(target, query, sizeof query - 1) == 0 &&
                        parse_integer(target + sizeof query - 1, 0, INT64_MAX, bytes, NULL) == 0);
}

static int find_job(const struct dashboard_place *place, uint64_t id, json_t **job, unsigned *status, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRIu64, id);
    struct client *client = NULL;
    int code = 0, rc = client_open(place->name, &client, err);

    *status = 502;
    if (!rc) {
        client_set_timeout(client, DAEMON_TIMEOUT_MS);
        rc = client_call(client, "GET", path, NULL, &code, job, err);
    }
    if (!rc && (rc = client_check(code, *job, err)))
        *status = (unsigned)code;
    client_free(client);
    return rc;
}

static int read_end(int fd, size_t bytes, struct dashboard_answer *answer, struct error *err)
{
    CLEANUP(free_ptr) char *text = xmalloc(bytes + 1);
    struct stat st;
    off_t from;
    ssize_t count;
    size_t used = 0;

    if (fstat(fd, &st) < 0)
        return error_set(err, errno, "the job's output cannot be read: %s", strerror(errno));
    from = st.st_size > (off_t)bytes ? st.st_size - (off_t)bytes : 0;
    while (used < bytes && (count = pread(fd, text + used, bytes - used, from + (off_t)used)) != 0) {
        if (count < 0)
            return error_set(err, errno, "the job's output cannot be read: %s", strerror(errno));
        used += (size_t)count;
    }
    *answer = (struct dashboard_answer){
        .status = 200, .type = "text/plain; charset=utf-8", .body = steal_ptr(&text), .length = used};
    return 0;
}

static unsigned status_of(int rc)
{
    return rc == -ENOENT ? 404 : rc == -EACCES || rc == -EPERM ? 403 : 422;
}

static void show_log(const struct dashboard_place *place, uint64_t id, int64_t bytes, struct dashboard_answer *answer)
{
    CLEANUP(json_release) json_t *job = NULL;
    CLEANUP(free_ptr) char *path = NULL;
    CLEANUP(close_fd) int fd = -1;
    struct error err;
    unsigned status;
    int rc;

    if (find_job(place, id, &job, &status, &err)) {
        dashboard_answer_error(answer, status, NULL, err.text);
        return;
    }
    path = log_file_path(job, false, id);
    if (!path) {
        dashboard_answer_error(answer, 403, NULL, "the daemon does not tell where the job writes: it is not yours");
        return;
    }
    rc = log_file_open(path, log_file_owner(job), &fd, &err);
    if (rc == -ENOENT && !answer_job_ended(job) && answer_integer(job, "started_ns", 0) <= 0)
        error_set(&err, ENOENT, "the job has not been started: it has written nothing");
    if (!rc)
        rc = read_end(fd, (size_t)(bytes < LOG_LIMIT_BYTES ? bytes : LOG_LIMIT_BYTES), answer, &err);
    if (rc)
        dashboard_answer_error(answer, status_of(rc), NULL, err.text);
}

/* ---- All nodes ---- */

/* One page at a time: each asks all nodes. */
static void show_cluster(const struct cluster *cluster, struct dashboard_answer *answer)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    CLEANUP(json_release) json_t *json = NULL;
    struct error err;
    int rc;

    if (!cluster->wanted) {
        dashboard_answer_error(answer, 404, NULL, "this is of one node: start carma dashboard --cluster");
        return;
    }
    pthread_mutex_lock(&lock);
    rc = cluster_ask_all(cluster, &json, &err);
    pthread_mutex_unlock(&lock);
    if (rc) {
        dashboard_answer_error(answer, 502, NULL, err.text);
        return;
    }
    *answer = (struct dashboard_answer){
        .status = 200, .type = JSON_TYPE, .body = json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII)};
    answer->length = strlen(answer->body);
}

void dashboard_local_answer(const struct dashboard_place *place, const char *target, struct dashboard_answer *answer)
{
    const char *what = target + strlen(DASHBOARD_LOCAL_PREFIX);
    uint64_t id;
    int64_t bytes;

    if (strcmp(what, "whoami") == 0)
        say_who(place, answer);
    else if (strcmp(what, "cluster") == 0)
        show_cluster(&place->cluster, answer);
    else if (read_log_target(what, &id, &bytes))
        show_log(place, id, bytes, answer);
    else
        dashboard_answer_error(answer, 404, NULL,
                               "there is nothing of that name: it is /local/whoami, /local/cluster, /local/submit or "
                               "/local/jobs/ID/log?bytes=N");
}
