/* Rows of the accounting, summed up in groups. Pure: any thread may. */
#ifndef CARMA_DAEMON_ACCOUNT_ACCOUNT_H
#define CARMA_DAEMON_ACCOUNT_ACCOUNT_H

#include <jansson.h>

#include "store/history.h"

/* Limit on the groups, and on the numbers remembered for quantiles in all of them. */
#define GROUPS_MOST_GROUPS 20000
#define GROUPS_MOST_BYTES  (64 << 20)

/* Groups that are listed: the ones with the most GPU time. */
#define GROUPS_LISTED 1000

enum groups_key {
    GROUPS_BY_USER,
    GROUPS_BY_NAME,
    GROUPS_BY_ACCOUNT,
    GROUPS_BY_DAY,
    GROUPS_BY_MONTH,
    GROUPS_BY_STATE,
    GROUPS_BY_SOURCE,
    GROUPS_KEY_COUNT
};

enum groups_key groups_key_find(const char *name); /* GROUPS_KEY_COUNT: no such */

struct groups;

/* Days and months are those of the local time of the machine. Where node time is not the wall clock (`scaled`), there
 * are days of node time, and no months. */
struct groups *groups_new(enum groups_key key, bool scaled);
void groups_free(struct groups *groups);

/* A job belongs to the group in which it ended, with all that it used. -E2BIG: that would be too many groups, or too
 * much to remember. */
/* The text of a row that it looks at, as store_history_filter has it; NULL: none. */
const char *groups_key_text(enum groups_key key);

int groups_add(struct groups *groups, const struct store_history *row, struct error *err);

/* {"by", LIST: [group], "left_out": groups, "total": group}; docs/formats/http.md. Each group, and the total, with
 * groups_numbers' figures and those that only rows hold. Groups come in the order of time, or the most GPU time
 * first. */
json_t *groups_to_json(struct groups *groups);

/* Members of `json`: the `sums` over `jobs` jobs. */
void groups_numbers(json_t *json, int64_t jobs, const struct history_sums *sums);

#endif
