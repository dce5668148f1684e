#include "cli/job/sbatch.h"

#include <ctype.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "core/record.h"

/* The result of a value: "" means no value, and then the option is left out. The result is the caller's. */
typedef char *translate_value(const char *value, struct spec_strings *ignored);

static void ignore(struct spec_strings *ignored, char *what)
{
    size_t i = 0;

    while (i < ignored->count && strcmp(ignored->items[i], what) != 0)
        i++;
    if (i == ignored->count)
        spec_strings_add(ignored, what);
    free(what);
}

static char *as_it_is(const char *value, struct spec_strings *ignored)
{
    return xstrdup(value);
}

/* 0 and these words are "no limit", carma's default. */
static char *time_limit(const char *value, struct spec_strings *ignored)
{
    bool none = strcmp(value, "0") == 0 || strcasecmp(value, "UNLIMITED") == 0 || strcasecmp(value, "INFINITE") == 0;

    return xstrdup(none ? "" : value);
}

/* "B:USR1@120": carma has no choice of the receiver, all processes that catch it get it. */
static char *signal_before(const char *value, struct spec_strings *ignored)
{
    size_t prefix = strspn(value, "BR");

    return xstrdup(prefix && value[prefix] == ':' ? value + prefix + 1 : value);
}

/* A bare number is MiB there, and 0 all that the machine has. */
static char *host_memory(const char *value, struct spec_strings *ignored)
{
    size_t digits = strspn(value, "0123456789");

    if (strcmp(value, "0") == 0)
        return xstrdup("");
    return xasprintf("%s%s", value, digits && !value[digits] ? "M" : "");
}

/* "2", "a100", "a100:2". */
static unsigned long long count_of(const char *item, struct spec_strings *ignored, bool *wrong)
{
    const char *colon = strrchr(item, ':'), *number = colon ? colon + 1 : item;
    bool counted = isdigit((unsigned char)*number);
    size_t type = !counted ? strlen(item) : colon ? (size_t)(colon - item) : 0;
    char *end = NULL;
    unsigned long long count = counted ? strtoull(number, &end, 10) : 1;

    *wrong |= !*number || (counted && *end) || count > RECORD_MAX_GPUS || memchr(item, ':', type);
    if (type && !*wrong)
        ignore(ignored, xasprintf("the GPU type %.*s", (int)(type < 40 ? type : 40), item));
    return count;
}

/* A list of which the items are added up; `value` itself where it is nonsense, for --gpus to refuse. */
static char *sum_of(const char *value, bool of_gres, struct spec_strings *ignored)
{
    CLEANUP(free_ptr) char *copy = xstrdup(value);
    bool wrong = !*value || value[strlen(value) - 1] == ',', any = false;
    unsigned long long total = 0;
    char *rest = NULL;

    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        bool is_gpu = strncmp(item, "gpu", 3) == 0 && (item[3] == ':' || !item[3]);
        if (of_gres && !is_gpu) {
            if (strcmp(item, "none") != 0)
                ignore(ignored, xasprintf("--gres=%.40s", item));
            continue;
        }
        any = true;
        total += !of_gres ? count_of(item, ignored, &wrong) : item[3] ? count_of(item + 4, ignored, &wrong) : 1;
    }
    return wrong ? xstrdup(*value ? value : "?") : any ? xasprintf("%llu", total) : xstrdup("");
}

static char *gpus(const char *value, struct spec_strings *ignored)
{
    return sum_of(value, false, ignored);
}

static char *gres(const char *value, struct spec_strings *ignored)
{
    return sum_of(value, true, ignored);
}

static const struct option {
    const char *name;           /* of sbatch */
    char letter;                /* of sbatch; 0: none */
    const char *own;            /* of carma submit; NULL: it is so without a word */
    translate_value *translate; /* NULL: it takes no value */
} options[] = {
    {"job-name", 'J', "--job-name", as_it_is},
    {"time", 't', "--time", time_limit},
    {"gpus", 'G', "--gpus", gpus},
    {"gpus-per-node", 0, "--gpus", gpus},
    {"gres", 0, "--gpus", gres},
    {"output", 'o', "--output", as_it_is},
    {"error", 'e', "--error", as_it_is},
    {"signal", 0, "--signal", signal_before},
    {"chdir", 'D', "--chdir", as_it_is},
    {"mem", 0, "--memory", host_memory},
    {"cpus-per-task", 'c', "--cpus", as_it_is},
    {"requeue", 0, "--requeue", NULL},
    {"no-requeue", 0, NULL, NULL},
    {"hold", 'H', "--hold", NULL},
};

