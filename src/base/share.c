#include "base/share.h"

#include <string.h>

static const char *const names[SHARE_MODE_COUNT] = {"any", "streams", "mps", "exclusive"};

enum share_mode share_mode_find(const char *name)
{
    enum share_mode mode = SHARE_ANY;

    while (mode < SHARE_MODE_COUNT && strcmp(names[mode], name) != 0)
        mode++;
    return mode;
}

const char *share_mode_name(enum share_mode mode)
{
    return (unsigned)mode < SHARE_MODE_COUNT ? names[mode] : "unknown";
}
