#include "base/manual/argp_walk.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"

void argp_each_option(const struct argp *argp, void (*visit)(const struct argp_option *option, void *user), void *user)
{
    const struct argp_option *option = argp->options;

    for (; option && (option->name || option->key || option->doc || option->group); option++)
        if (!(option->flags & OPTION_HIDDEN))
            visit(option, user);
    for (const struct argp_child *child = argp->children; child && child->argp; child++)
        argp_each_option(child->argp, visit, user);
}

int argp_has_letter(const struct argp_option *option)
{
    return option->key > 0 && option->key < 0x80 && isgraph(option->key);
}

char *argp_text_after(const struct argp *argp)
{
    const char *text = argp->doc ? strchr(argp->doc, '\v') : NULL;
    char *filtered;

    text = text ? text + 1 : NULL;
    if (!argp->help_filter)
        return text ? xstrdup(text) : NULL;
    filtered = argp->help_filter(ARGP_KEY_HELP_POST_DOC, text, NULL);
    return filtered == text ? (text ? xstrdup(text) : NULL) : filtered;
}
