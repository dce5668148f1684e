/* The kernel and the system: control groups, processes, clock, limits, the service. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "base/install.h"
#include "base/memory.h"
#include "cli/child.h"
#include "cli/doctor/doctor.h"
#include "launch/cgroup/cgroup.h"
#include "launch/cgroup/device_filter.h"

#define FILES_ENOUGH                                                                                                   \
    4096 /* 512 connections, the log's and the shepherds' files of some hundred jobs (docs/limits.md) */
#define SANDBOX_MS     30000
#define YEAR_2024      INT64_C(1704067200)
#define INITIAL_PID_NS "pid:[4026531836]" /* Linux numbers the first namespaces so */

/* ---- Control groups ---- */

static bool is_there(const struct doctor *doctor, const char *path)
{
    CLEANUP(free_ptr) char *whole = doctor_path(doctor, path);

    return access(whole, F_OK) == 0;
}

/* Whether a carmad started here could make groups for its jobs: in its own group, where that is delegated. */
static bool may_make_groups(const struct doctor *doctor, const char *own)
{
    CLEANUP(free_ptr) char *mounts = doctor_read(doctor, "/proc/self/mountinfo", NULL);
    CLEANUP(free_ptr) char *place = mounts ? cgroup_locate(mounts, own) : NULL;
    CLEANUP(free_ptr) char *below = place ? doctor_path(doctor, place) : NULL;

    return below && access(below, W_OK) == 0;
}

/* Which of the controllers that limits need version 2 does not have, in words; NULL: it has all. */
static char *missing_controllers(const struct doctor *doctor, const char *own)
{
    static const char *const needed[] = {"memory", "pids", "cpu"};
    CLEANUP(free_ptr) char *mounts = doctor_read(doctor, "/proc/self/mountinfo", NULL);
    CLEANUP(free_ptr) char *place = mounts ? cgroup_locate(mounts, own) : NULL;
    CLEANUP(free_ptr) char *path = place ? xasprintf("%s/cgroup.controllers", place) : NULL;
    CLEANUP(free_ptr) char *offered = path ? doctor_read(doctor, path, NULL) : NULL;
    struct strbuf missing = {0};

    for (size_t i = 0; i < array_size(needed); i++)
        if (!cgroup_has_word(offered, needed[i]))
            strbuf_printf(&missing, "%s%s", missing.length ? ", " : "", needed[i]);
    return missing.length ? strbuf_steal(&missing) : NULL;
}

static void check_limits_of_jobs(struct doctor *doctor, const char *own)
{
    CLEANUP(free_ptr) char *missing = missing_controllers(doctor, own);

    if (missing)
        doctor_find(doctor, "job limits", DOCTOR_WARN,
                    "boot with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all: without them --memory, --cpus and "
                    "job_* limit no job",
                    "version 2 of control groups has no controller here for: %s", missing);
    else
        doctor_find(doctor, "job limits", DOCTOR_OK, NULL,
                    "memory, processes and CPUs of a job can be limited, if carmad's group "
                    "is delegated to it; its log says so where not");
}

static void check_cgroups(struct doctor *doctor)
{
    CLEANUP(free_ptr) char *text = doctor_read(doctor, "/proc/self/cgroup", NULL);
    CLEANUP(free_ptr) char *own = text ? cgroup_parse(text) : NULL;
    bool first = text && (strncmp(text, "0::", 3) != 0 || strstr(text, "\n1:"));

    if (!text || !*text)
        doctor_find(doctor, "cgroups", DOCTOR_WARN,
                    "jobs are told by their processes alone; one that forks away may be missed", "the kernel has none");
    else if (!own)
        doctor_find(doctor, "cgroups", DOCTOR_WARN,
                    "boot with systemd.unified_cgroup_hierarchy=1: without it a job out of host memory looks like a "
                    "killed one, and its detached processes may be missed",
                    "version 1 only");
    else if (may_make_groups(doctor, own))
        doctor_find(doctor, "cgroups", DOCTOR_OK, NULL, "version 2%s; jobs can have groups of their own below %s",
                    first ? " beside version 1" : "", own);
    else
        doctor_find(doctor, "cgroups", DOCTOR_WARN,
                    "run carmad as root, or as a service with Delegate=yes: else jobs have no groups of their own",
                    "version 2%s; %s is not delegated to this user", first ? " beside version 1" : "", own);
    if (own)
        check_limits_of_jobs(doctor, own);
}

