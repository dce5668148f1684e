#include "api/job_signal.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/spec_limits.h"
#include "base/memory.h"
#include "base/text/nearest.h"
#include "base/units.h"

#define DEFAULT_BEFORE_NS (60 * NS_PER_SEC) /* as Slurm has it */

/* As glibc's sigabbrev_np, which is newer than the systems that script/bundle builds for. */
static const char *const signal_names[] = {
    [SIGHUP] = "HUP",       [SIGINT] = "INT",   [SIGQUIT] = "QUIT",   [SIGILL] = "ILL",   [SIGTRAP] = "TRAP",
    [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",   [SIGFPE] = "FPE",     [SIGKILL] = "KILL", [SIGUSR1] = "USR1",
    [SIGSEGV] = "SEGV",     [SIGUSR2] = "USR2", [SIGPIPE] = "PIPE",   [SIGALRM] = "ALRM", [SIGTERM] = "TERM",
    [SIGSTKFLT] = "STKFLT", [SIGCHLD] = "CHLD", [SIGCONT] = "CONT",   [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
    [SIGTTIN] = "TTIN",     [SIGTTOU] = "TTOU", [SIGURG] = "URG",     [SIGXCPU] = "XCPU", [SIGXFSZ] = "XFSZ",
    [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH", [SIGPOLL] = "POLL", [SIGPWR] = "PWR",
    [SIGSYS] = "SYS",
};

static const char *name_of(uint32_t signal)
{
    return signal < sizeof signal_names / sizeof signal_names[0] ? signal_names[signal] : NULL;
}

static int check_range(const char *text, int64_t ns, struct error *err)
{
    if (ns <= 0 || ns > SPEC_MAX_TIME_NS)
        return error_set(err, EINVAL, "'%.40s' is out of range: more than 0, at most ten years", text);
    return 0;
}

int job_time_parse(const char *text, int64_t *limit_ns, struct error *err)
{
    int64_t ns = 0;
    int rc = parse_duration(text, &ns, err);

    if (rc == 0)
        rc = check_range(text, ns, err);
    if (rc == 0)
        *limit_ns = ns;
    return rc;
}

bool job_signal_can_be_caught(uint32_t signal)
{
    return signal >= 1 && signal <= JOB_SIGNAL_MAX && signal != SIGKILL && signal != SIGSTOP;
}

const char *job_signal_name(uint32_t signal, char text[static JOB_SIGNAL_TEXT])
{
    const char *name = name_of(signal);

    if (name)
        snprintf(text, JOB_SIGNAL_TEXT, "%s", name);
    else
        snprintf(text, JOB_SIGNAL_TEXT, "%" PRIu32, signal);
    return text;
}

/* 0: there is none such. */
static uint32_t find_signal(const char *text)
{
    const char *bare = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    int64_t number;

    if (parse_integer(text, 1, JOB_SIGNAL_MAX, &number, NULL) == 0)
        return (uint32_t)number;
    for (uint32_t signal = 1; signal <= JOB_SIGNAL_MAX; signal++) {
        const char *name = name_of(signal);
        if (name && strcasecmp(name, bare) == 0)
            return signal;
    }
    return 0;
}

static int parse_before(const char *text, int64_t *before_ns, struct error *err)
{
    int64_t seconds;

    if (parse_integer(text, 0, SPEC_MAX_TIME_NS / NS_PER_SEC, &seconds, NULL) == 0)
        *before_ns = seconds * NS_PER_SEC;
    else if (parse_duration(text, before_ns, NULL))
        return error_set(err, EINVAL,
                         "'%.40s' is not a time before the limit: write seconds, or a number with a unit such as 5m",
                         text);
    return check_range(text, *before_ns, err);
}

static int refuse(const char *text, struct error *err)
{
    CLEANUP(free_ptr) char *question = NULL;
    struct nearest nearest;

    nearest_begin(&nearest, strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text);
    for (uint32_t signal = 1; signal <= JOB_SIGNAL_MAX; signal++)
        if (name_of(signal) && job_signal_can_be_caught(signal))
            nearest_try(&nearest, name_of(signal));
    question = nearest_question(&nearest, "");
    return error_set(err, EINVAL, "there is no signal '%.40s'%s", text,
                     *question ? question : ": write a name such as USR1, or a number");
}

int job_signal_to_send(const char *text, uint32_t *signal, struct error *err)
{
    static const char *const instead[] = {[SIGKILL] = "cancel",  [SIGSTOP] = "suspend", [SIGTSTP] = "suspend",
                                          [SIGTTIN] = "suspend", [SIGTTOU] = "suspend", [SIGCONT] = "resume"};

    *signal = find_signal(text);
    if (!*signal)
        return refuse(text, err);
    if (*signal < array_size(instead) && instead[*signal])
        return error_set(err, EINVAL, "signal '%.40s' is not sent: use 'carma %s'", text, instead[*signal]);
    return 0;
}

int job_signal_parse(const char *text, uint32_t *signal, int64_t *before_ns, struct error *err)
{
    const char *at = strchr(text, '@');
    CLEANUP(free_ptr) char *name = xstrndup(text, at ? (size_t)(at - text) : strlen(text));
    uint32_t found = find_signal(name);
    int64_t before = DEFAULT_BEFORE_NS;
    int rc = 0;

    if (!found)
        return refuse(name, err);
    if (!job_signal_can_be_caught(found))
        return error_set(err, EINVAL, "signal '%.40s' cannot be caught: choose one that can, such as USR1", name);
    if (at)
        rc = parse_before(at + 1, &before, err);
    if (rc == 0) {
        *signal = found;
        *before_ns = before;
    }
    return rc;
}
