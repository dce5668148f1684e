#include "api/submission_text.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "api/spec.h"
#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/strbuf.h"

/* Keys of the stored form that are not members of the specification. */
#define ESTIMATE_MEMBER "estimate"
#define OWNER_MEMBER    "owner"

static char *dump(json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);

    json_decref(json);
    return text;
}

/* What JSON escapes, jansson does. */
static void put_string(struct strbuf *text, const char *string)
{
    static const char escaped[] = "\"\\\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24\25\26\27\30\31\32\33\34"
                                  "\35\36\37";
    size_t length = strcspn(string, escaped);
    CLEANUP(free_ptr) char *dumped = string[length] ? dump(json_string(string)) : NULL;

    if (dumped) {
        strbuf_puts(text, dumped);
        return;
    }
    strbuf_append(text, "\"", 1);
    strbuf_append(text, string, length);
    strbuf_append(text, "\"", 1);
}

/* Most of a job are its variables: a tree of them would take a good part of the time in which a job is taken in. */
char *submission_spec_to_text(const struct job_spec *spec)
{
    const struct spec_strings *environment = &spec->environment;
    struct job_spec others = *spec;
    struct strbuf text = {0};
    CLEANUP(free_ptr) char *dumped = NULL;

    others.environment = (struct spec_strings){0};
    dumped = dump(job_spec_said_to_json(&others));
    if (!environment->count)
        return steal_ptr(&dumped);
    strbuf_append(&text, dumped, strlen(dumped) - 1); /* open at its end */
    for (size_t i = 0; i < environment->count; i++) {
        strbuf_puts(&text, i ? "," : ",\"environment\":[");
        put_string(&text, environment->items[i]);
    }
    strbuf_puts(&text, "]}");
    return strbuf_steal(&text);
}

char *submission_join(const char *spec, const struct job_estimate *estimate, const struct owner *owner)
{
    json_t *json = json_pack("{s:o, s:{s:s, s:I}}", ESTIMATE_MEMBER, job_estimate_to_json(estimate), OWNER_MEMBER,
                             "user", owner->user, "gid", (json_int_t)owner->gid);
    CLEANUP(free_ptr) char *more = dump(json);

    return xasprintf("%.*s,%s", (int)strlen(spec) - 1, spec, more + 1); /* the members of two objects */
}

char *submission_to_text(const struct job_spec *spec, const struct job_estimate *estimate, const struct owner *owner)
{
    CLEANUP(free_ptr) char *text = submission_spec_to_text(spec);

    return submission_join(text, estimate, owner);
}

static int owner_from_json(const json_t *json, struct owner *owner, struct error *err)
{
    json_int_t gid = OWNER_UNKNOWN;
    const char *user;

    if (json_unpack((json_t *)json, "{s:s, s:I!}", "user", &user, "gid", &gid) != 0 || gid < OWNER_NO_GID ||
        gid > UINT32_MAX)
        return error_set(err, EINVAL, "its owner is not {\"user\": a text, \"gid\": a number or %d}", OWNER_NO_GID);
    *owner = (struct owner){.user = xstrdup(user), .gid = gid};
    return 0;
}

int submission_from_text(const char *text, struct job_spec *spec, struct job_estimate *estimate, struct owner *owner,
                         struct error *err)
{
    json_t *json, *part;
    int rc = json_read(text, strlen(text), 0, &(struct json_bounds)SPEC_JSON_BOUNDS, &json, err);

    job_spec_init(spec);
    job_estimate_init(estimate);
    *owner = (struct owner){.gid = OWNER_UNKNOWN};
    if (rc)
        return rc;
    part = json_object_get(json, ESTIMATE_MEMBER);
    if (part) { /* a store of the first form has none */
        rc = job_estimate_from_json(part, estimate, err);
        json_object_del(json, ESTIMATE_MEMBER);
    }
    part = json_object_get(json, OWNER_MEMBER);
    if (rc == 0 && part) /* up to the fifth form there is none */
        rc = owner_from_json(part, owner, err);
    json_object_del(json, OWNER_MEMBER);
    if (rc == 0)
        rc = job_spec_from_json(json, spec, err);
    json_decref(json);
    free_ptr(&spec->summary); /* the first form kept them */
    free_ptr(&spec->capture);
    return rc;
}
