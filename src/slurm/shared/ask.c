#include "slurm/shared/ask.h"

#include <poll.h>

#include "base/nodetime.h"
#include "base/units.h"

enum { PAUSE_MS = 100 };

int64_t ask_now_ms(void)
{
    return nodetime_monotonic_wall_ns() / NS_PER_MS;
}

int ask(const char *socket, int64_t patience_ms, const char *method, const char *path, const json_t *body,
        json_t **reply, struct error *err)
{
    struct client *client = NULL;
    int status = 0, rc = client_open_within(socket, patience_ms, &client, err);

    *reply = NULL;
    if (rc)
        return rc;
    rc = client_call(client, method, path, body, &status, reply, err);
    if (!rc)
        rc = client_check(status, *reply, err);
    client_free(client);
    return rc;
}

static bool may_come_back(int rc)
{
    return rc == -ECONNREFUSED || rc == -ECONNRESET || rc == -EAGAIN || rc == -ESHUTDOWN || rc == -CLIENT_BUSY;
}

int ask_until(const char *socket, int64_t deadline_ms, const char *method, const char *path, const json_t *body,
              json_t **reply, struct error *err)
{
    for (;;) {
        int64_t left_ms = deadline_ms - ask_now_ms();
        int rc = ask(socket, left_ms > 1 ? left_ms : 1, method, path, body, reply, err);

        if (!may_come_back(rc) || ask_now_ms() + PAUSE_MS >= deadline_ms)
            return rc;
        json_decref(*reply);
        poll(NULL, 0, PAUSE_MS);
    }
}
