/* How many changes of jobs a user may ask for in a day. */
#include "unit.h"

#include "daemon/daemon.h"
#include "daemon/submit/allowance.h"

#define MANY (ALLOWANCE_A_DAY / 10) /* more than come back while this runs */

TEST(test_a_days_changes_and_no_more)
{
    struct daemon daemon = {0};
    uid_t user = geteuid() + 1000;

    assert_int_equal(allowance_take(&daemon, user, MANY, &trouble), 0);
    assert_int_equal(allowance_take(&daemon, user, ALLOWANCE_A_DAY, &trouble), -EDQUOT);
    assert_int_equal(allowance_take(&daemon, user, ALLOWANCE_A_DAY - MANY, &trouble), 0); /* a refusal costs nothing */
    assert_error(allowance_take(&daemon, user, MANY, &trouble), -EDQUOT,
                 "too many jobs: 250000 a day are recorded of a user; try again in ");
    assert_int_equal(allowance_take(&daemon, user + 1, MANY, &trouble), 0); /* another's */
    assert_int_equal(allowance_take(&daemon, user, MANY, &trouble), -EDQUOT);
    assert_int_equal(allowance_take(&daemon, 0, 2 * ALLOWANCE_A_DAY, &trouble), 0);
    allowances_release(&daemon);
    assert_null(daemon.allowances);
}
