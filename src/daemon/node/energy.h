/* Shares a GPU's energy out among the parties on it. Pure accounting in integers.
 *
 * No counter tells jobs apart, so a job's energy is modelled. Of the energy of an interval
 *   - the idle part, the GPU's idle power for as long as the interval lasts, is shared by presence. The parties on a
 *     target (the GPU; in MIG mode each of its instances, with its share of the GPU) have equal parts of it, moment by
 *     moment. The part of an empty target is ENERGY_IDLE's
 *   - the rest is shared by SM activity: each party counts by the SMs that it is expected to keep busy beside the
 *     others (core/share/slowdown.h), times its target's share of the GPU, times how long it was there. Where all of
 * these are 0, it is shared by presence
 *
 * For all input, the accounts sum up exactly to the counted energy: no millijoule is lost or counted twice.
 *
 * Unused is measured against the idle power. That is unknown until the GPU was observed without anybody on it (or a
 * store remembers it); until then all is shared by SM activity. */
#ifndef CARMA_DAEMON_NODE_ENERGY_H
#define CARMA_DAEMON_NODE_ENERGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parties that are not jobs. */
#define ENERGY_IDLE      UINT64_C(0)
#define ENERGY_UNMANAGED UINT64_MAX

/* More than any GPU draws, in mW: a counter that rises faster is not trusted for that interval. */
#define ENERGY_MOST_MW INT64_C(10000000)

/* A party on the GPU from now on. */
struct energy_resident {
    uint64_t party;            /* a job's id, or ENERGY_UNMANAGED; at most once per target */
    int32_t target_permille;   /* of the GPU: 1000, or its MIG instance's part of it */
    uint32_t residents;        /* how many are on that target, itself included; >= 1 */
    int32_t activity_permille; /* how much of the target's SMs it is expected to keep busy beside the others */
};

struct energy_account {
    uint64_t party;
    int64_t mj;        /* its use by this model since the account was opened */
    int64_t stored_mj; /* the caller's: how much of it is on the disk; -1: the account is not */
    int64_t told_mj;   /* the caller's: how much of it is told of elsewhere */
    int64_t present;   /* weights within the open interval */
    int64_t active;
};

struct energy_meter {
    int64_t at_ns;                   /* until then all is shared out; 0: nothing was read yet */
    int64_t counter_mj;              /* the driver's, at at_ns; -1: there is none */
    int64_t power_mw;                /* at at_ns; -1: not known */
    int64_t idle_mw;                 /* the lowest power observed with nobody there; -1: none was */
    int64_t counted_mj;              /* all that was shared out: the sum of the accounts */
    int64_t advanced_ns;             /* until then presence has been weighed */
    int64_t rest_nj;                 /* of integrated power, less than a millijoule */
    int64_t idle_rest_nj;            /* of integrated idle power, the same */
    struct energy_account *accounts; /* owned; ENERGY_IDLE is the first */
    size_t count, capacity;
    struct energy_resident *residents; /* owned: since advanced_ns */
    size_t resident_count, resident_capacity;
};

void energy_meter_init(struct energy_meter *meter);
void energy_meter_release(struct energy_meter *meter);

/* As stored, before the first reading: the counter (-1: none) as it was at at_ns, and the accounts that belong to it.
 * The counter's rise since then is shared out with the first reading, among the parties that are set from at_ns on. */
void energy_meter_restore(struct energy_meter *meter, int64_t at_ns, int64_t counter_mj, int64_t idle_mw);
void energy_meter_restore_account(struct energy_meter *meter, uint64_t party, int64_t mj);

/* From at_ns on these, and nobody else, are on the GPU. Copied. */
void energy_meter_set_residents(struct energy_meter *meter, int64_t at_ns, const struct energy_resident *residents,
                                size_t count);

/* A reading: the driver's energy counter, and its power (-1: not to be had). Ends the interval and shares its energy
 * out: the rise of the counter. Where the counter started again (a driver that was loaded anew), its value. Where it
 * rose beyond the most that a GPU draws, or the GPU has none, the power over the interval. A counter may be missing for
 * a while: its next value covers the time in between. Returns the millijoules shared out. */
int64_t energy_meter_read(struct energy_meter *meter, int64_t at_ns, int64_t counter_mj, int64_t power_mw);

/* The party's account, opened where there is none; valid until the next one is opened or closed. */
struct energy_account *energy_meter_account(struct energy_meter *meter, uint64_t party);

/* Forgets the account, and takes it out of counted_mj. Not for a party that is there. */
void energy_meter_close(struct energy_meter *meter, uint64_t party);

bool energy_meter_has(const struct energy_meter *meter, uint64_t party); /* on the GPU now */

#endif
