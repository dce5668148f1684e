#include "daemon/request/admin_only.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "daemon/daemon.h"
#include "daemon/view/access.h"
#include "http/http.h"

struct asking {
    struct daemon *daemon;
    struct http_request *request;
    admin_answer *answer;
    const char *refusal;
};

static void on_may(int status, void *user)
{
    struct asking asking = *(struct asking *)user;

    free(user);
    if (status == -ESHUTDOWN)
        http_reply_stopping(asking.request);
    else if (status != 0)
        http_reply_error(asking.request, 403, "%s is for administrators (admin_group)", asking.refusal);
    else
        asking.answer(asking.daemon, asking.request);
}

void admin_only(struct daemon *daemon, struct http_request *request, admin_answer *answer, const char *refusal)
{
    struct asking *asking = xmalloc(sizeof *asking);

    *asking = (struct asking){daemon, request, answer, refusal};
    /* No user has this number, so only administrators may. */
    access_ask(daemon->access, request->uid, (uid_t)-1, on_may, asking);
}
