/* How this file works: the table of policies, by which settings, --policy and the help know them. To add one: a file of
 * this folder, its declaration in policy.h and its row here. */
#include "core/policy/policy.h"

#include <stddef.h>
#include <string.h>

const struct policy *const policies[] = {
    &policy_carma, &policy_exclusive, &policy_round_robin, &policy_magm, &policy_lug,
    &policy_mug,   &policy_first_fit, &policy_best_fit,    NULL,
};

const struct policy *policy_find(const char *name)
{
    for (size_t i = 0; policies[i]; i++)
        if (strcmp(policies[i]->name, name) == 0)
            return policies[i];
    return NULL;
}
