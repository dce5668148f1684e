#include "cli/select.h"

#include <ctype.h>
#include <string.h>

error_t cli_parse_selector(int key, char *arg, struct selectors *selectors)
{
    switch (key) {
    case 'u':
        selectors->user = arg;
        return 0;
    case CLI_ME_KEY:
        selectors->me = true;
        return 0;
    case 's':
        selectors->state = arg;
        return 0;
    case 'J':
        selectors->name = arg;
        return 0;
    case 'A':
        selectors->account = arg;
        return 0;
    case CLI_TAG_KEY:
        selectors->tag = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

bool selectors_any(const struct selectors *selectors)
{
    return selectors_whose(selectors) || selectors->state || selectors->name || selectors->account || selectors->tag;
}

bool selectors_whose(const struct selectors *selectors)
{
    return selectors->user || selectors->me;
}

void query_put(struct strbuf *path, const char *name, const char *text)
{
    if (!text)
        return;
    strbuf_printf(path, "%s%s=", strchr(path->text, '?') ? "&" : "?", name);
    for (; *text; text++)
        strbuf_printf(path, isalnum((unsigned char)*text) || strchr("-._~,", *text) ? "%c" : "%%%02X",
                      (unsigned char)*text);
}

void selectors_put(struct strbuf *path, const struct selectors *selectors)
{
    query_put(path, "user", selectors->user);
    query_put(path, "uid", selectors->me ? "self" : NULL);
    query_put(path, "state", selectors->state);
    query_put(path, "name", selectors->name);
    query_put(path, "account", selectors->account);
    query_put(path, "tag", selectors->tag);
}
