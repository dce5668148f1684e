/* How this file works: a row of `wrappers` says when it is around the command, and puts its words before it. None of
 * them: the command itself. An engine runs as the job's user, in the job's control group, and with the job's own
 * descriptors, so that limits, output and ends are those of any job.
 *
 * Podman is asked for no control groups of its own (--cgroups=disabled), so that the container stays in the job's. It
 * then insists on a PID namespace, in which a command that is process 1 would not act on SIGTERM: `catatonit`, where it
 * is installed, is process 1 in its place. Network, shared memory and user are the host's. Apptainer has all of that by
 * itself. Docker's daemon starts containers as its own children, outside of the job's group and limits: it is none of
 * the rows. To add an engine: a row, its words, and the names of its processes. */
#include "launch/shepherd/wrap.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/program.h"

struct words {
    char **items; /* owned */
    size_t count, capacity;
};

struct wrapping {
    const struct shepherd_request *request;
    const char *shepherd;
    const struct strbuf *own;
    size_t own_count;
    struct words words;
};

static void put_owned(struct words *words, char *word)
{
    array_reserve(words->items, words->capacity, words->count + 2);
    words->items[words->count++] = word;
    words->items[words->count] = NULL;
}

static void put(struct words *words, const char *word)
{
    put_owned(words, xstrdup(word));
}

/* ---- conda ---- */

/* $1 report descriptor, $2 environment, then the command. The message of a failed activation costs a second try, so
 * that a successful one is made once. */
static const char conda_script[] =
    "report() { printf 'failed conda: %s\\n' \"$1\" >&\"$fd\"; exit 1; }\n"
    "fd=$1 name=$2; shift 2\n"
    "exe=conda; command -v conda >/dev/null 2>&1 || exe=${CONDA_EXE:-}\n"
    "[ -n \"$exe\" ] || report \"not found by a login shell: install it, run 'conda init bash', or submit without "
    "it\"\n"
    "hook=$(\"$exe\" shell.bash hook 2>/dev/null) && [ -n \"$hook\" ] ||"
    " report \"'$exe shell.bash hook' failed: repair the installation\"\n"
    "eval \"$hook\"\n"
    "if ! conda activate \"$name\"; then\n"
    "  why=$(conda activate \"$name\" 2>&1); why=${why#\"${why%%[![:space:]]*}\"}\n"
    "  case $why in\n"
    "  *NameNotFound*|*'not find conda environment'*|*LocationNotFound*|*'Not a conda environment'*)\n"
    "    report \"environment '$name' not found: create it, or correct the name\";;\n"
    "  *) report \"cannot activate '$name': ${why%%$'\\n'*}\";;\n"
    "  esac\n"
    "fi\n"
    "exec \"$@\"\n";

static void put_conda(struct wrapping *wrapping)
{
    struct words *words = &wrapping->words;
    char fd[] = {'0' + WRAP_REPORT_FD, '\0'};

    put(words, "bash");
    put(words, "-lc");
    put(words, conda_script);
    put(words, "carma-conda");
    put(words, fd);
    put(words, wrapping->request->conda_environment);
    put(words, wrapping->shepherd);
    put(words, "exec");
    put(words, fd);
    put(words, wrapping->request->directory);
    put_owned(words, xasprintf("%zu", wrapping->own_count));
    for (size_t i = 0; i < wrapping->own_count; i++)
        put(words, wrapping->own[i].text);
}

/* ---- Containers ---- */

