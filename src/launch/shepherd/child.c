#include "launch/shepherd/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/kernel/handed.h"
#include "base/trust/guarded.h"
#include "base/memory.h"
#include "base/program.h"
#include "base/signals.h"
#include "base/strbuf.h"
#include "base/surroundings.h"
#include "launch/cgroup/cgroup.h"
#include "launch/shepherd/attach.h"
#include "launch/shepherd/checkpoint.h"
#include "launch/shepherd/inherit.h"
#include "launch/shepherd/script.h"
#include "launch/shepherd/variables.h"
#include "launch/shepherd/wrap.h"
#include "launch/spawn_shepherd.h"

#define EXIT_NOT_RUN    127
#define EXIT_NO_PROGRAM 127 /* as shells say it */
#define EXIT_NO_RIGHT   126

/* A line that goes with the next one, and a descriptor for the shepherd to keep. */
static struct {
    char *line; /* owned; NULL: none */
    int handed; /* owned */
} delayed;

static void report(int fd, const char *text)
{
    CLEANUP(free_ptr) char *lines = xasprintf("%s%s", delayed.line ? delayed.line : "", text);
    ssize_t ignored;

    if (!delayed.line || handed_send(fd, lines, strlen(lines), &delayed.handed, 1, 0) < 0)
        ignored = write(fd, lines, strlen(lines)); /* nobody to tell when the shepherd is gone; we end anyway */
    if (delayed.line)
        close_fd(&delayed.handed);
    free_ptr(&delayed.line);
    (void)ignored;
}

/* Each message wakes the shepherd, which then takes a processor that the job could have. */
static void report_later(int fd, const char *text, int handed)
{
    if (delayed.line)
        report(fd, "");
    delayed.line = xstrdup(text);
    delayed.handed = handed;
}

static void report_with(int fd, const char *text, int handed)
{
    report_later(fd, text, handed);
    report(fd, "");
}

static void fail(int fd, const char *text) __attribute__((noreturn));
static void fail(int fd, const char *text)
{
    CLEANUP(free_ptr) char *line = xasprintf("failed %s\n", text);

    report(fd, line);
    _exit(EXIT_NOT_RUN);
}

/* The submitter's, as after newgrp(1), while the user is still in it; else the account's. */
static gid_t group_of(const struct shepherd_request *request)
{
    const gid_t wanted = request->surroundings ? surroundings_group(request->surroundings) : (gid_t)-1;
    CLEANUP(free_ptr) gid_t *groups = NULL;
    int count = getgroups(0, NULL);

    groups = xcalloc((size_t)(count > 0 ? count : 0) + 1, sizeof *groups);
    count = getgroups(count > 0 ? count : 0, groups);
    for (int i = 0; i < count; i++)
        if (groups[i] == wanted)
            return wanted;
    return request->gid;
}

int child_become_user(const struct shepherd_request *request, struct error *err)
{
    gid_t gid;

    if (geteuid() != 0 || request->uid == 0)
        return 0;
    if (initgroups(request->user, request->gid) < 0 || (gid = group_of(request), setresgid(gid, gid, gid)) < 0 ||
        setresuid(request->uid, request->uid, request->uid) < 0)
        return error_set(err, errno, "cannot become user '%s' (uid %u, gid %u): %s", request->user, request->uid,
                         request->gid, strerror(errno));
    if (setuid(0) == 0 || getegid() != gid)
        return error_set(err, EPERM, "cannot give up root's rights for user '%s' (uid %u)", request->user,
                         request->uid);
    return 0;
}

/* A process that inherits a session keyring may read its keys, also as another user. So jobs of other users must not
 * share that of root's daemon (keyrings(7)). The user's own keys are found through the new one, as after a login. A
 * kernel without keys has nothing to share; a user beyond the quota keeps a keyring that holds nothing of others. */
static void leave_session_keyring(void)
{
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
        syscall(SYS_keyctl, KEYCTL_LINK, KEY_SPEC_USER_KEYRING, KEY_SPEC_SESSION_KEYRING);
}

static void cannot_open(const char *path, const char *word, int code, const struct error *why, int report_fd)
    __attribute__((noreturn));
static void cannot_open(const char *path, const char *word, int code, const struct error *why, int report_fd)
{
    const char *text = code == -ENXIO
                           ? "it is a FIFO that nobody reads, or a socket: start its reader first, or name a file"
                           : why->text;
    const char *remedy = code == -ENXIO || code == -EPERM     ? ""
                         : code == -ENOSPC || code == -EDQUOT ? ": free some space, or name another file"
                         : code == -ENOENT                    ? ": make its directory, or name another file"
                                                              : ": name another file";
    CLEANUP(free_ptr) char *line = xasprintf("cannot open the %s file '%s': %s%s", word, path, text, remedy);

    fail(report_fd, line);
}

/* Within the job's directory, where the job is already, a path goes on from there: nothing of the way is asked again.
 */
