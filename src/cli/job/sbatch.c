#include "cli/job/sbatch.h"

#include <ctype.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "base/text/nearest.h"
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

/* However nice: behind all others. Without a value it is so, too. */
static char *niced(const char *value, struct spec_strings *ignored)
{
    return xstrdup(!*value || atoll(value) > 0 ? "-1" : "");
}

/* The types that mean something here; to whom: ~/.config/carma/notify. */
static char *mail_type(const char *value, struct spec_strings *ignored)
{
    static const struct {
        const char *type, *own;
    } types[] = {{"NONE", ""},     {"BEGIN", "start"},     {"END", "end"},
                 {"FAIL", "fail"}, {"TIME_LIMIT", "fail"}, {"ALL", "start,end,fail"}};
    CLEANUP(free_ptr) char *copy = xstrdup(value);
    struct strbuf own = {0};
    char *rest = NULL;

    strbuf_puts(&own, "");
    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        size_t i = 0;
        while (i < array_size(types) && strcasecmp(types[i].type, word) != 0)
            i++;
        if (i == array_size(types))
            ignore(ignored, xasprintf("--mail-type=%.40s", word));
        else if (*types[i].own)
            strbuf_printf(&own, "%s%s", own.length ? "," : "", types[i].own);
    }
    return strbuf_steal(&own);
}

/* "2", "a100", "a100:2": the count, and how much of it is the type. */
static unsigned long long count_of(const char *item, size_t *type, bool *wrong)
{
    const char *colon = strrchr(item, ':'), *number = colon ? colon + 1 : item;
    bool counted = isdigit((unsigned char)*number);
    char *end = NULL;
    unsigned long long count = counted ? strtoull(number, &end, 10) : 1;

    *type = !counted ? strlen(item) : colon ? (size_t)(colon - item) : 0;
    *wrong |= !*number || (counted && *end) || count > RECORD_MAX_GPUS || memchr(item, ':', *type);
    return count;
}

/* Any of these types is meant: which of the GPUs is which is not for a job of one program. */
static void add_type(const char *item, size_t length, struct strbuf *types)
{
    CLEANUP(free_ptr) char *type = xstrndup(item, length);

    if (length && !(types->length && strstr(types->text, type)))
        strbuf_printf(types, "%s%s", types->length ? "|" : "", type);
}

/* A list of which the items are added up; `value` itself where it is nonsense, for --gpus to refuse. */
static char *sum_of(const char *value, bool of_gres, struct strbuf *types, struct spec_strings *ignored)
{
    CLEANUP(free_ptr) char *copy = xstrdup(value);
    bool wrong = !*value || value[strlen(value) - 1] == ',', any = false;
    unsigned long long total = 0;
    char *rest = NULL;

    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        bool is_gpu = strncmp(item, "gpu", 3) == 0 && (item[3] == ':' || !item[3]);
        size_t type = 0;
        if (of_gres && !is_gpu) {
            if (strcmp(item, "none") != 0)
                ignore(ignored, xasprintf("--gres=%.40s", item));
            continue;
        }
        any = true;
        if (of_gres)
            item += item[3] ? 4 : 3;
        total += of_gres && !*item && item[-1] != ':' ? 1 : count_of(item, &type, &wrong);
        add_type(item, type, types);
    }
    return wrong ? xstrdup(*value ? value : "?") : any ? xasprintf("%llu", total) : xstrdup("");
}

static char *gpus(const char *value, struct spec_strings *ignored)
{
    CLEANUP(strbuf_release) struct strbuf types = {0};

    return sum_of(value, false, &types, ignored);
}

static char *gres(const char *value, struct spec_strings *ignored)
{
    CLEANUP(strbuf_release) struct strbuf types = {0};

    return sum_of(value, true, &types, ignored);
}

/* Of both of them: what else they say. */
static char *gpu_types(const char *value, bool of_gres)
{
    struct spec_strings ignored = {0}; /* said before */
    struct strbuf types = {0};

    free(sum_of(value, of_gres, &types, &ignored));
    spec_strings_release(&ignored);
    return strbuf_steal(&types);
}

enum takes { NOTHING, VALUE, MAYBE /* behind its '=' alone */ };
enum fate { TAKEN, QUIET /* without an effect, and nobody misses one */, IGNORED, REFUSED };

/* Every option of sbatch (22.05, and later ones). Those that say which jobs there are, or when they start, are refused:
 * the script would run otherwise than it says. */
