#include "fuzz_daemon.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/nodetime.h"
#include "daemon/log.h"
#include "store/store.h"

static char directory[64];
static uv_loop_t loop;
static uv_poll_t stored;

void daemon_log(const char *format, ...)
{
    (void)format;
}

static void empty_directory(void)
{
    static const char *const names[] = {"store.db",         "store.db-wal", "store.db-shm", "store.mark",
                                        "store.db-journal", "lock",         "notify",       "socket"};

    for (size_t i = 0; i < array_size(names); i++) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", directory, names[i]);
        unlink(path);
    }
}

static void remove_directory(void)
{
    CLEANUP(free_ptr) char *runs = xasprintf("%s/runs", directory);

    empty_directory();
    rmdir(runs);
    rmdir(directory);
}

const char *fuzz_daemon_directory(void)
{
    if (*directory) {
        empty_directory();
        return directory;
    }
    signal(SIGPIPE, SIG_IGN);
    require(nodetime_init(NULL) == 0);
    snprintf(directory, sizeof directory, "%s/carma-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    require(mkdtemp(directory));
    atexit(remove_directory);
    return directory;
}

static void on_store(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    store_dispatch(poll->data);
}

int fuzz_daemon_start(struct daemon *daemon, struct error *err)
{
    *daemon = (struct daemon){.loop = &loop};
    uv_loop_init(&loop);
    config_init_default(&daemon->config);
    free(daemon->config.state_directory);
    free(daemon->config.socket);
    daemon->config.state_directory = xstrdup(directory);
    daemon->config.socket = xasprintf("%s/socket", directory);
    /* A start needs no process: an MPS daemon would be the machine's, and forks take long with a sanitizer's memory. */
    daemon->config.share.mode = SHARE_TIME_SLICE;
    daemon->config.auto_capture = AUTO_CAPTURE_OFF;
    int rc = daemon_start(daemon, err);
    if (rc == 0) {
        uv_poll_init(&loop, &stored, store_event_fd(daemon->store));
        stored.data = daemon->store;
        uv_poll_start(&stored, UV_READABLE, on_store);
    }
    return rc;
}

void fuzz_daemon_stop(struct daemon *daemon)
{
    if (stored.data)
        uv_close((uv_handle_t *)&stored, NULL);
    stored.data = NULL;
    daemon_stop(daemon);
    uv_run(&loop, UV_RUN_DEFAULT);
    require(uv_loop_close(&loop) == 0);
    config_release(&daemon->config);
}
