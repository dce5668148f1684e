#include "cli/job/last_words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text/printable.h"
#include "cli/job/log_file.h"
#include "cli/show/term.h"

#define END_BYTES  4096 /* of the file, which are looked at */
#define LINE_BYTES 300  /* of the line, which are shown: its beginning */
#define OWN_PREFIX "carma: "

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Progress bars write over their line: what stands last counts. */
static char *last_line(char *text, size_t *length)
{
    char *start;
    size_t count;

    while (*length && is_blank(text[*length - 1]))
        --*length;
    text[*length] = '\0';
    for (start = text + *length; start > text && start[-1] != '\n' && start[-1] != '\r'; start--)
        ;
    *length = (size_t)(start - text);
    while (*length && text[*length - 1] == '\r')
        for (; *length && text[*length - 1] != '\n'; --*length)
            ; /* what was written over */
    for (count = strlen(start) < LINE_BYTES ? strlen(start) : LINE_BYTES; count && (start[count] & 0xc0) == 0x80;
         count--)
        ; /* not within a character */
    start[count] = '\0';
    return *start ? term_escape(start) : NULL;
}

/* The end of the file; its length, 0 where there is none. */
static size_t end_of(const json_t *job, bool error, uint64_t id, char text[static END_BYTES + 1])
{
    CLEANUP(free_ptr) char *path = log_file_path(job, error, id);
    CLEANUP(close_fd) int fd = -1;
    off_t size;
    ssize_t count;

    if (!path || log_file_open(path, log_file_owner(job), &fd, NULL) < 0)
        return 0;
    size = lseek(fd, 0, SEEK_END);
    count = size > 0 ? pread(fd, text, END_BYTES, size > END_BYTES ? size - END_BYTES : 0) : 0;
    return count > 0 ? printable_drop_colours(text, (size_t)count) : 0;
}

/* Upwards: each cuts off the text that it was found in. */
size_t last_lines(const json_t *job, uint64_t id, char *lines[static LAST_LINES])
{
    char text[END_BYTES + 1], *line = NULL;
    size_t count = 0;

    for (int error = 1; error >= 0 && !count; error--) {
        size_t length = end_of(job, error, id, text);
        while (count < LAST_LINES && (line = last_line(text, &length)))
            lines[count++] = line;
    }
    for (size_t i = 0; i < count / 2; i++) {
        line = lines[i];
        lines[i] = lines[count - 1 - i];
        lines[count - 1 - i] = line;
    }
    return count;
}

/* carma writes there, too, what it has to say. */
static bool says_already(const char *how, const char *words)
{
    const char *text = strncmp(words, OWN_PREFIX, strlen(OWN_PREFIX)) == 0 ? words + strlen(OWN_PREFIX) : words;

    return strstr(how, text) || (*how && strncmp(text, how, strlen(how)) == 0);
}

char *last_words(const json_t *job, uint64_t id, const char *how)
{
    char *lines[LAST_LINES];
    size_t count = last_lines(job, id, lines);
    CLEANUP(free_ptr) char *words = count ? lines[count - 1] : NULL;

    for (size_t i = 0; i + 1 < count; i++)
        free(lines[i]);
    if (words)
        memmove(words, words + strspn(words, " \t"), strlen(words + strspn(words, " \t")) + 1);
    return words && !says_already(how, words) ? steal_ptr(&words) : NULL;
}
