/* The side of a sandbox that stays outside: starts it, ends it when a limit is passed, takes its result. */
#ifndef CARMA_SANDBOX_KEEPER_H
#define CARMA_SANDBOX_KEEPER_H

#include "base/strbuf.h"
#include "sandbox/request.h"

enum verdict {
    VERDICT_ENDED = 0,   /* the result is all that the command wrote */
    VERDICT_FAILED = 1,  /* err says why; the result is there where the command failed by its exit status alone */
    VERDICT_MISSING = 2, /* err names the missing part of a sandbox; nothing was run */
};

/* Returns when no process is left inside. */
enum verdict keeper_run(const struct sandbox_request *request, struct strbuf *result, struct error *err);

#endif