static const char *from_here(const struct shepherd_request *request, const char *path)
{
    size_t length = strlen(request->directory);

    return strncmp(path, request->directory, length) == 0 && path[length] == '/' && path[length + 1] != '/' &&
                   path[length + 1]
               ? path + length + 1
               : path;
}

static bool is_same_file(int a, int b)
{
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

/* Whether another job still writes to a file (a regular one: devices and FIFOs keep nothing that could be wiped): each
 * holds a shared lock on its outputs as long as a process of it has them open. Where a file system has no locks nothing
 * is known of others. */
static bool is_anothers(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* Opens the file that `pattern` names onto descriptor `to`, and reports it. Always for appending: output and error may
 * be one file under two names, and a user may truncate a log that runs. The first launch begins it anew, unless another
 * job writes there. The opening does not wait for a FIFO's reader
 * or for a line's carrier. The job's own writes do, as usual: it did not ask for O_NONBLOCK. */
static void open_output(const struct shepherd_request *request, const char *pattern, const char *word, int to,
                        int report_fd)
{
    CLEANUP(free_ptr) char *path = launch_output_path(pattern, request->job, &request->array);
    CLEANUP(free_ptr) char *line = NULL;
    CLEANUP(free_ptr) char *own = NULL;
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, fd;
    struct error err;
    struct stat st;
    bool regular, first, shared;

    fd = guarded_open(from_here(request, path), flags, 0666, &err);
    if (fd < 0)
        cannot_open(path, word, fd, &err, report_fd);
    regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    first = regular && request->launch <= 1 && !(to == 2 && is_same_file(fd, 1));
    shared = first && is_anothers(fd);
    if (first && !shared && ftruncate(fd, 0) < 0)
        fail(report_fd, strerror(errno));
    if (regular)
        flock(fd, LOCK_SH | LOCK_NB);
    if (fstat(fd, &st) < 0 || fcntl(fd, F_SETFL, O_APPEND) < 0 || dup2(fd, to) < 0)
        fail(report_fd, strerror(errno));
    close_fd(&fd);
    line = xasprintf("%s %jd\n", word, regular ? (intmax_t)st.st_size : 0);
    own = xasprintf("/proc/self/fd/%d", to);
    report_later(report_fd, line, open(own, O_PATH | O_CLOEXEC));
    if (shared) {
        CLEANUP(free_ptr)
        char *note = xasprintf("note another job writes to '%s', so it was not begun anew: name it with %%j\n", path);
        report(report_fd, note);
    }
}

/* A job that shall be started again to go on from there is not started without it; any other may never look at it. One
 * that somebody else has made is no job's: a job that looks there may run what it finds. */
static char *make_checkpoint_directory(const struct shepherd_request *request, int report_fd)
{
    struct error err;
    int rc = checkpoint_make(request, &err);

    if (rc == 0)
        return checkpoint_path(request);
    if (request->requeue || rc == -EPERM)
        fail(report_fd, err.text);
    return NULL;
}

static void open_outputs(const struct shepherd_request *request, int report_fd, volatile enum child_stage *stage)
{
    *stage = CHILD_OPENS_OUTPUT;
    open_output(request, request->output, "output", 1, report_fd);
    *stage = CHILD_OPENS_ERROR;
    if (request->error && strcmp(request->error, request->output) != 0)
        open_output(request, request->error, "error", 2, report_fd);
    else if (dup2(1, 2) < 0)
        fail(report_fd, strerror(errno));
}

/* Its input, and on a terminal also its output, are the relay's from here on. */
static void attach(const struct shepherd_request *request, int report_fd)
{
    struct error err;
    int channel = attach_open(request, &err);

    if (channel < 0)
        fail(report_fd, err.text);
    report_with(report_fd, "terminal\n", channel);
}

static void execute(char **command, int report_fd) __attribute__((noreturn));
static void execute(char **command, int report_fd)
{
    CLEANUP(free_ptr) char *why = NULL;
    CLEANUP(free_ptr) char *line = NULL;
    int code;

    report(report_fd, "exec\n");
    execvp(command[0], command);
    code = program_fault(command[0], errno, &why);
    line = xasprintf("unrun %d cannot run '%.200s': %s\n", code == ENOENT ? EXIT_NO_PROGRAM : EXIT_NO_RIGHT, command[0],
                     why);
    report(report_fd, line);
    _exit(EXIT_NOT_RUN);
}

/* By a login shell, which says itself how far it comes. */
static void execute_by_login(char **command, int report_fd) __attribute__((noreturn));
static void execute_by_login(char **command, int report_fd)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        fail(report_fd, strerror(errno));
    report_with(report_fd, "login\n", ends[0]);
    if (dup2(ends[1], WRAP_REPORT_FD) < 0) /* not closed on execution, unlike report_fd */
        fail(report_fd, strerror(errno));
    execvp(command[0], command);
    fail(WRAP_REPORT_FD, errno == ENOENT ? "conda: bash was not found in PATH: install it, or submit without conda"
                                         : "conda: cannot run bash");
}

/* No shepherd, no job. A change of user clears it. */
static void end_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_NOT_RUN); /* it was gone before we asked for that */
}

