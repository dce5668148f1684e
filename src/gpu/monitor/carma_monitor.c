/* carma-monitor: looks at the GPUs once a period and writes its readings to stdout, as frames (gpu/frame.h). It is its
 * own program because it runs the vendor's driver: a call that hangs or corrupts memory takes this child, not the
 * daemon. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "gpu/dcgm/dcgm.h"
#include "gpu/frame.h"
#include "gpu/monitor/chain.h"
#include "gpu/nvml/inspect.h"
#include "gpu/nvml/nvml.h"

/* How long a single look waits for a first interval of SM activity: GPM's own time, and a little more. */
#define PERIOD_MAX_MS (24 * 3600 * INT64_C(1000))

struct settings {
    const char *library;
    const char *dcgm;
    uint64_t skip;
    _Atomic int *progress; /* mapped, shared with carmad; or NULL */
    bool gpm, further;     /* whether GPM is asked, and the sources after NVML */
    int64_t period_ns;     /* node time */
    bool inspect;
};

enum { OPTION_SKIP = 256, OPTION_PROGRESS, OPTION_INSPECT };

static const struct argp_option options[] = {
    {"library", 'l', "PATH", 0, "The NVML library (default: $CARMA_NVML_LIBRARY, else libnvidia-ml.so.1)", 0},
    {"dcgm", 'd', "PATH", 0, "The DCGM library (default: $CARMA_DCGM_LIBRARY, else libdcgm.so.4, else .3)", 0},
    {"only", 'O', "SOURCE", 0, "Ask for activity there alone: utilization, gpm or dcgm (default: any that has it)", 0},
    {"period-ms", 'p', "N", 0, "Milliseconds of node time between two looks (default: 1000)", 0},
    {"skip", OPTION_SKIP, "MASK", 0, "GPUs not to touch: a bit for each NVML index (default: 0)", 0},
    {"progress-fd", OPTION_PROGRESS, "FD", OPTION_HIDDEN, "carmad's: shared memory for the index that is touched", 0},
    {"inspect", OPTION_INSPECT, NULL, 0, "Print facts of the driver and its GPUs, for carma doctor, and end", 0},
    {0},
};

