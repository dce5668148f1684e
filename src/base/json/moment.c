#include "base/json/moment.h"

#include <stdio.h>
#include <string.h>

#include "base/nodetime.h"
#include "base/units.h"

const char *moment_text(int64_t shown_ns, char text[static MOMENT_TEXT])
{
    time_t seconds = (time_t)(shown_ns / NS_PER_SEC);
    struct tm utc;

    if (nodetime_scale() != 1 || shown_ns < 0 || !gmtime_r(&seconds, &utc))
        return "null";
    strftime(text, MOMENT_TEXT, "\"%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + strlen(text), MOMENT_TEXT - strlen(text), ".%03dZ\"",
             (int)(shown_ns % NS_PER_SEC / (NS_PER_SEC / 1000)));
    return text;
}

json_t *moment_twin(json_t *object, const char *name_ns)
{
    const json_t *ns = json_object_get(object, name_ns);
    char name[64], text[MOMENT_TEXT];
    const char *said = json_is_integer(ns) ? moment_text(json_integer_value(ns), text) : "null";

    snprintf(name, sizeof name, "%.*s", (int)(strlen(name_ns) - strlen("_ns")), name_ns);
    json_object_set_new(object, name, *said == '"' ? json_stringn(said + 1, strlen(said) - 2) : json_null());
    return object;
}

void moment_set(json_t *object, const char *name_ns, int64_t shown_ns, bool known)
{
    json_object_set_new(object, name_ns, known ? json_integer(shown_ns) : json_null());
    moment_twin(object, name_ns);
}
