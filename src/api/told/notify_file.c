#include "api/told/notify_file.h"

#include <errno.h>
#include <string.h>

#include "api/told/notify.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text/nearest.h"

/* Visible ASCII without what ends or escapes a word elsewhere: in a mail's head, in curl's settings. */
static bool is_plain(const char *text)
{
    for (const char *c = text; *c; c++)
        if (*c <= ' ' || *c > '~' || strchr("\"\\<>", *c))
            return false;
    return true;
}

static int take_mail(struct notify_file *file, const char *value, struct error *err)
{
    if (!is_plain(value) || *value == '-')
        return error_set(err, EINVAL, "mail '%.80s' is not an address", value);
    free(file->mail);
    file->mail = xstrdup(value);
    return 0;
}

static int take_webhook(struct notify_file *file, const char *value, struct error *err)
{
    if (!is_plain(value) || (strncmp(value, "https://", 8) != 0 && strncmp(value, "http://", 7) != 0))
        return error_set(err, EINVAL, "webhook '%.80s' is not an address: it begins with https:// or http://", value);
    if (file->webhook_count == NOTIFY_FILE_WEBHOOKS)
        return error_set(err, EINVAL, "webhook '%.80s' is one too many: at most %d", value, NOTIFY_FILE_WEBHOOKS);
    file->webhooks[file->webhook_count++] = xstrdup(value);
    return 0;
}

static int take_events(struct notify_file *file, const char *value, struct error *err)
{
    free(file->events);
    file->events = xstrdup(value);
    return notify_check(value, err);
}

static int take_desktop(struct notify_file *file, const char *value, struct error *err)
{
    file->desktop = strcmp(value, "yes") == 0;
    return file->desktop || strcmp(value, "no") == 0
               ? 0
               : error_set(err, EINVAL, "desktop '%.40s' is neither yes nor no", value);
}

static int take_line(struct notify_file *file, char *line, struct error *err)
{
    static const struct {
        const char *key;
        int (*take)(struct notify_file *file, const char *value, struct error *err);
    } keys[] = {{"mail", take_mail}, {"webhook", take_webhook}, {"events", take_events}, {"desktop", take_desktop}};
    size_t length = strcspn(line, " \t=");
    char *value = line + length + strspn(line + length, " \t");

    if (*value != '=')
        return error_set(err, EINVAL, "'%.40s' is not of the form NAME = VALUE", line);
    value += 1 + strspn(value + 1, " \t");
    line[length] = '\0';
    for (char *end = value + strlen(value); end > value && strchr(" \t\r", end[-1]); end--)
        end[-1] = '\0';
    for (size_t i = 0; i < array_size(keys); i++)
        if (strcmp(keys[i].key, line) == 0)
            return keys[i].take(file, value, err);
    return nearest_refuse(err, "setting", line, "events, mail, webhook or desktop");
}

int notify_file_parse(const char *text, struct notify_file *file, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrdup(text);
    unsigned number = 0;

    *file = (struct notify_file){0};
    for (char *line = copy, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        number++;
        line += strspn(line, " \t\r");
        if (*line && *line != '#' && take_line(file, line, err)) {
            error_prefix(err, "line %u", number);
            return -EINVAL;
        }
    }
    return 0;
}

int notify_file_read(const char *home, struct notify_file *file, bool *there, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/" NOTIFY_FILE, home);
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;
    int rc = file_read(path, NOTIFY_FILE_BYTES, &text, &length, err);

    *file = (struct notify_file){0};
    *there = rc != -ENOENT;
    if (rc)
        return *there ? rc : 0;
    rc = notify_file_parse(text, file, err);
    if (rc)
        error_prefix(err, "%s", path);
    return rc;
}

void notify_file_release(struct notify_file *file)
{
    free(file->events);
    free(file->mail);
    for (size_t i = 0; i < file->webhook_count; i++)
        free(file->webhooks[i]);
    *file = (struct notify_file){0};
}
