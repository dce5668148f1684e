/* The commands to an MPS control daemon and its answers, in both of its languages: pure text, no processes.
 *
 * Version 2, the default: commands on the standard input of nvidia-cuda-mps-control, answers as bare numbers and words
 * (docs.nvidia.com/deploy/mps, "Legacy MPS v2 Interface"). A refused command is answered by text, with the exit status
 * 0 (tests/golden/mps has the answers of four drivers). Version 3, which an administrator opts into: a module and a
 * verb as arguments (the same, "MPS v3 Interface"). That page shows no answers. Lists are taken to be tables with
 * column names in the first line, as version 2's `ps` has them. They are read by these names (docs/mps.md). The program
 * speaks the running daemon's language, so one probe tells which it is. */
#ifndef CARMA_GPU_MPS_PROTOCOL_H
#define CARMA_GPU_MPS_PROTOCOL_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define MPS_MAX_SERVERS 16
#define MPS_MAX_CLIENTS 512         /* of a domain: 60 contexts a GPU on a GPU server's eight */
#define MPS_MAX_ANSWER  (64 * 1024) /* bytes */

enum mps_language { MPS_UNKNOWN, MPS_V2 = 2, MPS_V3 = 3 };

enum mps_server_state {
    MPS_SERVER_INITIALIZING,
    MPS_SERVER_ACTIVE,
    MPS_SERVER_FAULT, /* a client has failed: no client is taken until those that it took with it have gone */
    MPS_SERVER_STATE_COUNT
};

/* How the control program is called: arguments behind its name, and its standard input. */
struct mps_command {
    const char *arguments[8]; /* NULL-terminated; into `text` or constant */
    char text[2][64];
    char input[96];
};

void mps_say_probe(enum mps_language language, struct mps_command *command); /* an answer of that language only */
void mps_say_servers(enum mps_language language, struct mps_command *command);
void mps_say_status(enum mps_language language, pid_t server, struct mps_command *command);
void mps_say_start(enum mps_language language, uid_t uid, struct mps_command *command);
void mps_say_shutdown(enum mps_language language, pid_t server, struct mps_command *command);
void mps_say_clients(enum mps_language language, pid_t server, struct mps_command *command);
void mps_say_terminate(enum mps_language language, pid_t server, pid_t client, struct mps_command *command);
void mps_say_quit(enum mps_language language, struct mps_command *command);

struct mps_pids {
    uint32_t count;
    pid_t items[MPS_MAX_CLIENTS];
};

/* The answers. Each is taken whole or not at all: -EPROTO with the first thing that is not understood. `text` ends with
 * a NUL. */
int mps_read_probe(enum mps_language language, const char *text, struct error *err); /* 0: it is that language */
int mps_read_servers(enum mps_language language, const char *text, struct mps_pids *servers, struct error *err);
/* -ENOTSUP: it knows no such command, as drivers before 550: a server is alive where it is listed. */
int mps_read_status(enum mps_language language, const char *text, pid_t server, enum mps_server_state *state,
                    struct error *err);
/* Version 3 lists the clients of all servers; those of `server` are taken. */
int mps_read_clients(enum mps_language language, const char *text, pid_t server, struct mps_pids *clients,
                     struct error *err);

const char *mps_server_state_name(enum mps_server_state state); /* "INITIALIZING", "ACTIVE", "FAULT"; "?" else */

#endif
