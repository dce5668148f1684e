/* MPS: the control program, and control daemons that are not carma's. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/kernel/aside.h"
#include "base/memory.h"
#include "cli/doctor/doctor.h"
#include "gpu/mps/trial.h"

#define CONTROL     "nvidia-cuda-mps-control"
#define COMM_LENGTH 15 /* to which the kernel cuts a short name */
#define ASK_MS      500
#define SILENT_MOST 8 /* processes that do not answer; then the search ends */
#define LISTED_MOST 8

/* The program's path; NULL: it is nowhere. */
static char *find_program(const char *name)
{
    const char *path = getenv("PATH");

    if (strchr(name, '/'))
        return access(name, X_OK) == 0 ? xstrdup(name) : NULL;
    for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; *path; path += strspn(path, ":")) {
        size_t length = strcspn(path, ":");
        char *found = xasprintf("%.*s/%s", (int)length, path, name);
        if (access(found, X_OK) == 0)
            return found;
        free(found);
        path += length;
    }
    return NULL;
}

/* A variable of a process; owned by the caller; NULL: it has none, or may not be looked at. */
static char *variable_of(const struct doctor *doctor, const char *pid, const char *name)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/proc/%s/environ", doctor->root, pid);
    FILE *file = fopen(path, "re");
    char *entry = NULL, *value = NULL;
    size_t room = 0, length = strlen(name);

    while (file && !value && getdelim(&entry, &room, '\0', file) > 0)
        if (strncmp(entry, name, length) == 0 && entry[length] == '=')
            value = xstrdup(entry + length + 1);
    free(entry);
    if (file)
        fclose(file);
    return value;
}

static bool is_control(const struct doctor *doctor, const char *pid)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%s/cmdline", pid);
    CLEANUP(free_ptr) char *words = doctor_read(doctor, path, NULL);
    const char *slash = words ? strrchr(words, '/') : NULL;

    return words && strcmp(slash ? slash + 1 : words, CONTROL) == 0;
}

/* By its short name, which its server has as well. */
static bool may_be_control(const struct doctor *doctor, const char *pid)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%s/comm", pid);
    CLEANUP(free_ptr) char *name = doctor_read(doctor, path, NULL);

    return name && strncmp(name, CONTROL, COMM_LENGTH) == 0;
}

struct candidate {
    const struct doctor *doctor;
    const char *pid;
};

/* Writes "=" and its pipe directory, for a control daemon. */
static void find_pipe(const void *user, int fd)
{
    const struct candidate *candidate = user;

    if (is_control(candidate->doctor, candidate->pid)) {
        CLEANUP(free_ptr) char *pipe = variable_of(candidate->doctor, candidate->pid, "CUDA_MPS_PIPE_DIRECTORY");
        dprintf(fd, "=%s", pipe ? pipe : "");
    }
}

/* carma keeps the directories of its own daemons beside its socket. */
static bool is_carmas(const struct doctor *doctor, const char *pipe)
{
    const char *socket = doctor->config.socket, *slash = strrchr(socket, '/');
    CLEANUP(free_ptr) char *own = xasprintf("%.*s/mps/", slash ? (int)(slash - socket) : 0, socket);

    return pipe && strncmp(pipe, own, strlen(own)) == 0;
}

/* Appends "pid 12 (/tmp/nvidia-mps)" for each that is not carma's; returns how many there are. */
static size_t list_unmanaged(const struct doctor *doctor, struct strbuf *list, size_t *own)
{
    CLEANUP(free_ptr) char *proc = doctor_path(doctor, "/proc");
    DIR *directory = opendir(proc);
    const struct dirent *entry;
    size_t count = 0, silent = 0;

    while (silent < SILENT_MOST && directory && (entry = readdir(directory))) {
        if (entry->d_name[strspn(entry->d_name, "0123456789")] || !may_be_control(doctor, entry->d_name))
            continue;
        CLEANUP(free_ptr)
        char *said = aside_ask(find_pipe, &(struct candidate){.doctor = doctor, .pid = entry->d_name}, ASK_MS);
        const char *pipe = said && said[0] && said[1] ? said + 1 : NULL;
        silent += !said;
        if (!said || !*said)
            continue;
        if (is_carmas(doctor, pipe)) {
            ++*own;
            continue;
        }
        if (++count <= LISTED_MOST)
            strbuf_printf(list, "%spid %s (%s)", count > 1 ? ", " : "", entry->d_name, pipe ? pipe : "/tmp/nvidia-mps");
    }
    if (directory)
        closedir(directory);
    return count;
}

