#include "gpu/driver_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static void copy(char *into, size_t room, const char *text)
{
    snprintf(into, room, "%s", text);
}

/* Cuts the first word off; the rest follows, "" where there is none. */
static char *next_word(char *text)
{
    char *blank = strchr(text, ' ');

    if (!blank)
        return text + strlen(text);
    *blank = '\0';
    return blank + 1;
}

static void take_gpu(struct driver_facts *facts, char *line)
{
    char *key = next_word(line), *value = next_word(key);
    int64_t index = strtoll(line, NULL, 10);
    struct driver_gpu_facts *gpu;

    if (line[strspn(line, "0123456789")] || !*line || index >= GPU_MAX_DEVICES)
        return;
    gpu = &facts->gpu[index];
    if (strcmp(key, "asked") == 0)
        facts->asked = index;
    else if (strcmp(key, "uuid") == 0)
        copy(gpu->uuid, sizeof gpu->uuid, value);
    else if (strcmp(key, "name") == 0)
        copy(gpu->name, sizeof gpu->name, value);
    else if (strcmp(key, "failed") == 0)
        copy(gpu->failed, sizeof gpu->failed, next_word(value));
    else if (strcmp(key, "persistence") == 0)
        gpu->persistence = strtoll(value, NULL, 10);
    else if (strcmp(key, "compute-mode") == 0)
        gpu->compute_mode = strtoll(value, NULL, 10);
    else if (strcmp(key, "ecc") == 0)
        gpu->ecc = strtoll(value, NULL, 10);
}

static void take(struct driver_facts *facts, char *line)
{
    const struct {
        const char *key;
        char *into;
        size_t room;
    } texts[] = {{"library", facts->library, sizeof facts->library},
                 {"no-library", facts->no_library, sizeof facts->no_library},
                 {"driver", facts->driver, sizeof facts->driver},
                 {"nvml", facts->nvml, sizeof facts->nvml}};
    char *value = next_word(line);

    for (size_t i = 0; i < array_size(texts); i++)
        if (strcmp(line, texts[i].key) == 0)
            copy(texts[i].into, texts[i].room, value);
    if (strcmp(line, "init") == 0) {
        facts->init = strtoll(value, NULL, 10);
        copy(facts->init_text, sizeof facts->init_text, next_word(value));
    } else if (strcmp(line, "gpus") == 0) {
        facts->gpus = strtoll(value, NULL, 10);
    } else if (strcmp(line, "gpu") == 0) {
        take_gpu(facts, value);
    }
}

void driver_facts_read(struct driver_facts *facts, char *text)
{
    memset(facts, 0, sizeof *facts);
    facts->init = facts->gpus = facts->asked = -1;
    for (size_t i = 0; i < GPU_MAX_DEVICES; i++)
        facts->gpu[i].persistence = facts->gpu[i].compute_mode = facts->gpu[i].ecc = -1;
    for (char *line = text, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        take(facts, line);
    }
}