/* The host's programs and their parts mean nothing in an image, and the session of a login is not the job's. */
static bool is_of_the_host(const char *variable)
{
    static const char *const names[] = {
        "PATH=",     "LD_",     "PYTHONHOME=", "PYTHONPATH=", "CONDA_",      "SHELL=",    "XDG_",
        "HOSTNAME=", "TMPDIR=", "MANPATH=",    "_=",          "DBUS_",       "SSH_",      "BASH_",
        "OLDPWD=",   "MODULES", "LMOD_",       "PODMAN_",     "CONTAINERS_", "APPTAINER", "SINGULARITY"};

    for (size_t i = 0; i < array_size(names); i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Places that the container has under their own names, each once: where the job runs, its home, and carma's, as far as
 * the user reaches them. */
static void put_mounts(struct wrapping *wrapping, const char *option)
{
    const struct shepherd_request *request = wrapping->request;
    const char *const places[] = {request->directory,          getenv("HOME"),
                                  request->script_directory,   request->progress_file,
                                  request->mps_pipe_directory, request->mps_log_directory};

    for (size_t i = 0; i < array_size(places); i++) {
        const char *place = places[i];
        bool wanted = place && *place == '/' && place[1] && !strpbrk(place, ":,") && access(place, F_OK) == 0;
        for (size_t k = 0; k < i && wanted; k++)
            wanted = !places[k] || strcmp(places[k], place) != 0;
        if (wanted)
            put_owned(&wrapping->words, xasprintf("%s=%s:%s", option, place, place));
    }
}

static bool exists(const char *pattern)
{
    glob_t found;
    bool any = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;

    globfree(&found);
    return any;
}

/* By the container device interface where NVIDIA's toolkit has written what a GPU is; else their device nodes, of which
 * the job can open its own (launch/cgroup/device_filter.h). */
static void put_devices(struct wrapping *wrapping)
{
    CLEANUP(free_ptr) char *uuids = xstrdup(wrapping->request->gpu_uuids);
    bool interface = exists("/etc/cdi/nvidia*") || exists("/var/run/cdi/nvidia*");
    char *rest = NULL;
    glob_t nodes;

    for (char *uuid = interface ? strtok_r(uuids, ",", &rest) : NULL; uuid; uuid = strtok_r(NULL, ",", &rest))
        put_owned(&wrapping->words, xasprintf("--device=nvidia.com/gpu=%s", uuid));
    if (interface || !*uuids || glob("/dev/nvidia*", 0, NULL, &nodes) != 0)
        return;
    for (size_t i = 0; i < nodes.gl_pathc; i++) {
        struct stat st;
        if (stat(nodes.gl_pathv[i], &st) == 0 && S_ISCHR(st.st_mode))
            put_owned(&wrapping->words, xasprintf("--device=%s", nodes.gl_pathv[i]));
    }
    globfree(&nodes);
}

/* The number in a file of /proc/sys; RLIM_INFINITY: it has none. */
static rlim_t number_in(const char *path)
{
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;

    return file_read(path, 64, &text, &length, NULL) < 0 ? RLIM_INFINITY : strtoull(text, NULL, 10);
}

/* The job's own: Podman asks for more by itself, and fails where it may not have that. It lets nobody have more than
 * `most`. */
static void put_limit(struct words *words, const char *name, int resource, rlim_t most)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) < 0)
        return;
    if (limit.rlim_max > most)
        limit.rlim_max = most;
    if (limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    put_owned(words, xasprintf("--ulimit=%s=%jd:%jd", name, (intmax_t)limit.rlim_cur, (intmax_t)limit.rlim_max));
}

/* Without ids of his own in /etc/subuid the user is root in the container, and himself outside. */
static bool has_more_ids(const struct shepherd_request *request)
{
    CLEANUP(free_ptr) char *text = NULL;
    CLEANUP(free_ptr) char *name = xasprintf("\n%s:", request->user ? request->user : "");
    CLEANUP(free_ptr) char *number = xasprintf("\n%u:", (unsigned)geteuid());
    CLEANUP(free_ptr) char *lines = NULL;
    size_t length;

    if (geteuid() == 0 || file_read("/etc/subuid", 1 << 20, &text, &length, NULL) < 0)
        return false;
    lines = xasprintf("\n%s", text);
    return strstr(lines, number) || (request->user && strstr(lines, name));
}

static void put_podman(struct wrapping *wrapping)
{
    static const char *const always[] = {"podman",
                                         "--cgroup-manager=cgroupfs",
                                         "run",
                                         "--rm",
                                         "--cgroups=disabled",
                                         "--network=host",
                                         "--security-opt=label=disable",
                                         "--log-driver=passthrough",
                                         "--volume=/dev/shm:/dev/shm"};
    struct words *words = &wrapping->words;
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    if (runtime && access(runtime, W_OK | X_OK) < 0)
        unsetenv("XDG_RUNTIME_DIR"); /* it went with the login */
    for (size_t i = 0; i < array_size(always); i++)
        put(words, always[i]);
    if (wrapping->request->attach)
        put(words, "--interactive"); /* its terminal is passed through as it is */
    if (access("/usr/bin/catatonit", X_OK) == 0)
        put(words, "--init-path=/usr/bin/catatonit");
    if (access("/usr/bin/catatonit", X_OK) == 0 || access("/usr/libexec/podman/catatonit", X_OK) == 0)
        put(words, "--init");
    if (has_more_ids(wrapping->request))
        put(words, "--userns=keep-id");
    put_limit(words, "nofile", RLIMIT_NOFILE, number_in("/proc/sys/fs/nr_open"));
    put_limit(words, "nproc", RLIMIT_NPROC, number_in("/proc/sys/kernel/pid_max"));
    put_owned(words, xasprintf("--workdir=%s", wrapping->request->directory));
    put_mounts(wrapping, "--volume");
    put_devices(wrapping);
    for (char **variable = environ; *variable; variable++)
        if (!is_of_the_host(*variable))
            put_owned(words, xasprintf("--env=%.*s", (int)strcspn(*variable, "="), *variable));
    put(words, wrapping->request->container);
}

