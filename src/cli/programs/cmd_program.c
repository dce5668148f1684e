/* The commands that programs of their own carry out: carma-bench, with commands of its own, and carma-dashboard. */
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"

const struct argp bench_argp = {
    .parser = cli_parse_group,
    .args_doc = "monitor|collocate",
    .doc = "Measure this machine's GPUs as the thesis did: 'carma bench monitor' measures the cost of each source of "
           "metrics, and its values. 'carma bench collocate' measures how jobs that share a GPU slow one another."
           "\v'carma help bench monitor' and 'carma help bench collocate' explain them. Both ask for GPUs on which "
           "nothing else runs.",
};

/* "bench monitor" is carma-bench monitor. */
int cmd_program(struct cli *cli, int argc, char **argv)
{
    CLEANUP(free_ptr) char *program = xasprintf("carma-%.*s", (int)strcspn(argv[0], " "), argv[0]);
    CLEANUP(free_ptr) char *built = xasprintf("../%s/%s", program + strlen("carma-"), program);
    CLEANUP(free_ptr) char *socket = xasprintf("--socket=%s", cli->socket ? cli->socket : "");
    CLEANUP(free_ptr) char **words = xcalloc((size_t)argc + 3, sizeof *words);
    const char *own = strchr(argv[0], ' ');
    size_t count = 0;

    words[count++] = program;
    if (own)
        words[count++] = (char *)(uintptr_t)(own + 1);
    if (cli->socket)
        words[count++] = socket;
    memcpy(words + count, argv + 1, (size_t)argc * sizeof *words);
    return cli_become(program, built, words);
}
