/* carma simulate --replay: the proof that the simulator decides as the daemon did. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/simulate/simulate.h"
#include "sim/replay.h"
#include "store/store.h"

struct feeding {
    struct replay *replay;
    struct error err;
    int rc; /* of the record that does not apply */
};

static int feed(uint64_t seq, const struct record *record, void *user)
{
    struct feeding *feeding = user;

    feeding->rc = replay_record(feeding->replay, seq, record, &feeding->err);
    return feeding->rc;
}

static int tell(const char *directory, const struct replay *replay)
{
    if (replay_difference(replay)) {
        printf("%s\n", replay_difference(replay));
        return cli_fail("%s: the stored decisions are not those of this core", directory);
    }
    printf("%" PRIu64 " records, %" PRIu64 " decisions: every decision reproduced\n", replay_records(replay),
           replay_decisions(replay));
    return CLI_OK;
}

int simulate_replay(const char *directory)
{
    struct feeding feeding = {.replay = replay_new()};
    struct error err;
    int rc = store_read(directory, feed, &feeding, &err), status;

    if (feeding.rc) {
        status = cli_fail("%s: %s", directory, feeding.err.text);
    } else if (rc) {
        status = cli_fail("%s", err.text);
    } else {
        replay_finish(feeding.replay);
        status = tell(directory, feeding.replay);
    }
    replay_free(feeding.replay);
    return status;
}
