#include "cli/job/missed.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "cli/show/term.h"

#define TOLD_MOST  3
#define SHOWN_MOST 80 /* bytes of a line */
#define BLANKS     " \t"

/* Whether there is an option behind `marker`, in letters of either case. */
static bool has_option(const char *at, const char *marker)
{
    size_t length = strlen(marker);

    return strncasecmp(at, marker, length) == 0 && strspn(at + length, BLANKS) &&
           at[length + strspn(at + length, BLANKS)] == '-';
}

/* NULL: it is no such line, or one that is taken. Slurm takes no other spelling of its marker either. */
static const char *why_not(const char *line, bool behind_command)
{
    const char *hash = line + strspn(line, BLANKS);
    const char *word = *hash == '#' ? hash + 1 + strspn(hash + 1, BLANKS) : "";
    bool own = has_option(word, "CARMA");

    if (strncmp(line, "#PBS -", 6) == 0 || strncmp(line, "#BSUB -", 7) == 0 || strncmp(line, "#$ -", 4) == 0)
        return "carma reads #CARMA and #SBATCH lines";
    if (!own && !has_option(word, "SBATCH"))
        return NULL;
    if (strncmp(line, "#CARMA", 6) == 0 || strncmp(line, "#SBATCH", 7) == 0)
        return behind_command ? "it stands behind the first command" : NULL;
    return own ? "such a line begins with '#CARMA '" : NULL;
}

void missed_tell(const char *path, const char *text, size_t length)
{
    const char *end = text + length;
    bool behind_command = false;
    CLEANUP(free_ptr) char *name = term_escape(path);
    size_t told = 0, number = 0;

    for (const char *at = text, *stop; at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        CLEANUP(free_ptr) char *line = xstrndup(at, (size_t)(stop - at));
        const char *first = line + strspn(line, BLANKS "\r"), *why = why_not(line, behind_command);
        number++;
        behind_command |= *first && *first != '#';
        if (!why || ++told > TOLD_MOST)
            continue;
        line[strlen(line) < SHOWN_MOST ? strlen(line) : SHOWN_MOST] = '\0';
        CLEANUP(free_ptr) char *safe = term_escape(line);
        fprintf(stderr, "carma: %s:%zu: warning: not taken as options, %s: %s\n", name, number, why, safe);
    }
    if (told > TOLD_MOST)
        fprintf(stderr, "carma: %s: warning: %zu more such lines\n", name, told - TOLD_MOST);
}
