#include "api/told/label.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static int check(const char *what, const char *text, size_t length, struct error *err)
{
    size_t good = 0;

    while (good < length && (isalnum((unsigned char)text[good]) || (good && strchr("._-+:@%", text[good]))))
        good++;
    if (length == 0 || length > LABEL_BYTES || good < length)
        return error_set(
            err, EINVAL,
            "%s '%.*s' is not a name: 1 to %d letters, digits, . _ - + : @ %%, the first a letter or digit", what,
            length < 80 ? (int)length : 80, text, LABEL_BYTES);
    return 0;
}

int label_check(const char *text, struct error *err)
{
    return check("account", text, strlen(text), err);
}

/* The length of the first one, and the next behind it; NULL: it is the last. */
static size_t first_of(const char *labels, const char **next)
{
    size_t length = strcspn(labels, ",");

    *next = labels[length] ? labels + length + 1 : NULL;
    return length;
}

static bool has(const char *labels, const char *label, size_t length)
{
    for (const char *next; labels; labels = next)
        if (first_of(labels, &next) == length && memcmp(labels, label, length) == 0)
            return true;
    return false;
}

int labels_check(const char *text, struct error *err)
{
    const char *next;
    size_t count = 0;

    for (const char *label = text; label; label = next) {
        size_t length = first_of(label, &next);
        if (check("tag", label, length, err))
            return -EINVAL;
        if (next && has(next, label, length))
            return error_set(err, EINVAL, "tag '%.*s' is there twice: say it once", (int)length, label);
        if (++count > LABELS_MOST)
            return error_set(err, EINVAL, "a job has at most %d tags: '%.*s' is one more", LABELS_MOST, (int)length,
                             label);
    }
    return 0;
}

bool labels_have(const char *labels, const char *label)
{
    return has(labels, label, strlen(label));
}
