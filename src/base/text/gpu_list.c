#include "base/text/gpu_list.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/units.h"

static bool is_uuid(const char *text)
{
    return strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0;
}

/* Digits alone. */
static bool read_number(const char *text, size_t length, uint32_t *number)
{
    char digits[] = "4294967295";
    int64_t value;

    if (length >= sizeof digits || strspn(text, "0123456789") < length)
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    if (parse_integer(digits, 0, UINT32_MAX - 1, &value, NULL) != 0)
        return false;
    *number = (uint32_t)value;
    return true;
}

int gpu_list_next(char **rest, struct gpu_list_item *item, struct error *err)
{
    const char *text = strsep(rest, ","), *dash;

    *item = (struct gpu_list_item){0};
    if (!text)
        return 0;
    if (is_uuid(text)) {
        item->uuid = text;
        return 1;
    }
    dash = strchr(text, '-');
    if (!read_number(text, dash ? (size_t)(dash - text) : strlen(text), &item->first) ||
        !read_number(dash ? dash + 1 : text, strlen(dash ? dash + 1 : text), &item->last))
        return error_set(err, EINVAL, "'%.60s' is no GPU's number: 0-1,3 are three (carma gpus)", text);
    if (item->last < item->first)
        return error_set(err, EINVAL, "'%.60s' is no range: the smaller number goes first", text);
    return 1;
}
