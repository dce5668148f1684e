/* carma cancel, hold, release: the rows of api/job_verbs.def. Each asks the daemon once for each job (cli_post_each).
 */
#include "cli/cli.h"
#include "cli/commands.h"

#define VERB(name, record, listed, help, why)                                                                          \
    const struct argp name##_argp = {                                                                                  \
        .options = cli_jobs_options,                                                                                   \
        .parser = cli_parse_jobs,                                                                                      \
        .args_doc = "IDS...",                                                                                          \
        .doc = help "\vIDS are like 7, 1,3-5, 7_3 (of array 7) or @ (your last job).",                                 \
    };
#include "api/job_verbs.def"