static const struct option {
    const char *name;
    char letter; /* 0: none */
    enum takes takes;
    enum fate fate;
    const char *own;            /* TAKEN: of carma submit; REFUSED: what to do */
    translate_value *translate; /* TAKEN, with a value */
    const char *usual;          /* IGNORED, REFUSED: the value that is so without a word; NULL: none */
} options[] = {
    {"account", 'A', VALUE, TAKEN, "--account", as_it_is},
    {"acctg-freq", 0, VALUE, IGNORED},
    {"array", 'a', VALUE, TAKEN, "--array", as_it_is},
    {"batch", 0, VALUE, IGNORED},
    {"bb", 0, VALUE, IGNORED},
    {"bbf", 0, VALUE, IGNORED},
    {"begin", 'b', VALUE, TAKEN, "--begin", as_it_is},
    {"chdir", 'D', VALUE, TAKEN, "--chdir", as_it_is},
    {"cluster-constraint", 0, VALUE, IGNORED},
    {"clusters", 'M', VALUE, IGNORED},
    {"comment", 0, VALUE, IGNORED},
    {"constraint", 'C', VALUE, IGNORED},
    {"container", 0, VALUE, IGNORED},
    {"container-id", 0, VALUE, IGNORED},
    {"contiguous", 0, NOTHING, IGNORED},
    {"core-spec", 'S', VALUE, IGNORED},
    {"cores-per-socket", 0, VALUE, IGNORED},
    {"cpu-freq", 0, VALUE, IGNORED},
    {"cpus-per-gpu", 0, VALUE, IGNORED},
    {"cpus-per-task", 'c', VALUE, TAKEN, "--cpus", as_it_is},
    {"deadline", 0, VALUE, TAKEN, "--deadline", as_it_is},
    {"delay-boot", 0, VALUE, IGNORED},
    {"dependency", 'd', VALUE, TAKEN, "--dependency", as_it_is},
    {"distribution", 'm', VALUE, IGNORED},
    {"error", 'e', VALUE, TAKEN, "--error", as_it_is},
    {"exclude", 'x', VALUE, IGNORED},
    {"exclusive", 0, MAYBE, TAKEN, "--exclusive", NULL},
    {"export", 0, VALUE, IGNORED, .usual = "ALL"},
    {"export-file", 0, VALUE, IGNORED},
    {"extra", 0, VALUE, IGNORED},
    {"extra-node-info", 'B', VALUE, IGNORED},
    {"get-user-env", 0, MAYBE, IGNORED},
    {"gid", 0, VALUE, IGNORED},
    {"gpu-bind", 0, VALUE, IGNORED},
    {"gpu-freq", 0, VALUE, IGNORED},
    {"gpus", 'G', VALUE, TAKEN, "--gpus", gpus},
    {"gpus-per-node", 0, VALUE, TAKEN, "--gpus", gpus},
    {"gpus-per-socket", 0, VALUE, IGNORED},
    {"gpus-per-task", 0, VALUE, IGNORED, .usual = "1"},
    {"gres", 0, VALUE, TAKEN, "--gpus", gres},
    {"gres-flags", 0, VALUE, IGNORED},
    {"help", 'h', NOTHING, IGNORED},
    {"hint", 0, VALUE, IGNORED},
    {"hold", 'H', NOTHING, TAKEN, "--hold", NULL},
    {"ignore-pbs", 0, NOTHING, QUIET},
    {"input", 'i', VALUE, IGNORED, .usual = "/dev/null"},
    {"job-name", 'J', VALUE, TAKEN, "--job-name", as_it_is},
    {"kill-on-invalid-dep", 0, VALUE, QUIET},
    {"licenses", 'L', VALUE, IGNORED},
    {"mail-type", 0, VALUE, TAKEN, "--notify", mail_type},
    {"mail-user", 0, VALUE, IGNORED},
    {"mcs-label", 0, VALUE, IGNORED},
    {"mem", 0, VALUE, TAKEN, "--memory", host_memory},
    {"mem-bind", 0, VALUE, IGNORED},
    {"mem-per-cpu", 0, VALUE, IGNORED},
    {"mem-per-gpu", 0, VALUE, IGNORED},
    {"mincpus", 0, VALUE, IGNORED},
    {"network", 0, VALUE, IGNORED},
    {"nice", 0, MAYBE, TAKEN, "--priority", niced},
    {"no-kill", 'k', MAYBE, QUIET},
    {"no-requeue", 0, NOTHING, QUIET},
    {"nodefile", 'F', VALUE, IGNORED},
    {"nodelist", 'w', VALUE, IGNORED},
    {"nodes", 'N', VALUE, IGNORED, .usual = "1"},
    {"ntasks", 'n', VALUE, IGNORED, .usual = "1"},
    {"ntasks-per-core", 0, VALUE, IGNORED, .usual = "1"},
    {"ntasks-per-gpu", 0, VALUE, IGNORED, .usual = "1"},
    {"ntasks-per-node", 0, VALUE, IGNORED, .usual = "1"},
    {"ntasks-per-socket", 0, VALUE, IGNORED, .usual = "1"},
    {"oom-kill-step", 0, MAYBE, IGNORED},
    {"open-mode", 0, VALUE, IGNORED, .usual = "truncate"},
    {"output", 'o', VALUE, TAKEN, "--output", as_it_is},
    {"overcommit", 'O', NOTHING, IGNORED},
    {"oversubscribe", 's', NOTHING, QUIET},
    {"parsable", 0, NOTHING, IGNORED},
    {"partition", 'p', VALUE, IGNORED},
    {"power", 0, VALUE, IGNORED},
    {"prefer", 0, VALUE, IGNORED},
    {"priority", 0, VALUE, IGNORED},
    {"profile", 0, VALUE, IGNORED, .usual = "none"},
    {"propagate", 0, MAYBE, IGNORED, .usual = "ALL"},
    {"qos", 'q', VALUE, IGNORED},
    {"quiet", 'Q', NOTHING, QUIET},
    {"reboot", 0, NOTHING, IGNORED},
    {"requeue", 0, NOTHING, TAKEN, "--requeue", NULL},
    {"reservation", 0, VALUE, IGNORED},
    {"resv-ports", 0, MAYBE, IGNORED},
    {"segment", 0, VALUE, IGNORED},
    {"signal", 0, VALUE, TAKEN, "--signal", signal_before},
    {"sockets-per-node", 0, VALUE, IGNORED},
    {"spread-job", 0, NOTHING, IGNORED},
    {"switches", 0, VALUE, IGNORED},
    {"test-only", 0, NOTHING, REFUSED, "carma would run it: carma estimate and carma explain tell beforehand"},
    {"thread-spec", 0, VALUE, IGNORED},
    {"threads-per-core", 0, VALUE, IGNORED},
    {"time", 't', VALUE, TAKEN, "--time", time_limit},
    {"time-min", 0, VALUE, IGNORED},
    {"tmp", 0, VALUE, IGNORED},
    {"tres-bind", 0, VALUE, IGNORED},
    {"tres-per-task", 0, VALUE, IGNORED},
    {"uid", 0, VALUE, IGNORED},
    {"usage", 0, NOTHING, IGNORED},
    {"use-min-nodes", 0, NOTHING, QUIET},
    {"verbose", 'v', NOTHING, QUIET},
    {"version", 'V', NOTHING, IGNORED},
    {"wait", 'W', NOTHING, IGNORED},
    {"wait-all-nodes", 0, VALUE, IGNORED},
    {"wckey", 0, VALUE, IGNORED},
    {"wrap", 0, VALUE, IGNORED},
};

