#include "dashboard/access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/memory.h"

#define SECRET_BYTES 32
#define TOKEN_QUERY  "/?token="

static int draw(struct token *token, struct error *err)
{
    unsigned char bytes[SECRET_BYTES];

    *token = (struct token){0};
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return error_set(err, errno, "no random numbers for a token: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token->text + 2 * i, 3, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof bytes);
    return 0;
}

int dashboard_access_init(struct dashboard_access *access, unsigned port, struct error *err)
{
    int rc;

    *access = (struct dashboard_access){.port = port};
    rc = draw(&access->token, err);
    return rc ? rc : draw(&access->cookie, err);
}

/* Another name that resolves to this address is not one of these, and neither is another port's page. */
static bool is_own_host(const struct dashboard_access *access, const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost"};
    char own[32];

    for (size_t i = 0; i < array_size(names); i++) {
        snprintf(own, sizeof own, "%s:%u", names[i], access->port);
        if (strcasecmp(host, own) == 0)
            return true;
    }
    return false;
}

/* Under the referrer policy that the page has, a browser may leave its origin unsaid; then it says whether it is its
 * own. */
static bool is_own_origin(const char *origin, const char *host, const char *site)
{
    static const char scheme[] = "http://";

    if (strcmp(origin, "null") == 0)
        return site && strcmp(site, "same-origin") == 0;
    return strncasecmp(origin, scheme, sizeof scheme - 1) == 0 && strcasecmp(origin + sizeof scheme - 1, host) == 0;
}

/* "a=b; carma-PORT=VALUE; c=d". Cookies are by host, not by port: several dashboards may be open. */
static bool has_cookie(const struct dashboard_access *access, const char *cookies)
{
    char name[32];
    size_t length = (size_t)snprintf(name, sizeof name, "carma-%u=", access->port);

    while (cookies) {
        cookies += strspn(cookies, " ");
        if (strncmp(cookies, name, length) == 0) {
            size_t value = strcspn(cookies + length, ";");
            CLEANUP(free_ptr) char *text = xstrndup(cookies + length, value);

            if (token_matches(&access->cookie, text))
                return true;
        }
        cookies = strchr(cookies, ';');
        cookies += cookies ? 1 : 0;
    }
    return false;
}

static enum dashboard_verdict refuse(unsigned code, const char *text, unsigned *status, const char **why)
{
    *status = code;
    *why = text;
    return DASHBOARD_REFUSED;
}

static enum dashboard_verdict judge_token(struct dashboard_access *access, const struct dashboard_request *request,
                                          unsigned *status, const char **why)
{
    if (has_cookie(access, request->fields[FIELD_COOKIE].value))
        return DASHBOARD_WELCOME;
    if (!token_matches(&access->token, request->target + strlen(TOKEN_QUERY)))
        return refuse(403,
                      "the address has a wrong token: run 'carma dashboard' again and open the address that it prints",
                      status, why);
    if (atomic_exchange(&access->used, true))
        return refuse(403,
                      "the address has been used, and is good only once: run 'carma dashboard' again and open the "
                      "address that it prints",
                      status, why);
    return DASHBOARD_ENTER;
}

enum dashboard_verdict dashboard_access_judge(struct dashboard_access *access, const struct dashboard_request *request,
                                              unsigned *status, const char **why)
{
    const char *host = request->fields[FIELD_HOST].value, *origin = request->fields[FIELD_ORIGIN].value;
    const char *site = request->fields[FIELD_FETCH_SITE].value;
    bool reads = strcmp(request->method, "POST") != 0;

    if (!is_own_host(access, host))
        return refuse(403, "the request is for another host: open the address that 'carma dashboard' prints", status,
                      why);
    if (origin && !is_own_origin(origin, host, site))
        return refuse(403, "the request is of another site's page", status, why);
    /* Wherever the address was followed from, it is the token that counts. */
    if (strcmp(request->method, "GET") == 0 && strncmp(request->target, TOKEN_QUERY, strlen(TOKEN_QUERY)) == 0)
        return judge_token(access, request, status, why);
    if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return refuse(403, "the request is of another site's page", status, why);
    if (!has_cookie(access, request->fields[FIELD_COOKIE].value))
        return refuse(401,
                      "this browser has not been let in: run 'carma dashboard' and open the address that it prints",
                      status, why);
    if (!reads && !origin && !site)
        return refuse(403, "the request changes something and does not say of which page it is (it has no Origin)",
                      status, why);
    return DASHBOARD_GRANTED;
}
