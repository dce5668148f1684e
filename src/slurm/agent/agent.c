#include "slurm/agent/agent.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text/printable.h"
#include "slurm/shared/ask.h"

enum { CARMAD_MS = 3000 };

void agent_say(const char *format, ...)
{
    va_list list;
    char text[1024];

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    printable_replace(text); /* it may quote what users wrote */
    fprintf(stderr, "carma-slurm-agent: %s\n", text);
}

int agent_ask(const struct agent *agent, const char *method, const char *path, const json_t *body, json_t **reply,
              struct error *err)
{
    return ask(agent->socket, CARMAD_MS, method, path, body, reply, err);
}
