#include "daemon/node/energy.h"

#include <string.h>

#include "base/memory.h"
#include "base/units.h"

#define PERMILLE   1000
#define US_PER_SEC 1000000
#define NJ_PER_MJ  1000000 /* mW * us are nJ */

/* Two readings of power say nothing of a longer time between them: the machine may have slept. */
#define MOST_GAP_US (600 * (int64_t)US_PER_SEC)

/* How finely weights are compared: their products must fit 63 bits. */
#define WEIGHT_BITS 22

void energy_meter_init(struct energy_meter *meter)
{
    *meter = (struct energy_meter){.counter_mj = -1, .power_mw = -1, .idle_mw = -1};
    energy_meter_account(meter, ENERGY_IDLE);
}

void energy_meter_release(struct energy_meter *meter)
{
    free(meter->accounts);
    free(meter->residents);
    *meter = (struct energy_meter){0};
}

void energy_meter_restore(struct energy_meter *meter, int64_t at_ns, int64_t counter_mj, int64_t idle_mw)
{
    meter->idle_mw = idle_mw;
    if (counter_mj < 0) /* the energy drawn meanwhile is unknown */
        return;
    meter->at_ns = meter->advanced_ns = at_ns;
    meter->counter_mj = counter_mj;
}

static struct energy_account *find(const struct energy_meter *meter, uint64_t party)
{
    for (size_t i = 0; i < meter->count; i++)
        if (meter->accounts[i].party == party)
            return &meter->accounts[i];
    return NULL;
}

struct energy_account *energy_meter_account(struct energy_meter *meter, uint64_t party)
{
    struct energy_account *account = find(meter, party);

    if (account)
        return account;
    array_reserve(meter->accounts, meter->capacity, meter->count + 1);
    account = &meter->accounts[meter->count++];
    *account = (struct energy_account){.party = party, .stored_mj = -1};
    return account;
}

void energy_meter_restore_account(struct energy_meter *meter, uint64_t party, int64_t mj)
{
    struct energy_account *account = energy_meter_account(meter, party);

    account->mj = account->stored_mj = mj;
    meter->counted_mj += mj;
}

void energy_meter_close(struct energy_meter *meter, uint64_t party)
{
    struct energy_account *account = find(meter, party);

    if (!account || party == ENERGY_IDLE)
        return;
    meter->counted_mj -= account->mj;
    *account = meter->accounts[--meter->count];
}

bool energy_meter_has(const struct energy_meter *meter, uint64_t party)
{
    for (size_t i = 0; i < meter->resident_count; i++)
        if (meter->residents[i].party == party)
            return true;
    return false;
}

/* ---- Presence ---- */

/* Weighs the stretch that ends at at_ns, in which the residents were those that are set. */
static void advance(struct energy_meter *meter, int64_t at_ns)
{
    int64_t us = (at_ns - meter->advanced_ns) / NS_PER_US, nobody = PERMILLE * us;

    if (us <= 0 || meter->at_ns == 0) {
        if (at_ns < meter->advanced_ns ||
            meter->at_ns == 0) /* the clock was set back; or nothing is to be shared yet */
            meter->advanced_ns = at_ns;
        return;
    }
    meter->advanced_ns = at_ns;
    for (size_t i = 0; i < meter->resident_count; i++) {
        const struct energy_resident *resident = &meter->residents[i];
        struct energy_account *account = energy_meter_account(meter, resident->party);
        int64_t present = resident->target_permille * us / resident->residents;
        account->present += present;
        account->active += (int64_t)resident->target_permille * resident->activity_permille / PERMILLE * us;
        nobody -= present;
    }
    /* A millionth of a share that does not divide evenly is not nobody's. */
    meter->accounts[0].present += nobody > (int64_t)meter->resident_count ? nobody : 0;
}

void energy_meter_set_residents(struct energy_meter *meter, int64_t at_ns, const struct energy_resident *residents,
                                size_t count)
{
    advance(meter, at_ns);
    if (count) {
        array_reserve(meter->residents, meter->resident_capacity, count);
        memcpy(meter->residents, residents, count * sizeof *residents);
    }
    meter->resident_count = count;
}

/* ---- Sharing out ---- */

