/* Rows of the accounting, summed up in groups. Pure: any thread may. */
#ifndef CARMA_DAEMON_ACCOUNT_ACCOUNT_H
#define CARMA_DAEMON_ACCOUNT_ACCOUNT_H

#include <jansson.h>

#include "store/history.h"

/* Limit on the groups, and on the numbers remembered for quantiles in all of them. */
#define ACCOUNT_MOST_GROUPS 20000
#define ACCOUNT_MOST_BYTES  (64 << 20)

/* Groups that are listed: the ones with the most GPU time. */
#define ACCOUNT_LISTED      1000

enum account_key { ACCOUNT_BY_USER, ACCOUNT_BY_NAME, ACCOUNT_BY_DAY, ACCOUNT_BY_MONTH, ACCOUNT_BY_STATE, ACCOUNT_BY_CLAIM,
                   ACCOUNT_KEY_COUNT };

const char *account_key_name(enum account_key key); /* "user" */
const char *account_list_name(enum account_key key); /* "users": what the list of groups is called */
enum account_key account_key_find(const char *name); /* ACCOUNT_KEY_COUNT: no such */

struct account;

/* Days and months are those of the local time of the machine; where node time is not the wall clock (`scaled`), days of
 * node time, and no months. */
struct account *account_new(enum account_key key, bool scaled);
void account_free(struct account *account);

/* A job belongs to the group in which it ended, with all that it used. -E2BIG: that would be too many groups, or too
 * much to remember. */
/* The text of a row that it looks at, as store_history_filter has it; NULL: none. */
const char *account_key_text(enum account_key key);

int account_add(struct account *account, const struct store_history *row, struct error *err);

/* {"by", LIST: [group], "left_out": groups, "total": group}; docs/formats/http.md. Each group, and the total, with
 * account_numbers' figures and those that only rows hold; groups in the order of time, or the most GPU time first. */
json_t *account_to_json(struct account *account);

/* Members of `json`: the `sums` over `jobs` jobs. */
void account_numbers(json_t *json, int64_t jobs, const struct history_sums *sums);

#endif
