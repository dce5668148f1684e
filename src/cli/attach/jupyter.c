/* How this file works: JupyterLab looks for a free port itself, where the job begins, and says in its output at which
 * address it serves. It writes "..." for a token that it was given, so that its log may be read by others. */
#include "cli/attach/jupyter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/program.h"
#include "base/text/printable.h"
#include "cli/job/log_file.h"
#include "cli/show/answer.h"

#define TOKEN_BYTES 24
#define TOKEN_LEAST 16 /* characters of one that the user has written */
#define TOKEN_MOST  256
#define LOG_BYTES   (1 << 20) /* of its output, at the beginning: the address is among its first lines */

/* ---- Its program ---- */

static bool is_module_of_python(void)
{
    return system("python3 -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec(\"jupyterlab\"))' "
                  ">/dev/null 2>&1") == 0;
}

static bool is_in_path(const char *program)
{
    CLEANUP(free_ptr) char *directory = getcwd(NULL, 0);
    CLEANUP(free_ptr) char *why = NULL;

    return directory && program_check(directory, getenv("PATH"), program, &why) == 0;
}

int jupyter_command(const struct job_spec *options, char **words, size_t count, struct spec_strings *command,
                    struct error *err)
{
    static const char *const programs[] = {"jupyter-lab", "jupyter-notebook"};
    bool elsewhere = options->container || options->conda_environment; /* which has programs of its own */

    if (elsewhere)
        spec_strings_add(command, programs[0]);
    for (size_t i = 0; i < array_size(programs) && command->count == 0; i++)
        if (is_in_path(programs[i]))
            spec_strings_add(command, programs[i]);
    if (command->count == 0 && is_module_of_python()) {
        spec_strings_add(command, "python3");
        spec_strings_add(command, "-m");
        spec_strings_add(command, "jupyterlab");
    }
    if (command->count == 0)
        return error_set(
            err, ENOENT,
            "there is no jupyter-lab in PATH: activate the environment that has it, name one with --conda, "
            "or run pip install jupyterlab");
    spec_strings_add(command, "--no-browser");
    spec_strings_add(command, "--ip=127.0.0.1");
    if (geteuid() == 0)
        spec_strings_add(command, "--allow-root");
    for (size_t i = 0; i < count; i++)
        spec_strings_add(command, words[i]);
    return 0;
}

/* ---- Its token ---- */

static int make_token(const char *directory, const char *path, struct error *err)
{
    unsigned char bytes[TOKEN_BYTES];
    char text[2 * TOKEN_BYTES + 2];
    int rc;

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(err, errno, "cannot make a token: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    strcat(text, "\n");
    rc = file_make_dirs(directory, 0700, err);
    return rc ? rc : file_write_atomic(path, text, strlen(text), 0600, err);
}

static int read_token(const char *path, char **token, struct error *err)
{
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    size_t length;
    int rc;

    if (fd < 0 || fstat(fd, &st) < 0)
        return error_set(err, errno, "cannot read '%s': %s", path, strerror(errno));
    if (st.st_uid != geteuid() || !S_ISREG(st.st_mode) || st.st_mode & 077)
        return error_set(err, EPERM, "'%s' is not a file that you alone can read: remove it, and a new one is made",
                         path);
    rc = file_read_fd(fd, path, TOKEN_MOST, token, &length, err);
    if (rc)
        return rc;
    (*token)[strcspn(*token, "\n")] = '\0';
    length = strlen(*token);
    if (length >= TOKEN_LEAST &&
        strspn(*token, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == length)
        return 0;
    free_ptr(token);
    return error_set(err, EINVAL,
                     "'%s' has no token of at least %d letters and digits: remove it, and a new one is made", path,
                     TOKEN_LEAST);
}

int jupyter_token(char **token, struct error *err)
{
    const char *home = getenv("HOME");
    CLEANUP(free_ptr) char *directory = xasprintf("%s/.config/carma", home ? home : "");
    CLEANUP(free_ptr) char *path = xasprintf("%s/jupyter-token", directory);
    struct stat st;
    int rc;

    if (!home || stat(home, &st) < 0 || st.st_uid != geteuid())
        return error_set(err, EPERM, "the token is kept in your home directory, and HOME '%.200s' is not yours",
                         home ? home : "");
    rc = lstat(path, &st) < 0 && errno == ENOENT ? make_token(directory, path, err) : 0;
    return rc ? rc : read_token(path, token, err);
}

/* ---- Its address ---- */

#define HOST "://127.0.0.1:"

/* Whether a line of JupyterLab's own begins there, behind its "[I ... ServerApp]". It also logs what others' requests
 * to its port say, and whoever got us to tell his own address would be sent the token. */
static bool begins_line(const char *log, const char *at)
{
    const char *line = at;

    while (line > log && line[-1] != '\n')
        line--;
    if (*line == '[')
        line += strcspn(line, "]\n") + 1;
    line += strspn(line, " ");
    if (strncmp(line, "or ", 3) == 0)
        line += 3;
    return line == at;
}

/* The last one: a job that is started again writes to the same file. */
static char *address_in(const char *log)
{
    char *found = NULL;

    for (const char *at = log; (at = strstr(at, HOST)); at += strlen(HOST)) {
        const char *begin = at - log >= 5 && memcmp(at - 5, "https", 5) == 0 ? at - 5 : at - 4;
        size_t length = strcspn(at, "? \t\r\n"), port = strspn(at + strlen(HOST), "0123456789");
        if (begin < log || memcmp(begin, "http", 4) != 0 || port == 0 || strncmp(at + length, "?token=", 7) != 0 ||
            !begins_line(log, begin))
            continue;
        free(found);
        found = xstrndup(begin, (size_t)(at - begin) + length);
        printable_replace(found);
    }
    return found;
}

char *jupyter_address(const json_t *job)
{
    uint64_t id = (uint64_t)answer_integer(job, "id", 0);
    CLEANUP(free_ptr) char *path = log_file_path(job, true, id); /* JupyterLab logs to its standard error */
    CLEANUP(free_ptr) char *log = xmalloc(LOG_BYTES + 1);
    CLEANUP(close_fd) int fd = -1;
    size_t length = 0;
    ssize_t count;

    if (!path || log_file_open(path, log_file_owner(job), &fd, NULL) != 0)
        return NULL;
    while (length < LOG_BYTES && (count = read(fd, log + length, LOG_BYTES - length)) > 0)
        length += (size_t)count;
    log[length] = '\0';
    return address_in(log);
}

unsigned jupyter_port(const char *address)
{
    const char *host = strstr(address, HOST);
    unsigned long port = host ? strtoul(host + strlen(HOST), NULL, 10) : 0;

    return port < 65536 ? (unsigned)port : 0;
}