/* The option that the word names, and where its value begins in the word; *value is NULL where it has none there. */
static const struct option *find(const char *word, const char **value)
{
    size_t length = strcspn(word, "=");

    *value = word[length] ? word + length + 1 : NULL;
    for (size_t i = 0; i < array_size(options); i++) {
        const struct option *option = &options[i];
        if (word[1] == '-' && strncmp(word + 2, option->name, length - 2) == 0 && !option->name[length - 2])
            return option;
        if (option->letter && word[1] == option->letter) {
            *value = word[2] ? word + 2 : NULL;
            return option;
        }
    }
    return NULL;
}

/* Its name, and whether the next word may be its value is guessed: that does not look like an option. */
static void take_unknown(const char *word, struct spec_strings *ignored)
{
    int length = word[0] != '-' ? (int)strlen(word) : word[1] == '-' ? (int)strcspn(word, "=") : 2;

    ignore(ignored, xasprintf("%.*s", length < 40 ? length : 40, word));
}

static const struct {
    const char *name;
    char letter;
    const char *remedy;
} refused[] = {
    {"array", 'a', "carma has no arrays yet: submit a job for each task, with its number as an argument"},
    {"dependency", 'd', "carma has no dependencies yet: submit it when they have ended (carma wait)"},
};

const char *sbatch_refused(char *const *words, size_t count, const char **remedy)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < array_size(refused); k++) {
            size_t length = strlen(refused[k].name);
            const char *word = words[i];
            if ((strncmp(word, "--", 2) == 0 && strncmp(word + 2, refused[k].name, length) == 0 &&
                 (!word[2 + length] || word[2 + length] == '=')) ||
                (word[0] == '-' && word[1] == refused[k].letter)) {
                *remedy = refused[k].remedy;
                return refused[k].name;
            }
        }
    return NULL;
}

void sbatch_translate(char *const *words, size_t count, struct spec_strings *own, struct spec_strings *written,
                      struct spec_strings *ignored)
{
    for (size_t i = 0; i < count; i++) {
        const char *word = words[i], *value = NULL;
        size_t before = own->count;
        const struct option *option = word[0] == '-' && word[1] ? find(word, &value) : NULL;
        bool has_next = i + 1 < count && words[i + 1][0] != '-';

        if (!option) {
            take_unknown(word, ignored);
            i += word[0] == '-' && !strchr(word, '=') && (word[1] == '-' || !word[2]) && has_next;
            continue;
        }
        if (option->translate && !value && i + 1 < count)
            value = words[++i];
        CLEANUP(free_ptr) char *translated = option->translate && value ? option->translate(value, ignored) : NULL;
        if (option->own && translated && (*translated || !*value)) {
            CLEANUP(free_ptr) char *whole = xasprintf("%s=%s", option->own, translated);
            spec_strings_add(own, whole);
        } else if (option->own && !translated) { /* a switch; or a value is missing, which the option says itself */
            spec_strings_add(own, option->own);
        }
        CLEANUP(free_ptr)
        char *whole = xasprintf("%s%s%s", word, words[i] == word ? "" : " ", words[i] == word ? "" : words[i]);
        if (own->count > before)
            spec_strings_add(written, whole);
    }
}

char *sbatch_path(const char *pattern, const char *job_name)
{
    const struct passwd *user = getpwuid(geteuid());
    struct strbuf path = {0};

    for (const char *at = pattern; *at; at++) {
        if (*at != '%') {
            strbuf_append(&path, at, 1);
            continue;
        }
        switch (*++at) {
        case 'j':
        case 'A':
            strbuf_puts(&path, "%j");
            break;
        case 'x':
            strbuf_puts(&path, job_name);
            break;
        case 'u':
            strbuf_puts(&path, user ? user->pw_name : "unknown");
            break;
        case '%':
            strbuf_puts(&path, "%");
            break;
        default:
            strbuf_puts(&path, "%");
            at--; /* the rest stays as it is */
        }
    }
    return strbuf_steal(&path);
}
