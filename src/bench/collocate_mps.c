/* An MPS domain for one run: a control daemon with its own directories. So a machine's own daemon is neither used nor
 * disturbed, and one run's faults do not reach the next. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "bench/collocate.h"
#include "gpu/mps/domain.h"

#define JOB           1
#define START_WALL_NS (60 * NS_PER_SEC)
#define STOP_WALL_NS  (30 * NS_PER_SEC)
#define TICK_MS       20
#define IDLE_MS       1 /* the run's end is known: nothing else will come */

static void on_phase(void *user, struct mps_domain *domain, enum mps_phase phase, const char *why)
{
    struct collocate_mps *mps = user;

    mps->phase = phase;
}

static void on_ready(void *user, uint64_t job, int status, const struct error *err)
{
    struct collocate_mps *mps = user;

    mps->answered = true;
    mps->status = status;
    if (status)
        mps->err = *err;
}

static void on_tick(uv_timer_t *timer)
{
}

/* Runs the loop until *done, or the time is over. */
static bool run_until(uv_loop_t *loop, bool (*done)(const struct collocate_mps *mps), const struct collocate_mps *mps,
                      int64_t timeout_wall_ns)
{
    int64_t until_ns = nodetime_monotonic_wall_ns() + timeout_wall_ns;
    uv_timer_t tick;

    uv_timer_init(loop, &tick);
    uv_timer_start(&tick, on_tick, TICK_MS, TICK_MS);
    while (!done(mps) && nodetime_monotonic_wall_ns() < until_ns)
        uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
    return done(mps);
}

static bool has_answered(const struct collocate_mps *mps)
{
    return mps->answered;
}

static bool is_down(const struct collocate_mps *mps)
{
    return mps->phase == MPS_DOWN;
}

int collocate_mps_start(struct collocate_mps *mps, uv_loop_t *loop, const char *program, const char *gpu,
                        struct error *err)
{
    const char *temporary = getenv("TMPDIR");
    CLEANUP(free_ptr)
    char *directory = xasprintf("%s/carma-mps-XXXXXX", temporary && *temporary == '/' ? temporary : "/tmp");
    struct mps_domain_options options = {
        .loop = loop, .program = program, .gpus = gpu, .idle_ms = IDLE_MS, .on_phase = on_phase, .user = mps};
    int rc;

    *mps = (struct collocate_mps){.loop = loop, .phase = MPS_DOWN};
    if (!mkdtemp(directory))
        return error_set(err, errno, "%s: %s", directory, strerror(errno));
    mps->directory = steal_ptr(&directory);
    options.directory = mps->directory;
    rc = mps_domain_new(&options, &mps->domain, err);
    if (rc)
        return rc;
    mps_domain_join(mps->domain, JOB, getuid(), on_ready, mps);
    if (!run_until(loop, has_answered, mps, START_WALL_NS))
        return error_set(err, ETIMEDOUT, "%s: no MPS server within 60 s", program);
    if (mps->status)
        return error_set(err, mps->status, "%s", mps->err.text);
    mps->pipe = mps_domain_pipe_directory(mps->domain);
    return 0;
}

void collocate_mps_stop(struct collocate_mps *mps)
{
    if (mps->domain) {
        mps_domain_leave(mps->domain, JOB);
        run_until(mps->loop, is_down, mps, STOP_WALL_NS);
        mps_domain_free(mps->domain);
        mps->domain = NULL;
        uv_run(mps->loop, UV_RUN_NOWAIT);
    }
    if (mps->directory)
        file_remove_tree(mps->directory);
    free_ptr(&mps->directory);
    mps->pipe = NULL;
}
