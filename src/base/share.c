#include "base/share.h"

const char *share_mode_name(enum share_mode mode)
{
    static const char *const names[SHARE_MODE_COUNT] = {"any", "streams", "mps", "exclusive"};

    return (unsigned)mode < SHARE_MODE_COUNT ? names[mode] : "unknown";
}
