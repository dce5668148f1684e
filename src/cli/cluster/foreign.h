/* JSON of another machine, which may be broken or hostile: all that is shown is bounded. */
#ifndef CARMA_CLI_CLUSTER_FOREIGN_H
#define CARMA_CLI_CLUSTER_FOREIGN_H

#include <jansson.h>
#include <stddef.h>

#define FOREIGN_TEXT_LIMIT 500 /* bytes of a string; the rest is cut off */

/* NULL: the text is not one JSON object. Its numbers are cut, so that sums of thousands of them cannot overflow. Times
 * and energies (_ns, _ms, _mj) are cut to 2^61, all others to 2^43. Its strings may hold control characters: they are
 * for term_escape or for JSON that is ASCII. */
json_t *foreign_json(const char *text, size_t length);

/* The last line that says something, printable, at most FOREIGN_TEXT_LIMIT bytes; owned by the caller. NULL: there is
 * none. */
char *foreign_last_line(const char *text);

#endif
