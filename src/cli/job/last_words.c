#include "cli/job/last_words.h"

#include <stdbool.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/job/log_file.h"
#include "cli/show/term.h"

#define END_BYTES  4096 /* of the file, which are looked at */
#define LINE_BYTES 300  /* of the line, which are shown: its beginning */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Progress bars write over their line: what stands last counts. */
static char *last_line(char *text, size_t length)
{
    char *start;
    size_t count;

    while (length && is_blank(text[length - 1]))
        length--;
    text[length] = '\0';
    for (start = text + length; start > text && start[-1] != '\n' && start[-1] != '\r'; start--)
        ;
    start += strspn(start, " \t");
    for (count = strlen(start) < LINE_BYTES ? strlen(start) : LINE_BYTES; count && (start[count] & 0xc0) == 0x80;
         count--)
        ; /* not within a character */
    start[count] = '\0';
    return *start ? term_escape(start) : NULL;
}

static char *last_line_of(const json_t *job, bool error, uint64_t id)
{
    CLEANUP(free_ptr) char *path = log_file_path(job, error, id);
    CLEANUP(close_fd) int fd = -1;
    char text[END_BYTES + 1];
    off_t size;
    ssize_t count;

    if (!path || log_file_open(path, log_file_owner(job), &fd, NULL) < 0)
        return NULL;
    size = lseek(fd, 0, SEEK_END);
    count = size > 0 ? pread(fd, text, END_BYTES, size > END_BYTES ? size - END_BYTES : 0) : 0;
    return count > 0 ? last_line(text, (size_t)count) : NULL;
}

char *last_words(const json_t *job, uint64_t id, const char *how)
{
    CLEANUP(free_ptr) char *words = last_line_of(job, true, id);

    if (!words)
        words = last_line_of(job, false, id);
    return words && !strstr(how, words) && (!*how || strncmp(words, how, strlen(how)) != 0) ? steal_ptr(&words) : NULL;
}
