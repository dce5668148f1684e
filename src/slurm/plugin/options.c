#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slurm/plugin/plugin.h"
#include "slurm/shared/size.h"

enum { MOST_GPUS = 64, MOST_WAIT_S = 60 };

static bool set_path(char *to, size_t size, const char *value)
{
    int length = snprintf(to, size, "%s", value);
    return *value == '/' && length > 0 && (size_t)length < size;
}

const char *settings_read(struct settings *settings, int count, char *const arguments[])
{
    set_path(settings->socket, sizeof(settings->socket), "/run/carma/carma.sock");
    set_path(settings->spool, sizeof(settings->spool), "/var/lib/carma-slurm");
    settings->wait_ms = 8000;
    settings->others_all = false;
    for (int i = 0; i < count; i++) {
        const char *argument = arguments[i], *value = strchr(argument, '=');
        bool known = value != NULL;
        if (known && strncmp(argument, "socket=", 7) == 0) {
            known = set_path(settings->socket, sizeof(settings->socket), value + 1);
        } else if (known && strncmp(argument, "spool=", 6) == 0) {
            known = set_path(settings->spool, sizeof(settings->spool), value + 1);
        } else if (known && strncmp(argument, "scontrol=", 9) == 0) {
            known = value[1] == '/'; /* of carma 0.2, which asked that program */
        } else if (known && strncmp(argument, "others=", 7) == 0) {
            settings->others_all = strcmp(value + 1, "all") == 0;
            known = settings->others_all || strcmp(value + 1, "none") == 0;
        } else if (known && strncmp(argument, "wait=", 5) == 0) {
            char *end;
            long seconds = strtol(value + 1, &end, 10);
            known = end > value + 1 && *end == '\0' && seconds >= 1 && seconds <= MOST_WAIT_S;
            if (known)
                settings->wait_ms = seconds * 1000;
        } else {
            known = false;
        }
        if (!known)
            return argument;
    }
    return NULL;
}

bool options_set(struct options *options, enum option option, const char *value)
{
    options->asked = true;
    char *end;
    switch (option) {
    case OPTION_MEMORY:
        return size_parse(value, false, &options->memory_bytes, NULL) && options->memory_bytes > 0;
    case OPTION_GPUS:
        options->gpus = strtol(value, &end, 10);
        return end > value && *end == '\0' && options->gpus >= 1 && options->gpus <= MOST_GPUS;
    case OPTION_SHARE:
        snprintf(options->share, sizeof(options->share), "%s", value);
        return strcmp(value, "mps") == 0 || strcmp(value, "time-slice") == 0;
    case OPTION_EXCLUSIVE:
        return true;
    case OPTION_ESTIMATE:
        return *value != '\0';
    }
    return false;
}
