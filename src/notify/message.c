#include "notify/message.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "base/text/printable.h"
#include "base/units.h"
#include "core/record.h"

static const char *text(const json_t *job, const char *member)
{
    return json_string_value(json_object_get(job, member));
}

static int64_t number(const json_t *job, const char *member, int64_t otherwise)
{
    const json_t *value = json_object_get(job, member);

    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

/* "12", "7_3". */
static void put_id(struct strbuf *out, const json_t *job)
{
    const json_t *array = json_object_get(job, "array");

    if (json_is_object(array))
        strbuf_printf(out, "%" PRId64 "_%" PRId64, number(array, "id", 0), number(array, "index", 0));
    else
        strbuf_printf(out, "%" PRId64, number(job, "id", 0));
}

static void put_end(struct strbuf *out, const json_t *job)
{
    const char *state = text(job, "state"), *why = text(job, "last_end");
    int64_t started_ns = number(job, "started_ns", -1), ended_ns = number(job, "ended_ns", -1);
    int64_t status = number(job, "exit_status", 0);
    char duration[UNITS_TEXT];

    strbuf_printf(out, "is %s", state ? state : "over");
    if (started_ns >= 0 && ended_ns >= started_ns)
        strbuf_printf(out, " after %s", format_duration(ended_ns - started_ns, duration));
    why = why ? why : text(job, "message");
    if (why)
        strbuf_printf(out, ": %s", why);
    else if (status > 0)
        strbuf_printf(out, ": exit status %" PRId64, status);
}

static void put_event(struct strbuf *out, const json_t *job, enum notify_event event)
{
    int64_t limit_ns = number(job, "time_limit_ns", 0);
    const char *state = text(job, "state"), *why = text(job, "last_end");
    struct notify_words words = {0};
    char left[UNITS_TEXT], limit[UNITS_TEXT];
    bool retried;

    switch (event) {
    case NOTIFY_START:
        strbuf_puts(out, "has started");
        return;
    case NOTIFY_OOM:
        retried = why && !(state && strcmp(state, "GPU_OOM") == 0);
        strbuf_printf(out, "ran out of GPU memory%s%s", retried ? ": " : "", retried ? why : "");
        return;
    case NOTIFY_IDLE:
        limit_ns = number(job, "idle_limit_ns", 0);
        strbuf_printf(out, "does not use its GPUs: it is ended in %s unless it does",
                      format_duration(limit_ns / (number(job, "idle_step", 0) == IDLE_WARNED ? 2 : 10), left));
        return;
    case NOTIFY_TIMEOUT:
        if (text(job, "notify"))
            notify_parse(text(job, "notify"), &words, NULL);
        strbuf_printf(out, "reaches its time limit of %s in %s", format_duration(limit_ns, limit),
                      format_duration(words.before_ns < limit_ns ? words.before_ns : limit_ns, left));
        return;
    default:
        put_end(out, job);
    }
}

json_t *message_new(const json_t *job, enum notify_event event)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};
    const char *name = text(job, "name");
    char host[256] = "";

    gethostname(host, sizeof host - 1);
    printable_replace(host);
    strbuf_puts(&out, "job ");
    put_id(&out, job);
    strbuf_printf(&out, " (%s) on %s ", name ? name : "-", host);
    put_event(&out, job, event);
    printable_replace(out.text); /* it quotes what others wrote; the result is UTF-8 */
    return json_pack("{s:s, s:s, s:s, s:O}", "event", notify_event_names[event], "host", host, "text", out.text, "job",
                     job);
}

const char *message_text(const json_t *message)
{
    return text(message, "text");
}

/* A head is ASCII, and one line. */
static void put_subject(struct strbuf *mail, const char *words)
{
    strbuf_puts(mail, "Subject: carma: ");
    for (const char *c = words; *c; c++) {
        const char shown = *c >= ' ' && *c <= '~' ? *c : '?';
        strbuf_append(mail, &shown, 1);
    }
    strbuf_puts(mail, "\n");
}

char *message_mail(const json_t *message, const char *to)
{
    const json_t *job = json_object_get(message, "job");
    struct strbuf mail = {0};

    strbuf_printf(&mail, "To: %s\n", to);
    put_subject(&mail, message_text(message));
    strbuf_puts(&mail, "Auto-Submitted: auto-generated\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n"
                       "Content-Transfer-Encoding: 8bit\n\n");
    strbuf_printf(&mail, "%s\n\ncarma show %" PRId64 " has more of it.\n", message_text(message), number(job, "id", 0));
    return strbuf_steal(&mail);
}
