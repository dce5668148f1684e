/* Marks of a capture: the files that decide what it records, each with a digest, as a JSON list of pairs. A capture is
 * used again where all digests are as they were (docs/automatic-capture.md).
 *
 * The daemon never opens these files: their paths are a user's words. A shell in the sandbox prints the digests as that
 * user, so that he can deceive nobody but himself. */
#ifndef CARMA_DAEMON_CAPTURE_DIGESTS_H
#define CARMA_DAEMON_CAPTURE_DIGESTS_H

#include <jansson.h>
#include <stddef.h>

struct job_spec;

/* Words of the command that may be names of files, without digests. A new reference, as all here. */
json_t *digests_of_words(const struct job_spec *spec);

/* The list of the files that a process read, as it says: `files` and `packages` of its line. NULL: no list of a
 * sensible size. */
json_t *digests_of_answer(const json_t *header);

const char *digests_path(const json_t *digests, size_t i);

/* For `sh -c`: prints a line for each path. It is the SHA-256 of the file's first 4 MiB, or of the sorted names of the
 * packages installed in the directory; "-" where there is neither. */
const char *digests_script(void);

/* The same paths with the digests that it printed; NULL: it did not print them all. */
json_t *digests_read(const json_t *digests, const char *output, size_t length);

#endif
