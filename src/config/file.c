/* The configuration file, read with inih. inih numbers no lines for its handler, joins indented lines to the one before
 * and cuts long lines. So the reader below hands it one trimmed line at a time and counts. */
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/old_names.h"
#include "config/config.h"
#include "config/keys.h"

#define MAX_FILE (1 << 20)

struct source {
    struct config *config;
    const char *path;
    const char *next;
    const char *end;
    unsigned line;
    unsigned *set_in;  /* the line of each of config_keys; 0: not set */
    int rc;            /* of the first error; nothing is read after it */
    struct error *err; /* its text */
};

static int fail(struct source *source, const char *text)
{
    source->rc = error_set(source->err, EINVAL, "%s:%u: %s", source->path, source->line, text);
    return 0;
}

/* As fgets for inih: the next line, at most size - 1 bytes, with its newline. */
static char *read_line(char *buffer, int size, void *stream)
{
    struct source *source = stream;
    const char *newline, *stop;

    if (source->rc || source->next == source->end)
        return NULL;
    source->line++;
    newline = memchr(source->next, '\n', (size_t)(source->end - source->next));
    stop = newline ? newline : source->end;
    for (const char *c = source->next; c < stop; c++) {
        if (iscntrl((unsigned char)*c) && *c != '\t' && !(*c == '\r' && c + 1 == stop)) {
            fail(source, "a control character: this is not a text file");
            return NULL;
        }
    }
    while (source->next < stop && isblank((unsigned char)*source->next))
        source->next++;
    if (stop - source->next > size - 2) {
        struct error text;
        error_set(&text, EINVAL, "the line is longer than %d bytes: shorten it", size - 2);
        fail(source, text.text);
        return NULL;
    }
    memcpy(buffer, source->next, (size_t)(stop - source->next));
    strcpy(buffer + (stop - source->next), "\n");
    source->next = newline ? newline + 1 : stop;
    return buffer;
}

/* Of two values one would be lost in silence. */
static int only_once(struct source *source, const char *name)
{
    struct error text;
    size_t key = 0;

    while (strcmp(config_keys[key].name, name) != 0)
        key++;
    if (source->set_in[key]) {
        error_set(&text, EINVAL, "%s is set twice, here and in line %u: keep one", name, source->set_in[key]);
        return fail(source, text.text);
    }
    source->set_in[key] = source->line;
    return 1;
}

static int handle(void *user, const char *section, const char *name, const char *value)
{
    struct source *source = user;
    struct error inner;

    if (*section)
        return fail(source, "there are no [sections]: remove the heading above this line");
    if (config_set(source->config, name, value, &inner))
        return fail(source, inner.text);
    return only_once(source, present_name(name));
}

int config_read_file(struct config *config, const char *path, struct error *err)
{
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;
    CLEANUP(free_ptr) unsigned *set_in = xcalloc(config_key_count, sizeof *set_in);
    struct source source = {.config = config, .path = path, .set_in = set_in, .err = err};
    int rc = file_read(path, MAX_FILE, &text, &length, err);

    if (rc)
        return rc;
    source.next = text;
    source.end = text + length;
    rc = ini_parse_stream(read_line, &source, handle, &source);
    if (rc > 0 && (!source.rc || (unsigned)rc < source.line)) { /* inih goes on after a line that it cannot read */
        source.line = (unsigned)rc;
        fail(&source, "neither `key = value` nor a comment");
    }
    if (source.rc)
        return source.rc;
    return rc ? error_set(err, EIO, "cannot read '%s': inih failed with %d", path, rc) : 0;
}
