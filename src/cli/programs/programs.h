/* Keys of the options of `carma dashboard`, whose program parses them by dashboard_argp (cli/commands.h). */
#ifndef CARMA_CLI_PROGRAMS_PROGRAMS_H
#define CARMA_CLI_PROGRAMS_PROGRAMS_H

enum { DASHBOARD_KEY_PORT = 0x200, DASHBOARD_KEY_NO_OPEN };

#endif
