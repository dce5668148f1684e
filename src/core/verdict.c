/* How this file works: rows[] is read from the top, and the first row that fits a run's end and its evidence decides
 * what the end was and what it teaches. It is asked when the end is applied (job.c, crash.c, apply.c) and when it is
 * shown, of living and of replayed records alike. To add a kind of evidence: a bit of enum exit_evidence (record.h),
 * who finds it (launch/shepherd/ending.c, daemon/run/ending.c), and the rows that it changes. */
#include "core/verdict.h"

#include <signal.h>

#include "base/memory.h"
#include "core/record.h"

#define BIT(cause)   (1u << (cause))
#define MEMORY_CRASH (BIT(EXIT_GPU_OOM) | BIT(EXIT_GPU_HANDLE))
#define SAYS         (EVIDENCE_OUTPUT | EVIDENCE_FILE)
#define TOLD         (EVIDENCE_FENCE | EVIDENCE_SERVER)
#define WENT_ON      (EVIDENCE_STEPS | EVIDENCE_ITSELF)
#define THE_SAME     EXIT_CAUSE_COUNT

/* The first row that fits decides: the run ended by one of these causes, with some of `any` (0: with whatever), some of
 * `and` (likewise) and nothing of `none`. */
static const struct row {
    uint32_t ends, any, and, none;
    struct verdict verdict;
} rows[] = {
    /* it survived what it told of, and failed later for another reason */
    {BIT(EXIT_GPU_OOM), EVIDENCE_STEPS, 0, 0, {EXIT_FAILED, TEACHES_NOTHING, false}},
    {MEMORY_CRASH, 0, 0, 0, {THE_SAME, TEACHES_MORE, false}},
    /* a status of 0 is the word of a shell or of tee, unless the GPU's own process said it */
    {BIT(EXIT_COMPLETED), SAYS, WENT_ON, 0, {EXIT_COMPLETED, TEACHES_MORE, true}},
    {BIT(EXIT_COMPLETED), SAYS, EVIDENCE_LIMITED, 0, {EXIT_GPU_OOM, TEACHES_MORE, false}},
    {BIT(EXIT_COMPLETED), SAYS, 0, 0, {EXIT_COMPLETED, TEACHES_MORE, true}}, /* another run would find no more */
    {BIT(EXIT_COMPLETED), TOLD, 0, 0, {EXIT_COMPLETED, TEACHES_MORE, false}},
    {BIT(EXIT_COMPLETED), 0, 0, 0, {EXIT_COMPLETED, TEACHES_THIS, false}},
    {BIT(EXIT_FAILED) | BIT(EXIT_SIGNALLED), EVIDENCE_FILE, 0, EVIDENCE_STEPS, {EXIT_GPU_OOM, TEACHES_MORE, false}},
    /* it said nothing that explains its end. One that was killed may have been killed by anybody */
    {BIT(EXIT_FAILED), TOLD, 0, SAYS | EVIDENCE_OWN, {EXIT_GPU_OOM, TEACHES_MORE, false}},
    {BIT(EXIT_FAILED), EVIDENCE_FULL, 0, SAYS | EVIDENCE_OWN, {EXIT_GPU_OOM, TEACHES_NOTHING, false}},
};

/* By whom it was ended, as far as the table goes: a program aborts by its own will, and a shell tells in its status
 * that its last command was killed. */
static uint32_t end_of(const struct record_exited *exited)
{
    if (exited->cause == EXIT_SIGNALLED && exited->status == 128 + SIGABRT)
        return EXIT_FAILED;
    if (exited->cause == EXIT_FAILED && (exited->status == 128 + SIGKILL || exited->status == 128 + SIGTERM))
        return EXIT_SIGNALLED;
    return exited->cause;
}

struct verdict verdict_of(const struct record_exited *exited)
{
    uint32_t evidence = exited->evidence;
    struct verdict verdict = {THE_SAME, TEACHES_NOTHING, false};

    for (size_t i = 0; i < array_size(rows); i++)
        if (rows[i].ends >> end_of(exited) & 1 && (!rows[i].any || evidence & rows[i].any) &&
            (!rows[i].and || evidence & rows[i].and) && !(evidence & rows[i].none)) {
            verdict = rows[i].verdict;
            break;
        }
    if (verdict.cause == THE_SAME)
        verdict.cause = exited->cause;
    return verdict;
}