static void await_request(int report_fd, struct shepherd_request *request)
{
    int none, fd = spawn_await(report_fd, &none);
    struct error err;

    if (fd < 0)
        _exit(EXIT_NOT_RUN);
    if (request_map(fd, request, &err) < 0 || script_place(request, &err) < 0)
        fail(report_fd, err.text);
    if (request->lease)
        _exit(EXIT_NOT_RUN);
    close(fd);
}

static int enter_directory(const char *path, struct error *err)
{
    struct error why;
    CLEANUP(close_fd) int fd = guarded_directory(path, O_PATH, &why);
    int code = fd < 0 ? -fd : fchdir(fd) < 0 ? errno : 0;

    if (code == 0)
        return 0;
    return error_set(err, code, "cannot enter the directory '%s': %s%s", path, fd < 0 ? why.text : strerror(code),
                     fd == -EPERM     ? ""
                     : code == ENOENT ? ": make it, or submit from another"
                                      : ": submit from another");
}

void child_run(const char *shepherd, pid_t parent, const char *cgroup, int report_fd, volatile enum child_stage *stage)
{
    const bool by_root = geteuid() == 0;
    bool by_login;
    struct shepherd_request of_job, *request = &of_job;
    struct strbuf *own;
    char **command;
    size_t own_count;
    struct error err;
    char word;

    setsid();
    if (cgroup)
        cgroup_enter(cgroup);
    inherit_reset();
    signals_reset();
    end_with(parent);
    await_request(report_fd, request);
    if (child_become_user(request, &err) < 0)
        fail(report_fd, err.text);
    if (by_root)
        leave_session_keyring();
    if (request->surroundings)
        surroundings_take(request->surroundings);
    end_with(parent);
    *stage = CHILD_ENTERS_DIRECTORY;
    if (enter_directory(request->directory, &err) < 0)
        fail(report_fd, err.text);
    *stage = CHILD_MAKES_CHECKPOINTS;
    own = variables_of_carma(request, make_checkpoint_directory(request, report_fd), &own_count);
    environ = variables_of_job(request, own, own_count);
    /* all before this can be done, and undone, for a job that is not to run yet */
    if (recv(report_fd, &word, 1, 0) != 1)
        _exit(EXIT_NOT_RUN);
    if (word == *CHILD_GO_UNFILTERED)
        variables_unfiltered(request, own, environ);
    open_outputs(request, report_fd, stage);
    if (request->attach)
        attach(request, report_fd);
    by_login = request->conda_environment && !request->container; /* an image has its own programs */
    *stage = by_login ? CHILD_RUNS_LOGIN_SHELL : CHILD_EXECUTES;
    if (wrap_command(request, shepherd, own, own_count, &command, &err) < 0)
        fail(report_fd, err.text);
    if (by_login)
        execute_by_login(command, report_fd);
    execute(command, report_fd);
}

void child_run_after(const struct shepherd_request *of_job, const char *group, const char *cause, int code)
{
    CLEANUP(free_ptr) char *status = xasprintf("%d", code);
    int nobody = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct shepherd_request after = *of_job;
    enum child_stage ignored;
    struct strbuf *own;
    size_t own_count;
    struct error err;

    setsid();
    if (group)
        cgroup_enter(group);
    inherit_reset();
    signals_reset();
    if (child_become_user(&after, &err) < 0)
        _exit(EXIT_NOT_RUN);
    if (geteuid() != 0)
        leave_session_keyring();
    if (after.surroundings)
        surroundings_take(after.surroundings);
    if (enter_directory(after.directory, &err) < 0)
        _exit(EXIT_NOT_RUN);
    own = variables_of_carma(&after, NULL, &own_count);
    environ = variables_of_job(&after, own, own_count);
    setenv("CUDA_VISIBLE_DEVICES", "", 1); /* its GPUs are others' by now */
    setenv("CARMA_EXIT_CAUSE", cause, 1);
    setenv("CARMA_EXIT_CODE", status, 1);
    after.launch = after.launch > 1 ? after.launch : 2; /* behind the job's own output */
    open_outputs(&after, nobody, &ignored);
    dup2(nobody, 0);
    execl("/bin/sh", "sh", "-c", after.on_end, NULL);
    _exit(EXIT_NOT_RUN);
}

int child_exec_main(int argc, char **argv)
{
    int report_fd, own_count;
    struct error err;

    if (argc < 6)
        return EXIT_NOT_RUN;
    report_fd = atoi(argv[2]);
    own_count = atoi(argv[4]);
    if (fcntl(report_fd, F_SETFD, FD_CLOEXEC) < 0 || own_count < 0 || argc < 6 + own_count)
        return EXIT_NOT_RUN;
    for (int i = 0; i < own_count; i++)
        putenv(argv[5 + i]);
    if (enter_directory(argv[3], &err) < 0)
        fail(report_fd, "conda: the login shell made the job's directory unreachable");
    execute(argv + 5 + own_count, report_fd);
}