/* As getopt_long(3): the beginning of one name stands for it. */
static const struct option *by_name(const char *name, size_t length)
{
    const struct option *found = NULL;
    size_t matches = 0;

    for (size_t i = 0; i < array_size(options); i++) {
        if (strncmp(name, options[i].name, length) != 0)
            continue;
        if (!options[i].name[length])
            return &options[i];
        found = &options[i];
        matches++;
    }
    return matches == 1 ? found : NULL;
}

static const struct option *by_letter(char letter)
{
    for (size_t i = 0; i < array_size(options); i++)
        if (options[i].letter == letter)
            return &options[i];
    return NULL;
}

/* The words of one line, option by option. */
struct reader {
    char *const *words;
    size_t count, at, letter; /* the next word; the next letter in it, where several share it */
};

struct said {
    const struct option *option;     /* NULL: sbatch has none such */
    const char *word, *value, *next; /* its own word; its value, NULL: none; the second word, where that is the value */
};

static bool is_next(struct reader *reader, struct said *said)
{
    const char *word, *rest = "";
    bool takes;

    if (reader->at >= reader->count)
        return false;
    word = reader->words[reader->at];
    *said = (struct said){.word = word};
    if (strncmp(word, "--", 2) == 0 && word[2]) {
        size_t length = strcspn(word + 2, "=");
        said->option = by_name(word + 2, length);
        said->value = word[2 + length] ? word + 3 + length : NULL;
    } else if (word[0] == '-' && word[1]) {
        size_t letter = reader->letter ? reader->letter : 1;
        said->option = by_letter(word[letter]);
        rest = word + letter + 1;
        if (said->option && said->option->takes != VALUE && *rest) {
            reader->letter = letter + 1;
            return true;
        }
        said->value = *rest ? rest : NULL;
    }
    reader->letter = 0;
    reader->at++;
    /* what stands behind an unknown one is its value if it does not look like an option */
    takes = said->option ? said->option->takes == VALUE
                         : word[0] == '-' && reader->at < reader->count && reader->words[reader->at][0] != '-';
    if (takes && !said->value && reader->at < reader->count)
        said->value = said->next = reader->words[reader->at++];
    return true;
}

