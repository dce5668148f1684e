#include "launch/ends.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"

#define LOOK_BYTES 1024 /* of a line: an error does not begin further on */

const char *const ends_words[] = {"file \"",
                                  "traceback (most recent",
                                  "the above exception",
                                  "exception ignored in",
                                  "error in atexit",
                                  "exception in thread",
                                  "--- logging error",
                                  "exception was never",
                                  "panicked at ",
                                  "terminate called after",
                                  "  what():",
                                  "segmentation fault",
                                  "fatal python error",
                                  "sigsegv",
                                  "illegal instruction",
                                  "stack smashing",
                                  "double free or",
                                  "assertion `",
                                  NULL};

static const char *find(struct span in, const char *what)
{
    return memmem(in.text, in.length, what, strlen(what));
}

static bool has_any(struct span in, const char *const *words)
{
    for (; *words; words++)
        if (find(in, *words))
            return true;
    return false;
}

static bool begins(struct span in, const char *with)
{
    return in.length >= strlen(with) && memcmp(in.text, with, strlen(with)) == 0;
}

static struct span behind(struct span in, size_t skip)
{
    return skip < in.length ? (struct span){in.text + skip, in.length - skip} : (struct span){in.text, 0};
}

/* Python's words for a bug, which no want of memory brings about. */
static const char *const plain[] = {
    "KeyError",          "IndexError",         "NameError",           "TypeError",          "AttributeError",
    "AssertionError",    "ImportError",        "ModuleNotFoundError", "FileNotFoundError",  "FileExistsError",
    "IsADirectoryError", "NotADirectoryError", "PermissionError",     "ZeroDivisionError",  "NotImplementedError",
    "UnboundLocalError", "SyntaxError",        "IndentationError",    "UnicodeDecodeError", "UnicodeEncodeError",
    "JSONDecodeError",   "RecursionError",     "OverflowError",       "FloatingPointError", "LookupError",
    "ArithmeticError"};

/* The subject of an error that is a consequence of another one: in another process, another rank, or the GPU's
 * context. */
static const char *const consequences[] = {"NCCL",
                                           "nccl",
                                           "CUDA",
                                           "cuda",
                                           "cuBLAS",
                                           "cuDNN",
                                           "CUBLAS",
                                           "CUDNN",
                                           "cudnn",
                                           "cublas",
                                           "c10",
                                           "GPU",
                                           "emory",
                                           "OOM",
                                           "thrust",
                                           "rmm",
                                           "RESOURCE_EXHAUSTED",
                                           "INTERNAL",
                                           "ChildFailedError",
                                           "CalledProcessError",
                                           "ProcessExited",
                                           "ProcessRaised",
                                           "RayTaskError",
                                           "RayActorError",
                                           "ActorDied",
                                           "WorkerCrashed",
                                           "SystemExit",
                                           "KeyboardInterrupt",
                                           "Broken",
                                           "broken",
                                           "EOFError",
                                           "onnection",
                                           "ocket",
                                           "imeout",
                                           "imed out",
                                           "heartbeat",
                                           "store",
                                           "rank",
                                           "Rank",
                                           "peer",
                                           "orker",
                                           "rocess",
                                           "ngine",
                                           "server",
                                           "xited",
                                           "exit code",
                                           "exitcode",
                                           "non-zero",
                                           "died",
                                           "killed",
                                           "erminated",
                                           "hutdown",
                                           "shut down",
                                           "bort",
                                           "ancelled",
                                           "above",
                                           "initializ",
                                           "ailed to create",
                                           "ailed to load",
                                           "PoisonError",
                                           "RecvError",
                                           "SendError",
                                           "Any {",
                                           "NoneType",
                                           NULL};

/* The exception's name at the beginning: letters, digits, '_' and '.', up to ':' or the end. */
static struct span name_of(struct span line)
{
    size_t at = 0;

    while (at < line.length && at < 128 && (isalnum((unsigned char)line.text[at]) || strchr("_.", line.text[at])))
        at++;
    while (at < line.length && line.text[at] == ' ' && at + 1 == line.length)
        line.length--;
    return (struct span){line.text, at && (at == line.length || line.text[at] == ':') ? at : 0};
}

static bool is_plain(struct span name)
{
    if (name.length < 5 || memcmp(name.text + name.length - 5, "Error", 5) != 0)
        return false; /* most lines */
    for (size_t i = 0; i < array_size(plain); i++) {
        size_t length = strlen(plain[i]);
        if (name.length >= length && memcmp(name.text + name.length - length, plain[i], length) == 0 &&
            (name.length == length || name.text[name.length - length - 1] == '.'))
            return true;
    }
    return false;
}

/* Other lines get in between where processes share an output: a name is an exception's if it looks like one. */
static bool is_exception(struct span name)
{
    static const char *const endings[] = {"Error", "Exception", "Exit",    "Interrupt", "Iteration",
                                          "Died",  "Failure",   "Timeout", "Warning",   "Resources"};

    if (name.length == 0 || isdigit((unsigned char)name.text[0]))
        return false;
    for (size_t i = 0; i < array_size(endings); i++) {
        size_t length = strlen(endings[i]);
        if (name.length >= length && memcmp(name.text + name.length - length, endings[i], length) == 0)
            return true;
    }
    return memchr(name.text, '.', name.length) != NULL;
}

