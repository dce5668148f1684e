#include "cli/doctor/slurm.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

#define PLUGIN             "libcarma_spank.so"
#define PLUGIN_MARK        "carma_spank_for" /* slurm/plugin/callbacks.c; with its NUL */
#define PLUGIN_LIMIT_BYTES ((size_t)64 << 20)
#define MOST_INCLUDES      8 /* one within the other */

char *slurm_config_value(const char *config, const char *name)
{
    size_t length = strlen(name);

    for (const char *line = config; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *at = line + length;
        if (strncmp(line, name, length) != 0)
            continue;
        at += strspn(at, " ");
        if (at[0] == '=' && at[1] == ' ')
            return xstrndup(at + 2, strcspn(at + 2, "\n"));
    }
    return NULL;
}

/* The next line without its comment, NUL-terminated in place; NULL: there is none. */
static char *next_line(char **at)
{
    char *line = *at;

    if (!line || !*line)
        return NULL;
    *at = line + strcspn(line, "\n");
    if (**at)
        *(*at)++ = '\0';
    line[strcspn(line, "#")] = '\0';
    return line;
}

/* Whether the line has KEY=VALUE, in any case, with blanks beside the "=" or without; `value` NULL: any. */
static bool says(const char *line, const char *key, const char *value)
{
    for (const char *at = strcasestr(line, key); at; at = strcasestr(at + 1, key)) {
        const char *end = at + strlen(key);
        end += strspn(end, " \t");
        if ((at > line && !isspace((unsigned char)at[-1])) || *end != '=')
            continue;
        end += 1 + strspn(end + 1, " \t");
        if (!value || (strncasecmp(end, value, strlen(value)) == 0 && strcspn(end, " \t") == strlen(value)))
            return true;
    }
    return false;
}

bool slurm_file_says(const struct doctor *doctor, const char *path, const char *key, const char *value,
                     const char *beside)
{
    CLEANUP(free_ptr) char *text = doctor_read(doctor, path, NULL);
    char *at = text, *line;

    while ((line = next_line(&at)))
        if (says(line, key, value) && (!beside || says(line, beside, NULL)))
            return true;
    return false;
}

/* ---- plugstack.conf ---- */

static char *find_in(const struct doctor *doctor, const char *path, int depth, bool *required);

/* `pattern` may be relative to the folder of the file that includes it. */
static char *find_in_included(const struct doctor *doctor, const char *by, const char *pattern, int depth,
                              bool *required)
{
    size_t folder = strrchr(by, '/') ? (size_t)(strrchr(by, '/') - by) + 1 : 0;
    CLEANUP(free_ptr) char *full = *pattern == '/' ? xstrdup(pattern) : xasprintf("%.*s%s", (int)folder, by, pattern);
    CLEANUP(free_ptr) char *below = doctor_path(doctor, full);
    char *found = NULL;
    glob_t files;

    if (depth >= MOST_INCLUDES || glob(below, 0, NULL, &files))
        return NULL;
    for (size_t i = 0; i < files.gl_pathc && !found; i++)
        found = find_in(doctor, files.gl_pathv[i] + strlen(doctor->root), depth + 1, required);
    globfree(&files);
    return found;
}

static char *find_in(const struct doctor *doctor, const char *path, int depth, bool *required)
{
    CLEANUP(free_ptr) char *text = doctor_read(doctor, path, NULL);
    char *at = text, *line, *found = NULL;

    while (!found && (line = next_line(&at))) {
        char *rest, *verb = strtok_r(line, " \t", &rest), *what = verb ? strtok_r(NULL, " \t", &rest) : NULL;
        const char *name = what && strrchr(what, '/') ? strrchr(what, '/') + 1 : what;
        if (!what)
            continue;
        if (strcmp(verb, "include") == 0)
            found = find_in_included(doctor, path, what, depth, required);
        else if (strcmp(name, PLUGIN) == 0) {
            found = xstrdup(what);
            *required = strcmp(verb, "required") == 0;
        }
    }
    return found;
}

char *slurm_plugstack_find(const struct doctor *doctor, const char *path, bool *required)
{
    return find_in(doctor, path, 0, required);
}

/* ---- The plugin's file ---- */

char *slurm_plugin_place(const struct doctor *doctor, const char *plugin, const char *folders)
{
    CLEANUP(free_ptr) char *list = xstrdup(*plugin == '/' ? "" : folders);
    char *rest, *folder = strtok_r(list, ":", &rest);

    do {
        char *path = *plugin == '/' ? xstrdup(plugin) : xasprintf("%s/%s", folder ? folder : "", plugin);
        CLEANUP(free_ptr) char *whole = doctor_path(doctor, path);
        if (access(whole, F_OK) == 0)
            return path;
        free(path);
    } while (folder && (folder = strtok_r(NULL, ":", &rest)));
    return NULL;
}

/* The file is not loaded: it is not of this program, and may be of another Slurm. */
int slurm_plugin_release(const struct doctor *doctor, const char *path, unsigned release[2], struct error *err)
{
    CLEANUP(free_ptr) char *whole = doctor_path(doctor, path);
    CLEANUP(free_ptr) char *bytes = NULL;
    const char *mark;
    uint32_t version;
    size_t length;
    int rc = file_read(whole, PLUGIN_LIMIT_BYTES, &bytes, &length, err);

    if (rc)
        return rc;
    mark = memmem(bytes, length, PLUGIN_MARK, sizeof PLUGIN_MARK);
    if (!mark || (size_t)(mark - bytes) + sizeof PLUGIN_MARK + sizeof version > length)
        return error_set(err, EINVAL, "%s does not say which Slurm it was built with", path);
    memcpy(&version, mark + sizeof PLUGIN_MARK, sizeof version);
    release[0] = version >> 16;
    release[1] = version >> 8 & 0xff;
    return 0;
}
