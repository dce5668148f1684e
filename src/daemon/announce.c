#include "daemon/announce.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "daemon/log.h"
#include "daemon/run/runs.h"

#define PERIOD_MS       10000
#define BEATS_PER_WATCH 3 /* a beat or two may come late */

struct announcer {
    struct daemon *daemon;
    uv_timer_t timer;
    char told[128];
    bool ready; /* is told: without it the manager would take carmad for one that does not start */
    bool complained;
};

/* False: nobody has heard it. The queue of a manager that is behind, as while a machine boots, is full. */
static bool tell(struct announcer *announcer, const char *lines)
{
    const struct service *service = &announcer->daemon->service;
    int status = service_tell(service, lines);

    if (status == 0 || announcer->complained)
        return status == 0;
    announcer->complained = true;
    daemon_log("the service manager cannot be told how carmad is, by NOTIFY_SOCKET %.108s: %s", service->notify_address,
               strerror(-status));
    return false;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void describe(const struct daemon *daemon, char *text, size_t size)
{
    uint32_t gpus = core_gpu_count(daemon->core), running = runs_count(daemon->runs);
    int length = gpus ? snprintf(text, size, "STATUS=%" PRIu32 " GPU%s", gpus, plural(gpus))
                      : snprintf(text, size, "STATUS=no GPU seen yet");

    snprintf(text + length, size - (size_t)length, "; %" PRIu32 " job%s running, %" PRIu64 " waiting", running,
             plural(running), core_waiting_count(daemon->core));
}

static void on_timer(uv_timer_t *timer)
{
    struct announcer *announcer = timer->data;
    char text[sizeof announcer->told];
    bool watched = announcer->daemon->service.watchdog_ns > 0;

    if (!announcer->ready)
        announcer->ready = tell(announcer, "READY=1");
    describe(announcer->daemon, text, sizeof text);
    if (strcmp(text, announcer->told) != 0) {
        CLEANUP(free_ptr) char *lines = xasprintf("%s%s", text, watched ? "\nWATCHDOG=1" : "");
        if (tell(announcer, lines))
            memcpy(announcer->told, text, sizeof text);
    } else if (watched) {
        tell(announcer, "WATCHDOG=1");
    }
}

static uint64_t period_ms(const struct service *service)
{
    int64_t beat_ms = service->watchdog_ns / NS_PER_MS / BEATS_PER_WATCH;

    return service->watchdog_ns && beat_ms < PERIOD_MS ? (uint64_t)(beat_ms > 0 ? beat_ms : 1) : PERIOD_MS;
}

void announce_loading(const struct daemon *daemon)
{
    service_tell(&daemon->service, "STATUS=loading the store"); /* where it fails, announce_ready will say so */
}

struct announcer *announce_ready(struct daemon *daemon)
{
    struct announcer *announcer;
    uint64_t period = period_ms(&daemon->service);

    if (!daemon->service.notify_address)
        return NULL;
    announcer = xcalloc(1, sizeof *announcer);
    announcer->daemon = daemon;
    uv_timer_init(daemon->loop, &announcer->timer);
    announcer->timer.data = announcer;
    on_timer(&announcer->timer);
    uv_timer_start(&announcer->timer, on_timer, period, period);
    return announcer;
}

static void on_closed(uv_handle_t *timer)
{
    free(timer->data);
}

void announce_stopping(struct announcer *announcer)
{
    if (!announcer)
        return;
    tell(announcer, "STOPPING=1\nSTATUS=stopping; jobs that run go on");
    uv_close((uv_handle_t *)&announcer->timer, on_closed);
}