/* This machine's kernel, so only for this machine. */
static void check_devices(struct doctor *doctor)
{
    struct error err;

    if (*doctor->root)
        return;
    if (doctor->config.device_cgroup == DEVICE_CGROUP_OFF)
        doctor_find(doctor, "device filter", DOCTOR_OK, NULL, "device_cgroup is off: a job can open every GPU");
    else if (geteuid() != 0)
        doctor_find(doctor, "device filter", DOCTOR_SKIP, NULL,
                    "only root can keep jobs from the GPUs that they were not given");
    else if (device_filter_load_try(&err) < 0)
        doctor_find(doctor, "device filter", DOCTOR_WARN,
                    "use a kernel with CONFIG_CGROUP_BPF: without it a job can open every GPU", "%s", err.text);
    else
        doctor_find(doctor, "device filter", DOCTOR_OK, NULL, "a job can be kept from the GPUs that it was not given");
}

/* carmad asks the same once, at its start. */
static void check_automatic_capture(struct doctor *doctor)
{
    CLEANUP(free_ptr) char *program = install_path("lib/carma/carma-sandbox");
    const char *argv[] = {program, "--check", NULL};
    struct cli_child answer;
    struct error err;

    if (*doctor->root)
        return;
    if (doctor->config.auto_capture == AUTO_CAPTURE_OFF) {
        doctor_find(doctor, "auto capture", DOCTOR_OK, NULL, "auto_capture is off");
        return;
    }
    if (cli_child_run(argv, -1, SANDBOX_MS, NULL, NULL, &answer, &err)) {
        doctor_find(doctor, "auto capture", DOCTOR_FAIL, "install carma anew: this is one of its own programs", "%s",
                    err.text);
        return;
    }
    if (answer.hung || answer.status)
        doctor_find(doctor, "auto capture", DOCTOR_WARN,
                    "without it carma records no capture by itself; users can ask for one (--capture auto)",
                    "no sandbox: %.*s", answer.errors.text ? (int)strcspn(answer.errors.text, "\n") : 18,
                    answer.errors.text ? answer.errors.text : "it does not answer");
    else
        doctor_find(doctor, "auto capture", DOCTOR_OK, NULL,
                    "a job's command can be tried in a sandbox, before the job starts");
    cli_child_release(&answer);
}

/* ---- Processes ---- */

static const char *hiding(const char *mounts)
{
    const char *at = mounts ? strstr(mounts, " /proc ") : NULL;
    size_t length = at ? strcspn(at, "\n") : 0;
    CLEANUP(free_ptr) char *line = at ? xstrndup(at, length) : NULL;

    if (!line)
        return NULL;
    return strstr(line, "hidepid=2") || strstr(line, "hidepid=invisible")    ? "hidepid=2"
           : strstr(line, "hidepid=1") || strstr(line, "hidepid=noaccess")   ? "hidepid=1"
           : strstr(line, "hidepid=4") || strstr(line, "hidepid=ptraceable") ? "hidepid=4"
                                                                             : NULL;
}

static void check_processes(struct doctor *doctor)
{
    CLEANUP(free_ptr) char *link = doctor_path(doctor, "/proc/self/ns/pid");
    CLEANUP(free_ptr) char *mounts = doctor_read(doctor, "/proc/self/mounts", NULL);
    const char *hides = hiding(mounts);
    char name[64] = "";
    ssize_t length = readlink(link, name, sizeof name - 1);

    if (length > 0 && strcmp(name, INITIAL_PID_NS) != 0)
        doctor_find(doctor, "processes", DOCTOR_WARN,
                    "share the host's (docker run --pid=host, hostPID): NVML's processes have other numbers here, so "
                    "that a job's memory is not told from others'",
                    "a PID namespace of its own: a container");
    else if (hides && geteuid() != 0)
        doctor_find(doctor, "processes", DOCTOR_WARN,
                    "run carmad as root, or mount /proc with gid= of a group that it is in",
                    "/proc is mounted with %s: unmanaged processes are hidden from this user", hides);
    else
        doctor_find(doctor, "processes", DOCTOR_OK, NULL, "those of the host are seen%s%s",
                    hides ? ", by root in spite of " : "", hides ? hides : "");
}

