#include "slurm/agent/slurm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "slurm/plugin/http.h"
#include "slurm/plugin/run.h"

enum { MOST_ARGUMENTS = 8, PATIENCE_MS = 15000 };

int slurm_run(const char *program, const char *const arguments[], struct text *output, struct error *err)
{
    char *argv[MOST_ARGUMENTS + 3] = {(char *)"/usr/bin/env", (char *)program};
    for (size_t i = 0; i < MOST_ARGUMENTS && arguments[i] != NULL; i++)
        argv[i + 2] = (char *)arguments[i];
    int code = run_output(argv, http_now_ms() + PATIENCE_MS, output);
    if (code == 0)
        return 0;
    char said[200] = "";
    if (output->bytes != NULL)
        snprintf(said, sizeof(said), "%s", output->bytes);
    said[strcspn(said, "\n")] = '\0';
    if (strstr(said, "Invalid job id") != NULL)
        code = -ENOENT;
    else if (code == -ETIMEDOUT || strstr(said, "ontact") != NULL || strstr(said, "timed out") != NULL)
        code = -EAGAIN;
    return error_set(err, -code, "%s %s %s: %s", program, arguments[0], arguments[1] != NULL ? arguments[1] : "",
                     said[0] != '\0' ? said : strerror(-code));
}

int slurm_show_job(uint32_t job, struct text *line, struct error *err)
{
    char id[16];
    snprintf(id, sizeof(id), "%u", job);
    return slurm_run("scontrol", (const char *[]){"show", "job", "-o", id, NULL}, line, err);
}

int slurm_show_node(const char *node, struct text *line, struct error *err)
{
    return slurm_run("scontrol", (const char *[]){"show", "node", "-o", node, NULL}, line, err);
}
