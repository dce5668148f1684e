#include "base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/script.h"

#define DEFAULT_SEARCH "/bin:/usr/bin" /* execvp's, without PATH */
#define HEAD_BYTES     512             /* more than the kernel reads of a script's first line */

static int refuse(int code, char **why, char *text)
{
    *why = text;
    return code;
}

static char *head_of(const char *path)
{
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char head[HEAD_BYTES + 1];
    ssize_t length = fd < 0 ? -1 : read(fd, head, HEAD_BYTES);

    return length < 0 ? NULL : xstrndup(head, (size_t)length);
}

/* The kernel takes the interpreter's name up to a blank, and a carriage return for a part of it. */
static int check_first_line(const char *directory, const char *search, const char *path, char **why)
{
    CLEANUP(free_ptr) char *text = head_of(path);
    size_t length = text ? strcspn(text, "\n") : 0;

    if (!text || strncmp(text, "#!", 2) != 0)
        return 0;
    if (length && text[length - 1] == '\r')
        return refuse(ENOENT, why,
                      xasprintf("its first line ends in a carriage return: sed -i 's/\\r$//' %.200s", path));
    return program_check_script(directory, search, text, why);
}

static int check_file(const char *directory, const char *search, const char *path, char **why)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return refuse(errno == EACCES ? EACCES : ENOENT, why, xstrdup(strerror(errno)));
    if (S_ISDIR(st.st_mode))
        return refuse(EACCES, why, xstrdup("it is a directory"));
    if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
        return refuse(EACCES, why, xasprintf("it is not executable: chmod +x %.200s", path));
    return check_first_line(directory, search, path, why);
}

static char *join(const char *directory, const char *name)
{
    while (strncmp(name, "./", 2) == 0 && name[2])
        name += 2;
    return *name == '/' ? xstrdup(name) : xasprintf("%s/%s", *directory ? directory : ".", name);
}

/* As execvp(3): directories that may not be searched are passed over, and so are files that are not executable. NULL:
 * there is none; *denied is then about the first of the latter, the caller's. */
static char *find(const char *directory, const char *search, const char *program, char **denied)
{
    CLEANUP(free_ptr) char *places = xstrdup(search ? search : DEFAULT_SEARCH);

    for (char *rest = places, *place; (place = strsep(&rest, ":"));) {
        CLEANUP(free_ptr) char *whole = join(directory, place);
        CLEANUP(free_ptr) char *path = join(whole, program);
        struct stat st;
        if (stat(path, &st) < 0 || S_ISDIR(st.st_mode))
            continue;
        if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0)
            return steal_ptr(&path);
        if (!*denied)
            *denied = xasprintf("%.200s is not executable", path);
    }
    return NULL;
}

/* Of what people type that is no program's name but the shell's. "" where it may well be one. */
static const char *remedy_of(const char *program)
{
    static const char *const shells[] = {".",      "alias", "cd",     "eval",   "export", "for",  "if",
                                         "module", "set",   "source", "ulimit", "unset",  "while"};

    if (strpbrk(program, " \t"))
        return ": it is one word: leave out its quotes, or write sh -c '...'";
    if (*program != '=' && strchr(program, '='))
        return ": set variables before carma submit, or by env NAME=VALUE PROGRAM";
    for (size_t i = 0; i < array_size(shells); i++)
        if (strcmp(program, shells[i]) == 0)
            return ": it is a word of the shell: write bash -lc '...', or submit a script";
    return "";
}

static int search_for(const char *directory, const char *search, const char *program, char **why)
{
    CLEANUP(free_ptr) char *denied = NULL;
    CLEANUP(free_ptr) char *path = find(directory, search, program, &denied);

    if (path)
        return check_first_line(directory, search, path, why);
    return denied ? refuse(EACCES, why, steal_ptr(&denied))
                  : refuse(ENOENT, why, xasprintf("there is no such program in PATH%s", remedy_of(program)));
}

int program_check(const char *directory, const char *search, const char *program, char **why)
{
    CLEANUP(free_ptr) char *path = strchr(program, '/') ? join(directory, program) : NULL;

    *why = NULL;
    return path ? check_file(directory, search, path, why) : search_for(directory, search, program, why);
}

/* "env NAME"; not with options, which have a syntax of their own. The kernel makes one argument of the rest. */
static int check_argument_of_env(const char *directory, const char *search, const char *argument, char **why)
{
    CLEANUP(free_ptr) char *name = xstrndup(argument, strcspn(argument, " \t"));
    CLEANUP(free_ptr) char *inner = NULL;
    int code = *name == '-' || strchr(name, '=') ? 0 : program_check(directory, search, name, &inner);

    if (code == 0 && *name != '-' && argument[strlen(name)])
        return refuse(ENOENT, why,
                      xasprintf("env looks for a program '%.200s': write env -S %.200s", argument, argument));

    return code ? refuse(code, why, xasprintf("its interpreter '%.200s': %s", name, inner)) : 0;
}

int program_check_script(const char *directory, const char *search, const char *text, char **why)
{
    CLEANUP(free_ptr) char *interpreter = NULL;
    CLEANUP(free_ptr) char *argument = NULL;
    struct stat st;

    *why = NULL;
    if (script_interpreter(text, &interpreter, &argument, NULL) < 0)
        return 0;
    if (stat(interpreter, &st) < 0)
        return refuse(ENOENT, why, xasprintf("its interpreter '%.200s': %s", interpreter, strerror(errno)));
    if (S_ISDIR(st.st_mode) || faccessat(AT_FDCWD, interpreter, X_OK, AT_EACCESS) < 0)
        return refuse(EACCES, why, xasprintf("its interpreter '%.200s' is not executable", interpreter));
    return argument && strcmp(file_base_name(interpreter), "env") == 0
               ? check_argument_of_env(directory, search, argument, why)
               : 0;
}

bool program_is_python(const char *directory, const char *search, const char *program)
{
    CLEANUP(free_ptr) char *denied = NULL;
    CLEANUP(free_ptr)
    char *path = strchr(program, '/') ? join(directory, program) : find(directory, search, program, &denied);
    CLEANUP(free_ptr) char *head = path ? head_of(path) : NULL;
    size_t first;

    if (!head || strncmp(head, "#!", 2) != 0)
        return false;
    first = strcspn(head, "\n");
    head[first + (head[first] ? 1 + strcspn(head + first + 1, "\n") : 0)] = '\0';
    return strstr(head, "python") != NULL;
}

int program_fault(const char *program, int failed, char **why)
{
    int code = program_check(".", getenv("PATH"), program, why);

    if (code)
        return code;
    return refuse(failed, why,
                  xstrdup(failed == ENOENT ? "it is there, its loader is not: was it built for another system?"
                                           : strerror(failed)));
}
