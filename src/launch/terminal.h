/* A job to which somebody is attached (carma run, carma shell): who holds its input and its terminal, and what passes
 * between it and the client. The job's bytes do not pass carmad.
 *
 *      client  <--- socket --->  relay  <--- terminal or pipe --->  the job
 *         \                        | what a terminal shows              | what it writes without one
 *          \                       v                                    v
 *           `---- reads --------  the job's output, a file as of any job
 *
 * The output file is the truth: logs, verdicts and progress are read from it as ever, and the client shows the file as
 * it grows, from a descriptor that it is handed. So a client that is slow, stopped or gone keeps nobody waiting and
 * loses nothing, and nothing is kept for it in memory. What a file does not take (it is a device, its disk is full) is
 * sent to the client instead, as far as that takes it.
 *
 * The relay is a process with the rights of the job's user, forked by the shepherd (shepherd/relay.h). It outlives
 * carmad with the job, and ends when the shepherd says that the job's last process has ended. The socket lies beside
 * the job's script. The shepherd makes it, before the job begins; the job's user and root may connect. Of several
 * clients the last one is attached.
 *
 * A frame is one packet (SOCK_SEQPACKET): the byte of its type, and what belongs to it. Each has room at once: a client
 * sends TERMINAL_INPUT only where it has a TERMINAL_NEXT for it, and reads all that comes. */
#ifndef CARMA_LAUNCH_TERMINAL_H
#define CARMA_LAUNCH_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define TERMINAL_MOST 16384 /* bytes that belong to a frame */

enum terminal_frame {
    /* of the client */
    TERMINAL_INPUT = 'i',  /* bytes to read for the job */
    TERMINAL_EOF = 'e',    /* and no more of them; without a terminal */
    TERMINAL_SIZE = 'w',   /* struct terminal_size */
    TERMINAL_SIGNAL = 's', /* a byte, its number: for the processes of the job's own group */
    /* of the relay */
    TERMINAL_HELLO = 'h',       /* struct terminal_hello, with descriptors of the outputs that can be read */
    TERMINAL_NEXT = 'n',        /* a TERMINAL_INPUT may come */
    TERMINAL_TEXT = 't',        /* bytes that the output did not take */
    TERMINAL_INTERRUPTED = 'c', /* the key Ctrl-C reached the job's own program, which reads no keys itself */
    TERMINAL_TAKEN = 'g',       /* another client is attached now */
    TERMINAL_END = 'z',         /* the job has ended, and its output is complete */
};

struct terminal_size {
    uint16_t rows, columns;
};

struct terminal_hello {
    bool pty;          /* it is on a terminal; else it has a pipe */
    bool has_output;   /* the first descriptor; of a terminal, all that it shows */
    bool has_error;    /* the last one: of a pipe's job, where that is another file */
    int64_t output_at; /* where its output begins in the file */
    int64_t error_at;
};

/* As the client says it in the job's field `attach`; false: a pipe. */
bool terminal_parse(const char *attach, struct terminal_size *size);

/* A socket that listens there for that user, whatever the path's length. It is replaced. A negative errno else. */
int terminal_listen(const char *path, uid_t uid, gid_t gid, struct error *err);

/* A connection to it. -ECONNREFUSED, -ENOENT: nobody is there any more. */
int terminal_connect(const char *path, struct error *err);

/* A frame, at once. 0, or a negative errno: -EAGAIN, there is no room for it. */
int terminal_send(int fd, enum terminal_frame type, const void *bytes, size_t length);

#endif
