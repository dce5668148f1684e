/* The daemon: whether it answers, which one it is, its user, and its own report. */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/doctor/doctor.h"
#include "cli/show/answer.h"
#include "client/client.h"

#define ANSWER_MS 5000

/* The socket's owner is carmad's user, because carmad made it. */
static void check_socket(struct doctor *doctor, const char *path)
{
    const struct passwd *owner;
    struct stat st;

    if (strncmp(path, "tcp://", 6) == 0 || stat(path, &st) != 0)
        return;
    owner = getpwuid(st.st_uid);
    if (!S_ISSOCK(st.st_mode))
        doctor_find(doctor, "socket", DOCTOR_FAIL, "remove it, or name another place by the setting socket",
                    "%s is not a socket", path);
    else if (st.st_uid == 0)
        doctor_find(doctor, "socket", DOCTOR_OK, NULL, "%s, mode %04o, of root: carmad runs as root, for all users",
                    path, (unsigned)st.st_mode & 07777);
    else if (owner)
        doctor_find(doctor, "socket", DOCTOR_OK, NULL,
                    "%s, mode %04o, of %s: carmad runs as this user, for their own jobs", path,
                    (unsigned)st.st_mode & 07777, owner->pw_name);
    else
        doctor_find(doctor, "socket", DOCTOR_OK, NULL, "%s, mode %04o, of uid %u", path, (unsigned)st.st_mode & 07777,
                    (unsigned)st.st_uid);
}

static void check_status(struct doctor *doctor, const char *place)
{
    const char *version = answer_text(doctor->status, "version"), *trouble = answer_text(doctor->status, "trouble");

    if (!version || strcmp(version, CARMA_VERSION) != 0)
        doctor_find(doctor, "daemon", DOCTOR_WARN, "restart carmad after an update: its jobs go on",
                    "answers at %s, version %s; this carma is %s", place, version ? version : "not told",
                    CARMA_VERSION);
    else
        doctor_find(doctor, "daemon", DOCTOR_OK, NULL, "answers at %s, version %s, policy %s", place, version,
                    answer_text(doctor->status, "policy") ? answer_text(doctor->status, "policy") : "not told");
    if (trouble)
        doctor_find(doctor, "daemon", DOCTOR_FAIL, "mend that: until then no job is accepted or started",
                    "it cannot store anything: %s", trouble);
}

/* Where the settings have a place of their own, and nobody says another, the daemon is there, though clients look
 * elsewhere. */
static const char *place_of(const struct doctor *doctor)
{
    CLEANUP(free_ptr) char *standard = config_default_socket();
    const char *variable = getenv("CARMA_SOCKET");

    if (doctor->cli->socket || (variable && *variable) || strcmp(standard, doctor->config.socket) == 0)
        return doctor->cli->socket;
    return doctor->config.socket;
}

static int ask(struct client *client, const char *path, json_t **reply, struct error *err)
{
    int status;
    int rc;

    client_set_timeout(client, ANSWER_MS);
    rc = client_call(client, "GET", path, NULL, &status, reply, err);
    if (!rc && (rc = client_check(status, *reply, err))) {
        json_decref(*reply);
        *reply = NULL;
    }
    return rc;
}

int doctor_ask(const struct doctor *doctor, const char *path, json_t **reply, struct error *err)
{
    struct client *client = NULL;
    int rc = client_open(place_of(doctor), &client, err);

    if (!rc)
        rc = ask(client, path, reply, err);
    client_free(client);
    return rc;
}

void doctor_check_daemon(struct doctor *doctor)
{
    const char *wanted = place_of(doctor);
    struct client *client = NULL;
    struct error err;
    int rc = client_open(wanted, &client, &err);
    CLEANUP(free_ptr) char *place = xstrdup(client ? client_socket(client) : wanted ? wanted : doctor->config.socket);

    if (!rc)
        rc = ask(client, "/v1/status", &doctor->status, &err);
    client_free(client);
    if (!rc)
        check_status(doctor, place);
    else if (rc == -ECONNREFUSED)
        doctor_find(doctor, "daemon", DOCTOR_WARN, NULL, "%s", err.text);
    else
        doctor_find(doctor, "daemon", DOCTOR_FAIL, "see its log (journalctl -u carmad); restart it, its jobs go on",
                    "%s", err.text);
    check_socket(doctor, place);
}