/* A name without a place is one of a registry: Podman's words are understood. */
static void put_apptainer(struct wrapping *wrapping)
{
    struct words *words = &wrapping->words;
    const char *image = wrapping->request->container;

    put(words, "apptainer");
    put(words, "--silent");
    put(words, "exec");
    if (*wrapping->request->gpu_uuids && exists("/dev/nvidiactl"))
        put(words, "--nv");
    put_owned(words, xasprintf("--pwd=%s", wrapping->request->directory));
    put_mounts(wrapping, "--bind");
    put_owned(words, xasprintf("%s%s", strstr(image, "://") || access(image, F_OK) == 0 ? "" : "docker://", image));
}

static bool is_in_path(const char *program)
{
    CLEANUP(free_ptr) char *why = NULL;

    return program_check("/", getenv("PATH"), program, &why) == 0;
}

/* An image in a file is Apptainer's. */
static bool is_file(const char *image)
{
    size_t length = strlen(image);

    return length > 4 && strcmp(image + length - 4, ".sif") == 0;
}

static bool takes(const char *engine, const struct shepherd_request *request)
{
    return request->container && (!request->container_engine || strcmp(request->container_engine, engine) == 0) &&
           is_in_path(engine) && !(is_file(request->container) && strcmp(engine, "podman") == 0);
}

static bool by_conda(const struct shepherd_request *request)
{
    return request->conda_environment && !request->container;
}

static bool by_podman(const struct shepherd_request *request)
{
    return takes("podman", request);
}

static bool by_apptainer(const struct shepherd_request *request)
{
    return takes("apptainer", request);
}

/* The first that is around the command is the only one. */
static const struct {
    bool (*is_around)(const struct shepherd_request *request);
    void (*put)(struct wrapping *wrapping);
} wrappers[] = {{by_podman, put_podman}, {by_apptainer, put_apptainer}, {by_conda, put_conda}};

static int no_engine(const struct shepherd_request *request, struct error *err)
{
    const char *engine = request->container_engine     ? request->container_engine
                         : is_file(request->container) ? "apptainer"
                                                       : "neither podman nor apptainer";

    if (is_file(request->container) && strcmp(engine, "podman") == 0)
        return error_set(err, ENOENT,
                         "container '%.200s': such a file is apptainer's: the setting container is podman here",
                         request->container);
    return error_set(err, ENOENT, "container '%.200s': %s is %sfound in PATH: install it%s", request->container, engine,
                     *engine == 'n' ? "" : "not ",
                     is_in_path("docker") ? "; Docker's daemon would run it outside of the job" : "");
}

int wrap_command(const struct shepherd_request *request, const char *shepherd, const struct strbuf *own,
                 size_t own_count, char ***command, struct error *err)
{
    struct wrapping wrapping = {.request = request, .shepherd = shepherd, .own = own, .own_count = own_count};
    size_t i = 0;

    while (i < array_size(wrappers) && !wrappers[i].is_around(request))
        i++;
    if (i < array_size(wrappers))
        wrappers[i].put(&wrapping);
    else if (request->container)
        return no_engine(request, err);
    for (i = 0; i < request->argument_count; i++)
        put(&wrapping.words, request->arguments[i]);
    *command = wrapping.words.items;
    return 0;
}

bool wrap_is_engine(pid_t pid)
{
    static const char *const names[] = {"podman",       "conmon",         "catatonit",    "crun",
                                        "runc",         "fuse-overlayfs", "apptainer",    "starter",
                                        "starter-suid", "appinit",        "squashfuse_ll"};
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/comm", (int)pid);
    CLEANUP(free_ptr) char *name = NULL;
    size_t length;

    if (file_read(path, 64, &name, &length, NULL) < 0)
        return false;
    name[strcspn(name, " \n")] = '\0'; /* "podman pause" */
    for (size_t i = 0; i < array_size(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}
