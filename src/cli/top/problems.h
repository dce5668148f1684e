/* What is wrong on the node, in a line each. Pure. */
#ifndef CARMA_CLI_TOP_PROBLEMS_H
#define CARMA_CLI_TOP_PROBLEMS_H

#include "cli/top/model.h"

struct top_problem {
    bool is_grave;
    char *text; /* owned; has texts from outside */
    size_t order;
};

struct top_problems {
    struct top_problem *items; /* owned: the grave ones first */
    size_t count, capacity;
};

void top_problems_find(const struct top_model *model, struct top_problems *problems);
void top_problems_release(struct top_problems *problems);

#endif
