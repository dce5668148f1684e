/* carma release */
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"

const struct argp release_argp = {
    .parser = cli_parse_ids,
    .args_doc = "IDS...",
    .doc = "Let held jobs be started.\vIDS are like 7, 1,3-5 or @ (your last job).",
};

int cmd_release(struct cli *cli, int argc, char **argv)
{
    CLEANUP(id_list_release) struct id_list list = {0};
    int status;

    if (!cli_parse(cli, argc, argv, &list, &status))
        return status;
    return cli_post_each(cli, &list, "release");
}
