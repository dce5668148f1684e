#include "base/share.h"

#include <string.h>

#include "base/old_names.h"

static const char *const names[SHARE_MODE_COUNT] = {"any", "time-slice", "mps", "exclusive", "auto"};
static const char *const domains[MPS_DOMAIN_COUNT] = {"mps", "mps:gpu", "mps:node"};

enum share_mode share_mode_find(const char *name)
{
    enum share_mode mode = SHARE_ANY;

    name = present_name(name);
    while (mode < SHARE_MODE_COUNT && strcmp(names[mode], name) != 0)
        mode++;
    return mode;
}

const char *share_mode_name(enum share_mode mode)
{
    return (unsigned)mode < SHARE_MODE_COUNT ? names[mode] : "unknown";
}

enum share_mode share_name_find(const char *name, uint32_t *domain)
{
    for (uint32_t i = 0; i < MPS_DOMAIN_COUNT; i++)
        if (strcmp(domains[i], name) == 0) {
            *domain = i;
            return SHARE_MPS;
        }
    return share_mode_find(name);
}

const char *share_name(enum share_mode mode, uint32_t domain)
{
    return mode == SHARE_MPS && domain < MPS_DOMAIN_COUNT ? domains[domain] : share_mode_name(mode);
}
