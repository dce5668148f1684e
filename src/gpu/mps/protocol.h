/* The commands to an MPS control daemon and its answers: pure text, no processes.
 *
 * Commands go to the standard input of nvidia-cuda-mps-control, answers are bare numbers and words
 * (docs.nvidia.com/deploy/mps, "Legacy MPS v2 Interface"). A refused command is answered by text, with the exit status
 * 0 (tests/golden/mps has the answers of four drivers). Version 3 of the protocol is not spoken: a daemon has it only
 * where it was told to, and carma's are not. */
#ifndef CARMA_GPU_MPS_PROTOCOL_H
#define CARMA_GPU_MPS_PROTOCOL_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define MPS_MAX_SERVERS 16
#define MPS_MAX_CLIENTS 512         /* of a domain: 60 contexts a GPU on a GPU server's eight */
#define MPS_MAX_ANSWER  (64 * 1024) /* bytes */

enum mps_server_state {
    MPS_SERVER_INITIALIZING,
    MPS_SERVER_ACTIVE,
    MPS_SERVER_FAULT, /* a client has failed: no client is taken until those that it took with it have gone */
    MPS_SERVER_STATE_COUNT
};

/* How the control program is called: arguments behind its name, and its standard input. */
struct mps_command {
    const char *arguments[3]; /* NULL-terminated constants */
    char input[96];
};

void mps_say_probe(struct mps_command *command); /* answered whatever the daemon has and does */
void mps_say_servers(struct mps_command *command);
void mps_say_status(pid_t server, struct mps_command *command);
void mps_say_start(uid_t uid, struct mps_command *command);
void mps_say_shutdown(pid_t server, struct mps_command *command);
void mps_say_clients(pid_t server, struct mps_command *command);
void mps_say_terminate(pid_t server, pid_t client, struct mps_command *command);
void mps_say_quit(struct mps_command *command);

struct mps_pids {
    uint32_t count;
    pid_t items[MPS_MAX_CLIENTS];
};

/* The answers. Each is taken whole or not at all: -EPROTO with the first thing that is not understood. `text` ends with
 * a NUL. */
int mps_read_probe(const char *text, struct error *err);
int mps_read_servers(const char *text, struct mps_pids *servers, struct error *err);
/* -ENOTSUP: it knows no such command, as drivers before 550: a server is alive where it is listed. */
int mps_read_status(const char *text, pid_t server, enum mps_server_state *state, struct error *err);
int mps_read_clients(const char *text, struct mps_pids *clients, struct error *err);

const char *mps_server_state_name(enum mps_server_state state); /* "INITIALIZING", "ACTIVE", "FAULT"; "?" else */

#endif