static bool is_usual(const struct said *said)
{
    return said->option->usual && said->value && strcasecmp(said->option->usual, said->value) == 0;
}

/* Its name; of one that sbatch has not, with the one that was meant. */
static void ignore_said(const struct said *said, struct spec_strings *ignored)
{
    const char *word = said->word;
    int length = word[0] != '-' ? (int)strlen(word) : word[1] == '-' ? (int)strcspn(word, "=") : 2;
    CLEANUP(free_ptr) char *name = xasprintf("%.*s", length < 40 ? length : 40, word);
    CLEANUP(free_ptr) char *question = NULL;
    struct nearest nearest;

    nearest_begin(&nearest, strncmp(name, "--", 2) == 0 ? name + 2 : "");
    for (size_t i = 0; !said->option && i < array_size(options); i++)
        nearest_try(&nearest, options[i].name);
    question = nearest_question(&nearest, "--");
    ignore(ignored, said->option || *word != '-' ? xstrdup(name) : xasprintf("%s (unknown%s)", name, question));
}

const char *sbatch_refused(char *const *words, size_t count, const char **remedy)
{
    struct reader reader = {.words = words, .count = count};
    struct said said;

    while (is_next(&reader, &said)) {
        if (strcmp(said.word, "hetjob") == 0 || strcmp(said.word, "packjob") == 0) {
            *remedy = "carma has no heterogeneous jobs: submit a script for each part";
            return said.word;
        }
        if (said.option && said.option->fate == REFUSED && !is_usual(&said)) {
            *remedy = said.option->own;
            return said.option->name;
        }
    }
    return NULL;
}

char *sbatch_remedy(const char *word)
{
    char *words[] = {(char *)word};
    struct reader reader = {.words = words, .count = 1};
    struct said said;

    if (!is_next(&reader, &said) || !said.option)
        return NULL;
    switch (said.option->fate) {
    case TAKEN:
        return xasprintf("did you mean %s?", said.option->own);
    case REFUSED:
        return xstrdup(said.option->own);
    default:
        return xasprintf("it is sbatch's --%s, which has no meaning here: leave it out", said.option->name);
    }
}

static void add_gpu_types(const char *value, bool of_gres, struct spec_strings *own)
{
    CLEANUP(free_ptr) char *types = gpu_types(value, of_gres);

    if (*types) {
        CLEANUP(free_ptr) char *whole = xasprintf("--gpu-type=%s", types);
        spec_strings_add(own, whole);
    }
}

static void take(const struct said *said, struct spec_strings *own, struct spec_strings *written,
                 struct spec_strings *ignored)
{
    const struct option *option = said->option;
    const char *value = said->value || option->takes != MAYBE ? said->value : "";
    CLEANUP(free_ptr) char *translated = option->translate && value ? option->translate(value, ignored) : NULL;
    size_t before = own->count;

    if (translated && (*translated || !*value)) {
        CLEANUP(free_ptr) char *whole = xasprintf("%s=%s", option->own, translated);
        spec_strings_add(own, whole);
        if (strcmp(option->own, "--gpus") == 0)
            add_gpu_types(value, option->translate == gres, own);
    } else if (!translated) { /* a switch; or a value is missing, which the option says itself */
        spec_strings_add(own, option->own);
    }
    CLEANUP(free_ptr)
    char *whole = xasprintf("%s%s%s", said->word, said->next ? " " : "", said->next ? said->next : "");
    for (; before < own->count; before++)
        spec_strings_add(written, whole);
}

void sbatch_translate(char *const *words, size_t count, struct spec_strings *own, struct spec_strings *written,
                      struct spec_strings *ignored)
{
    struct reader reader = {.words = words, .count = count};
    struct said said;

    while (is_next(&reader, &said)) {
        enum fate fate = said.option ? said.option->fate : IGNORED;
        if (fate == TAKEN && said.option->takes == MAYBE && !said.option->translate &&
            said.value) /* --exclusive=user is another */
            fate = IGNORED;
        if (fate == TAKEN)
            take(&said, own, written, ignored);
        else if (fate == IGNORED && !(said.option && is_usual(&said)))
            ignore_said(&said, ignored);
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
        case 'a':
            strbuf_append(&path, at - 1, 2);
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