static enum end_weight weigh(struct ends *ends, struct span error)
{
    bool came_of_another = ends->chained || ends->harmless || ends->memory;
    struct span look = {error.text, error.length < LOOK_BYTES ? error.length : LOOK_BYTES};

    ends->chained = ends->harmless = false;
    if (came_of_another)
        return END_NONE;
    if (is_plain(name_of(error)) && !find(look, "'NoneType'"))
        return END_CERTAIN;
    return has_any(look, consequences) ? END_NONE : END_LIKELY;
}

bool ends_is_source(struct ends *ends, struct span line)
{
    bool shown = ends->source && line.length > ends->source_column + 1 && line.text[ends->source_column] == ' ' &&
                 line.text[ends->source_column + 1] == ' ';
    struct span boxed = line;

    ends->source = false;
    while (boxed.length && *boxed.text == ' ')
        boxed = behind(boxed, 1);
    if (!shown && begins(boxed, "│")) { /* "│ ❱ 12 │   source │" */
        boxed = behind(boxed, strlen("│"));
        while (boxed.length && (*boxed.text == ' ' || begins(boxed, "❱")))
            boxed = behind(boxed, *boxed.text == ' ' ? 1 : strlen("❱"));
        shown = boxed.length && isdigit((unsigned char)*boxed.text);
        while (boxed.length && (isdigit((unsigned char)*boxed.text) || *boxed.text == ' '))
            boxed = behind(boxed, 1);
        shown = shown && begins(boxed, "│");
    }
    return shown;
}

/* The start of the lines of a traceback that begins in this line, at `at`. */
static size_t column_of(struct span line, size_t at)
{
    static const char *const frames[] = {"╭", "┌", "+--"};

    for (size_t i = 0; i < array_size(frames); i++) {
        const char *frame = memmem(line.text, at, frames[i], strlen(frames[i]));
        if (frame)
            return (size_t)(frame - line.text);
    }
    return at >= 4 && memcmp(line.text + at - 4, "    ", 4) == 0 ? 0 : at; /* a notebook's: far to the right */
}

static bool is_crash(struct span look)
{
    static const char *const crashes[] = {
        "Segmentation fault",      "Fatal Python error: Segmentation", "SIGSEGV", "Illegal instruction",
        "stack smashing detected", "double free or corruption",        NULL};

    return has_any(look, crashes) || (find(look, "Assertion `") && find(look, "failed"));
}

/* "F0101 12:00:00.000000 ..." or "F tensorflow/...": glog's last word. */
static bool is_fatal_log(struct span line)
{
    return begins(line, "F tensorflow/") || begins(line, "F external/") ||
           (line.length > 6 && line.text[0] == 'F' && isdigit((unsigned char)line.text[1]) &&
            isdigit((unsigned char)line.text[2]) && isdigit((unsigned char)line.text[3]) &&
            isdigit((unsigned char)line.text[4]) && line.text[5] == ' ');
}

/* The meaning of one of ends_words. */
static enum end_weight take_marked(struct ends *ends, struct span line)
{
    static const char *const harmless[] = {"Exception ignored in",          "Error in atexit",
                                           "Exception in thread",           "--- Logging error ---",
                                           "exception was never retrieved", NULL};
    static const char *const chains[] = {"During handling of the above exception",
                                         "above exception was the direct cause", NULL};
    struct span look = {line.text, line.length < LOOK_BYTES ? line.length : LOOK_BYTES};
    const char *at;

    if ((at = find(look, "File \""))) {
        ends->source = true;
        ends->source_column = (size_t)(at - line.text);
    } else if ((at = find(look, "Traceback (most recent call last)"))) {
        ends->in_traceback = true;
        ends->column = column_of(line, (size_t)(at - line.text));
    } else if (has_any(look, chains)) {
        ends->chained = true;
    } else if (has_any(look, harmless)) {
        ends->harmless = true;
    } else if ((at = find(look, "panicked at "))) {
        ends->panic = line.text[line.length - 1] == ':';
        return ends->panic ? END_NONE : weigh(ends, behind(line, (size_t)(at - line.text)));
    } else if ((at = find(look, "terminate called after throwing an instance of ")) || (at = find(look, "  what():"))) {
        return weigh(ends, behind(line, (size_t)(at - line.text) + strlen(*at == 't' ? "terminate called" : "")));
    } else if (is_crash(look)) {
        return weigh(ends, line);
    }
    return END_NONE;
}

enum end_weight ends_take(struct ends *ends, struct span line)
{
    struct span error = behind(line, ends->in_traceback ? ends->column : 0), name = name_of(error);

    if (ends->panic && line.length) {
        ends->panic = false;
        return weigh(ends, line);
    }
    if (ends->in_traceback ? is_exception(name) : is_plain(name)) {
        ends->in_traceback = false;
        return weigh(ends, error);
    }
    if (ends->marked)
        return take_marked(ends, line);
    return is_fatal_log(line) ? weigh(ends, line) : END_NONE;
}