/* ---- Clock and limits ---- */

static void check_clock(struct doctor *doctor)
{
    struct timex state = {0};
    char text[40];
    time_t now = time(NULL);
    struct tm local;

    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &local));
    if ((int64_t)now < YEAR_2024)
        doctor_find(doctor, "clock", DOCTOR_FAIL, "set it before carmad starts: its records go by it",
                    "%s is in the past", text);
    else if (adjtimex(&state) < 0)
        doctor_find(doctor, "clock", DOCTOR_SKIP, NULL, "%s; whether it is synchronised is not told: %s", text,
                    strerror(errno));
    else if (state.status & STA_UNSYNC)
        doctor_find(doctor, "clock", DOCTOR_WARN,
                    "run chrony or systemd-timesyncd: by a wrong clock times are shown wrongly", "%s, not synchronised",
                    text);
    else
        doctor_find(doctor, "clock", DOCTOR_OK, NULL, "%s, synchronised", text);
}

static void check_limits(struct doctor *doctor)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur < FILES_ENOUGH)
        doctor_find(doctor, "open files", DOCTOR_WARN,
                    "for a carmad started here: ulimit -n 65536; of a service: LimitNOFILE=65536",
                    "%llu at most (hard limit %llu)", (unsigned long long)limit.rlim_cur,
                    (unsigned long long)limit.rlim_max);
    else
        doctor_find(doctor, "open files", DOCTOR_OK, NULL, "%llu at most", (unsigned long long)limit.rlim_cur);
}

/* ---- The service ---- */

static void check_service(struct doctor *doctor)
{
    static const char *const places[] = {"/etc/systemd/system/carmad.service", "/run/systemd/system/carmad.service",
                                         "/usr/local/lib/systemd/system/carmad.service",
                                         "/usr/lib/systemd/system/carmad.service",
                                         "/lib/systemd/system/carmad.service"};

    if (!is_there(doctor, "/run/systemd/system")) {
        doctor_find(doctor, "service", DOCTOR_SKIP, NULL, "systemd does not run here");
        return;
    }
    for (size_t i = 0; i < array_size(places); i++) {
        if (!is_there(doctor, places[i]))
            continue;
        doctor_find(doctor, "service", DOCTOR_OK, NULL, "%s", places[i]);
        return;
    }
    doctor_find(doctor, "service", DOCTOR_WARN, "install carmad.service, so that a reboot starts carmad again",
                "systemd has no carmad.service");
}

bool doctor_runs(const struct doctor *doctor, const char *name)
{
    CLEANUP(free_ptr) char *proc = doctor_path(doctor, "/proc");
    DIR *directory = opendir(proc);
    const struct dirent *entry;
    bool found = false;

    while (directory && !found && (entry = readdir(directory))) {
        CLEANUP(free_ptr) char *path = xasprintf("/proc/%s/comm", entry->d_name);
        CLEANUP(free_ptr)
        char *comm = entry->d_name[strspn(entry->d_name, "0123456789")] ? NULL : doctor_read(doctor, path, NULL);
        found = comm && strncmp(comm, name, strlen(name)) == 0;
    }
    if (directory)
        closedir(directory);
    return found;
}

/* Only where there is a driver that it could serve. */
static void check_persistenced(struct doctor *doctor)
{
    if (!is_there(doctor, "/proc/driver/nvidia/version"))
        return;
    if (doctor_runs(doctor, "nvidia-persiste"))
        doctor_find(doctor, "persistenced", DOCTOR_OK, NULL, "nvidia-persistenced runs");
    else
        doctor_find(doctor, "persistenced", DOCTOR_WARN,
                    "systemctl enable --now nvidia-persistenced: it keeps the driver's state "
                    "while no process uses a GPU",
                    "nvidia-persistenced does not run");
}

void doctor_check_system(struct doctor *doctor)
{
    check_cgroups(doctor);
    check_devices(doctor);
    check_automatic_capture(doctor);
    check_processes(doctor);
    check_clock(doctor);
    check_limits(doctor);
    check_service(doctor);
    check_persistenced(doctor);
}