static int64_t weight_of(const struct energy_account *account, bool by_activity)
{
    return by_activity ? account->active : account->present;
}

/* mj * part / whole, rounded down, for every mj: the counter may have risen for months without a daemon. */
static int64_t part_of(int64_t mj, int64_t part, int64_t whole)
{
    return mj / whole * part + mj % whole * part / whole;
}

/* Each gets the difference of two rounded partial sums, so that the parts sum up to the whole. */
static void share_out(struct energy_meter *meter, int64_t mj, bool by_activity)
{
    int64_t whole = 0, passed = 0, given = 0;
    int shift = 0;

    for (size_t i = 0; i < meter->count; i++)
        whole += weight_of(&meter->accounts[i], by_activity);
    if (whole == 0 && by_activity) {
        share_out(meter, mj, false);
        return;
    }
    if (whole == 0) {
        meter->accounts[0].mj += mj;
        return;
    }
    while (whole >> shift >= INT64_C(1) << WEIGHT_BITS)
        shift++;
    for (size_t i = 0; i < meter->count; i++) {
        int64_t part;
        passed += weight_of(&meter->accounts[i], by_activity);
        part = passed == whole ? mj : part_of(mj, passed >> shift, whole >> shift);
        meter->accounts[i].mj += part - given;
        given = part;
    }
}

/* Power over time, in whole millijoules; the fraction is kept for the next interval. */
static int64_t integrate(int64_t power_mw, int64_t us, int64_t *rest_nj)
{
    int64_t nj = power_mw * us + *rest_nj;

    *rest_nj = nj % NJ_PER_MJ;
    return nj / NJ_PER_MJ;
}

static int64_t by_power(struct energy_meter *meter, int64_t us, int64_t power_mw)
{
    int64_t before_mw = meter->power_mw >= 0 ? meter->power_mw : power_mw;
    int64_t known_us = us < MOST_GAP_US ? us : MOST_GAP_US;

    return power_mw < 0 ? 0 : integrate((before_mw + power_mw) / 2, known_us, &meter->rest_nj);
}

static int64_t used(struct energy_meter *meter, int64_t us, int64_t counter_mj, int64_t power_mw)
{
    int64_t risen_mj = counter_mj - meter->counter_mj, power_mj;

    if (counter_mj < 0)
        return by_power(meter, us, power_mw);
    if (meter->counter_mj < 0) /* its first value */
        return 0;
    if (risen_mj < 0) /* it has started again, at 0 */
        risen_mj = counter_mj;
    if (risen_mj / (us / US_PER_SEC + 1) <= ENERGY_MOST_MW)
        return risen_mj;
    power_mj = by_power(meter, us, power_mw);
    return power_mj < risen_mj ? power_mj : risen_mj;
}

/* The lowest power with nobody there all the while, or the lowest since. */
static void learn_idle(struct energy_meter *meter, int64_t power_mw)
{
    for (size_t i = 1; i < meter->count; i++)
        if (meter->accounts[i].present)
            return;
    if (power_mw > 0 && meter->resident_count == 0 && (meter->idle_mw < 0 || power_mw < meter->idle_mw))
        meter->idle_mw = power_mw;
}

int64_t energy_meter_read(struct energy_meter *meter, int64_t at_ns, int64_t counter_mj, int64_t power_mw)
{
    int64_t us = (at_ns - meter->at_ns) / NS_PER_US, mj, idle_mj;

    if (counter_mj < 0 && meter->counter_mj >= 0)
        return 0;
    advance(meter, at_ns);
    if (meter->at_ns == 0 || us < 0)
        us = 0;
    mj = used(meter, us, counter_mj, power_mw);
    idle_mj = meter->idle_mw < 0 ? 0 : integrate(meter->idle_mw, us, &meter->idle_rest_nj);
    if (idle_mj > mj)
        idle_mj = mj;
    share_out(meter, idle_mj, false);
    share_out(meter, mj - idle_mj, true);
    meter->counted_mj += mj;
    learn_idle(meter, power_mw);
    for (size_t i = 0; i < meter->count; i++)
        meter->accounts[i].present = meter->accounts[i].active = 0;
    meter->at_ns = at_ns;
    meter->counter_mj = counter_mj;
    meter->power_mw = power_mw;
    return mj;
}
