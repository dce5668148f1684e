#include "slurm/step/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static char **words; /* NAME=VALUE each */
static size_t count, capacity;

void request_read(void)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;

    while ((length = getline(&line, &size, stdin)) > 1) {
        line[strcspn(line, "\n")] = '\0';
        array_reserve(words, capacity, count + 1);
        words[count++] = xstrdup(line);
    }
    free(line);
    if (length != 1)
        exit(EXIT_FAILURE);
}

const char *request_text(const char *name, const char *otherwise)
{
    size_t length = strlen(name);

    for (size_t i = count; i-- > 0;)
        if (strncmp(words[i], name, length) == 0 && words[i][length] == '=')
            return words[i] + length + 1;
    return otherwise;
}

int64_t request_number(const char *name, int64_t otherwise)
{
    const char *text = request_text(name, NULL);

    return text ? strtoll(text, NULL, 10) : otherwise;
}

void answer(const char *format, ...)
{
    va_list list;
    char *text;

    va_start(list, format);
    text = xvasprintf(format, list);
    va_end(list);
    for (char *at = text; *at; at++)
        if (*at == '\n')
            *at = ' ';
    puts(text);
    free(text);
}

void answer_send(void)
{
    fflush(stdout);
}