static _Atomic int *map_progress(int fd)
{
    void *page = mmap(NULL, sizeof(_Atomic int), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return page == MAP_FAILED ? NULL : page;
}

/* If a call hangs, carmad finds there on which GPU. */
static void leave_progress(void *progress, int index)
{
    atomic_store((_Atomic int *)progress, index + 1);
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct settings *settings = state->input;
    struct error err;
    int64_t period_ms, mask = 0;

    switch (key) {
    case 'l':
        settings->library = value;
        return 0;
    case 'd':
        settings->dcgm = value;
        return 0;
    case 'O':
        settings->gpm = strcmp(value, gpu_source_name(GPU_SOURCE_GPM)) == 0;
        settings->further = strcmp(value, gpu_source_name(GPU_SOURCE_DCGM)) == 0;
        if (!settings->gpm && !settings->further && strcmp(value, gpu_source_name(GPU_SOURCE_UTILIZATION)) != 0)
            argp_failure(state, 2, 0, "--only: '%.40s' is not utilization, gpm or dcgm", value);
        return 0;
    case OPTION_SKIP:
        if (parse_integer(value, 0, INT64_MAX, &mask, &err) < 0)
            argp_failure(state, 2, 0, "--skip: %s", err.text);
        settings->skip = (uint64_t)mask;
        return 0;
    case OPTION_PROGRESS:
        settings->progress = map_progress(atoi(value));
        return 0;
    case 'p':
        if (parse_integer(value, 1, PERIOD_MAX_MS, &period_ms, &err) < 0)
            argp_failure(state, 2, 0, "--period-ms: %s", err.text);
        else
            settings->period_ns = period_ms * NS_PER_MS;
        return 0;
    case OPTION_INSPECT:
        settings->inspect = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_failure(state, 2, 0, "%s: no argument is expected; see --help", value);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Waits until the monotonic deadline, or until nobody reads `fd` any more; whether it is still read. */
static bool wait_until(int fd, int64_t deadline_wall_ns)
{
    for (;;) {
        struct pollfd poll_fd = {.fd = fd, .events = 0};
        int64_t left_ns = deadline_wall_ns - nodetime_monotonic_wall_ns();
        struct timespec timeout = {.tv_sec = left_ns / NS_PER_SEC, .tv_nsec = left_ns % NS_PER_SEC};
        int rc;
        if (left_ns <= 0)
            return true;
        rc = ppoll(&poll_fd, 1, &timeout, NULL);
        if (rc > 0)
            return false;
        if (rc < 0 && errno != EINTR)
            return false;
    }
}

static int write_all(int fd, const char *bytes, size_t count)
{
    while (count) {
        ssize_t written = write(fd, bytes, count);
        if (written < 0 && errno == EAGAIN) {
            struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
            poll(&poll_fd, 1, -1);
        } else if (written < 0 && errno != EINTR) {
            return -errno;
        } else if (written > 0) {
            bytes += written;
            count -= (size_t)written;
        }
    }
    return 0;
}

/* 0 once the work is done or nobody reads it any more, else a negative errno. */
static int watch(const struct settings *settings, int fd, struct gpu_chain *chain, struct error *err)
{
    int64_t period_ns = nodetime_to_wall_ns(settings->period_ns);
    int64_t deadline_ns = nodetime_monotonic_wall_ns();
    CLEANUP(free_ptr) struct gpu_node_reading *reading = xcalloc(1, sizeof *reading);
    CLEANUP(strbuf_release) struct strbuf out = {0};

    for (;;) {
        int64_t now_ns;
        int rc = gpu_chain_read(chain, reading, err);
        if (rc < 0)
            return rc;
        strbuf_clear(&out);
        gpu_frame_encode(reading, &out);
        rc = write_all(fd, out.text, out.length);
        if (rc < 0)
            return rc == -EPIPE ? 0 : error_set(err, -rc, "cannot write to stdout: %s", strerror(-rc));
        /* Deadlines lie a whole number of periods after the start, so that no delay adds up; those missed are left. */
        now_ns = nodetime_monotonic_wall_ns();
        deadline_ns += period_ns;
        if (deadline_ns <= now_ns)
            deadline_ns += (now_ns - deadline_ns) / (period_ns ? period_ns : 1) * period_ns + period_ns;
        if (!wait_until(fd, deadline_ns))
            return 0;
    }
}

/* The exit status is 0 where NVML could be started: the output reports the errors. */
static int inspect(const struct settings *settings, int fd)
{
    FILE *out = fdopen(fd, "w");
    int rc = out ? nvml_inspect(settings->library, out) : -errno;

    if (out)
        fclose(out);
    return rc < 0;
}

/* The further sources, in the order in which they are asked. */
static int open_chain(const struct settings *settings, struct gpu_chain **chain, struct error *err)
{
    const struct gpu_chain_link links[] = {
        {settings->further ? &gpu_source_dcgm : NULL, settings->dcgm},
        {NULL, NULL},
    };

    const struct gpu_backend_options backend = {.library = settings->library,
                                                .without_gpm = !settings->gpm,
                                                .skip = settings->skip,
                                                .touch = settings->progress ? leave_progress : NULL,
                                                .user = settings->progress};

    return gpu_chain_open(&gpu_backend_nvml, &backend, links, settings->period_ns, chain, err);
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options, .parser = parse_option, .doc = "Looks at this machine's GPUs. carmad starts it by itself."};
    struct settings settings = {.gpm = true, .further = true, .period_ns = NS_PER_SEC};
    struct error err = {""};
    struct gpu_chain *chain = NULL;
    int fd, rc;

    argp_err_exit_status = 2;
    if (argp_parse(&argp, argc, argv, 0, NULL, &settings) != 0)
        return 2;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    rc = isatty(STDOUT_FILENO) && !settings.inspect
             ? error_set(&err, EINVAL, "its readings are for programs: run carma monitor, which prints them as CSV")
             : nodetime_init(&err);
    /* A driver's prints to stdout must not get between the frames. */
    fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (rc == 0 && (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0))
        rc = error_set(&err, errno, "cannot set up stdout: %s", strerror(errno));
    if (rc == 0 && settings.inspect)
        return inspect(&settings, fd);
    if (rc == 0)
        rc = open_chain(&settings, &chain, &err);
    if (rc == 0)
        rc = watch(&settings, fd, chain, &err);
    gpu_chain_close(chain);
    close_fd(&fd);
    if (rc < 0)
        fprintf(stderr, "carma-monitor: %s\n", err.text);
    return rc < 0;
}
