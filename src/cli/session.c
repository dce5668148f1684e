#include "cli/session.h"

#include <errno.h>
#include <time.h>

#include "base/nodetime.h"
#include "base/units.h"
#include "client/client.h"

#define RETRY_MS 250

bool session_sleep_ms(int64_t wall_ms)
{
    struct timespec pause = {.tv_sec = (time_t)(wall_ms / 1000), .tv_nsec = (long)(wall_ms % 1000 * NS_PER_MS)};

    return nanosleep(&pause, NULL) == 0;
}

/* -EAGAIN: the daemon says that it cannot store anything now. */
static bool worth_asking_again(int rc, bool repeatable, bool while_full)
{
    return rc == -CLI_NO_DAEMON || (rc == -CLI_NO_ANSWER && repeatable) || (rc == -EAGAIN && while_full);
}

static int ask(struct cli *cli, const char *method, const char *path, const json_t *body, bool while_full,
               json_t **reply, struct error *err)
{
    bool repeatable = client_may_repeat(method, body), told = false;
    int64_t begun = nodetime_monotonic_wall_ns();
    int rc;

    while (worth_asking_again(rc = cli_call(cli, method, path, body, reply, err), repeatable, while_full)) {
        if (nodetime_monotonic_wall_ns() - begun > SESSION_TIMEOUT_S * NS_PER_SEC)
            break;
        if (!told)
            cli_fail("%s; waiting up to %d s for it", err->text, SESSION_TIMEOUT_S);
        told = true;
        if (!session_sleep_ms(RETRY_MS))
            break;
    }
    return rc;
}

int session_status(int rc)
{
    return rc == -CLI_NO_DAEMON || rc == -CLI_NO_ANSWER ? CLI_NOT_ASKED : CLI_FAILURE;
}

int session_call(struct cli *cli, const char *method, const char *path, const json_t *body, json_t **reply,
                 struct error *err)
{
    return ask(cli, method, path, body, true, reply, err);
}

int session_submit(struct cli *cli, const json_t *request, json_t **reply, struct error *err)
{
    return ask(cli, "POST", "/v1/jobs", request, false, reply, err);
}