/* A job that is to run by MPS fails without it; where `share` is auto, jobs take turns instead. */
static void find_missing(struct doctor *doctor, const char *what)
{
    const char *remedy = "install the driver's MPS (Debian: nvidia-cuda-mps), name its program by mps_control, or set "
                         "share = time-slice";

    if (doctor->config.mps_pipe_directory)
        doctor_find(doctor, "MPS", DOCTOR_SKIP, NULL, "%s; mps_pipe_directory names a daemon", what);
    else if (share_setting_names(&doctor->config.share, SHARE_MPS))
        doctor_find(doctor, "MPS", DOCTOR_FAIL, remedy, "share = mps, and %s", what);
    else if (share_setting_names(&doctor->config.share, SHARE_AUTO))
        doctor_find(doctor, "MPS", DOCTOR_WARN, remedy, "share = auto, and %s: jobs share by time-slicing, none by MPS",
                    what);
    else
        doctor_find(doctor, "MPS", DOCTOR_SKIP, NULL, "%s: jobs cannot share by MPS", what);
}

/* The line is the daemon's at its start. */
static void check_multiuser(struct doctor *doctor, const char *program)
{
    struct error err;

    if (!doctor->config.core.mps_multiuser || doctor->config.mps_pipe_directory)
        return;
    if (geteuid() != 0)
        doctor_find(doctor, "MPS users", DOCTOR_SKIP, "run carma doctor as root",
                    "mps_multiuser = yes: only root can try whether the driver has an MPS server for several users");
    else if (mps_try_multiuser(program, -1, &err) < 0)
        doctor_find(doctor, "MPS users", DOCTOR_FAIL, "install a driver from 555 on, or set mps_multiuser = no",
                    "mps_multiuser = yes, and %s has no MPS server for several users: carmad does not start", program);
    else
        doctor_find(doctor, "MPS users", DOCTOR_OK, NULL, "one server takes several users (mps_multiuser = yes)");
}

static void check_program(struct doctor *doctor)
{
    const char *name = doctor->config.mps_control ? doctor->config.mps_control : CONTROL;
    CLEANUP(free_ptr) char *program = find_program(name);
    CLEANUP(free_ptr) char *missing = program ? NULL : xasprintf("there is no %s", name);
    struct error why;

    if (!program) {
        find_missing(doctor, missing);
    } else if (mps_try(program, -1, &why) != 0) {
        find_missing(doctor, why.text);
    } else {
        doctor_find(doctor, "MPS", DOCTOR_OK, NULL, "%s starts a control daemon", program);
        check_multiuser(doctor, program);
    }
}

void doctor_check_mps(struct doctor *doctor)
{
    CLEANUP(strbuf_release) struct strbuf list = {0};
    size_t own = 0, count = list_unmanaged(doctor, &list, &own);

    check_program(doctor);
    if (count && !doctor->config.mps_pipe_directory)
        doctor_find(doctor, "MPS daemons", DOCTOR_WARN,
                    "end them (echo quit | nvidia-cuda-mps-control), or have carma use one by mps_pipe_directory: "
                    "other programs attach to them, and their memory is not told apart",
                    "%zu not of carma's: %s%s", count, list.text, count > LISTED_MOST ? ", ..." : "");
    else if (count || own)
        doctor_find(doctor, "MPS daemons", DOCTOR_OK, NULL, "%zu of carma's, %zu others%s%s", own, count,
                    count ? ": " : "", count ? list.text : "");
}
