#include "launch/classify.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text/printable.h"
#include "launch/ends.h"
#include "launch/messages.h"
#include "launch/sizes.h"
#include "launch/steps.h"
#include "launch/words.h"

/* A message is a line, or a part of one: words that are further apart than this belong to different messages. */
#define MESSAGE_GAP 512

/* Reads a message's sizes, from the first word of it that has a rule. */
#define MESSAGE_BYTES 4096

/* A hedge this close before the words of a shortage concerns them. */
#define HEDGE_BYTES 96

/* An error that follows an out-of-memory message this soon may be its consequence. Lines, tracebacks not counted. */
#define NEAR_LINES 16

/* A line of another log begins with its name. */
#define LOG_NAME_BYTES 256

#define RULES_MAX 256

/* The meaning of a word. */
struct use {
    uint32_t sets;
    bool hedge, handled, name, end;
};

/* The rules as numbers of words. */
struct rule {
    uint16_t all[3], none[3]; /* 0: no more */
};

/* Which words a message has, and which sets they are of. */
struct found {
    uint64_t there[(WORDS_MAX + 64) / 64];
    uint64_t sets;
};

struct reader {
    struct words words;
    struct use uses[WORDS_MAX + 1];
    struct rule rules[RULES_MAX];
    struct classify_verdict *verdict;
    struct ends ends;
    uint64_t lines;      /* since the latest message that counted */
    struct found judged; /* the message before this one, and */
    size_t rule;         /* the text that matched: output repeats itself */
    bool handled;        /* it says that the program goes on */
    uint64_t step;       /* the last step that followed it: a bar that is drawn again is no other */
    /* the message that is being read */
    struct span line;
    struct found found;
    size_t first, last; /* where its words begin, in the line */
    size_t hedge;       /* after the latest hedge; 0: none */
    bool any, says_handled;
};

static void make_words(struct reader *reader)
{
    _Static_assert(MESSAGE_SET_COUNT <= 32, "one bit each");

    for (size_t i = 0; i < message_rule_count; i++)
        for (size_t k = 0; k < 3; k++) {
            if (message_rules[i].all[k])
                reader->rules[i].all[k] = (uint16_t)words_add(&reader->words, message_rules[i].all[k]);
            if (message_rules[i].none[k])
                reader->rules[i].none[k] = (uint16_t)words_add(&reader->words, message_rules[i].none[k]);
            if (k == 0 && message_rules[i].exception)
                reader->uses[reader->rules[i].all[0]].name = true;
        }
    for (uint32_t set = 0; set < MESSAGE_SET_COUNT; set++)
        for (const char *const *word = message_sets[set]; *word; word++)
            reader->uses[words_add(&reader->words, *word)].sets |= 1u << set;
    for (const char *const *word = message_hedges; *word; word++)
        reader->uses[words_add(&reader->words, *word)].hedge = true;
    for (const char *const *word = ends_words; *word; word++)
        reader->uses[words_add(&reader->words, *word)].end = true;
    for (const char *const *word = message_handled; *word; word++)
        reader->uses[words_add(&reader->words, *word)].handled = true;
}

/* Inside a line of source code. */
static bool is_in_source(struct span line, size_t at)
{
    static const char *const source_words[] = {"except", "raise", "import", "isinstance", "pytest.raises"};
    size_t begin = at > HEDGE_BYTES ? at - HEDGE_BYTES : 0;

    for (size_t i = 0; i < array_size(source_words); i++)
        if (memmem(line.text + begin, at - begin, source_words[i], strlen(source_words[i])))
            return true;
    return false;
}

/* "name" or "name: ...", not the name in a line of source. */
static bool begins_message(struct span line, size_t at, size_t length)
{
    size_t end = at + length;

    if (end < line.length && line.text[end] != ':')
        return false;
    if (at && (isalnum((unsigned char)line.text[at - 1]) || strchr("_.('\"`", line.text[at - 1])))
        return false;
    return !is_in_source(line, at);
}

static bool is_there(const struct reader *reader, uint32_t word)
{
    return reader->found.there[word / 64] >> word % 64 & 1;
}

static bool matches(const struct reader *reader, size_t rule)
{
    for (size_t k = 0; k < 3 && reader->rules[rule].all[k]; k++)
        if (!is_there(reader, reader->rules[rule].all[k]))
            return false;
    for (size_t k = 0; k < 3 && reader->rules[rule].none[k]; k++)
        if (is_there(reader, reader->rules[rule].none[k]))
            return false;
    return (reader->found.sets & message_rules[rule].sets) == message_rules[rule].sets &&
           !(reader->found.sets & message_rules[rule].no_sets);
}

static void keep_line(struct span message, struct classify_verdict *verdict)
{
    size_t length = message.length < sizeof verdict->line - 1 ? message.length : sizeof verdict->line - 1;

    memcpy(verdict->line, message.text, length);
    verdict->line[length] = '\0';
}

static bool tells_less(enum output_kind kind, enum output_kind than)
{
    return (kind == OUTPUT_GPU_HANDLE_MAYBE && than != OUTPUT_NOTHING) ||
           (kind == OUTPUT_GPU_HANDLE && than == OUTPUT_GPU_OOM);
}

static void take_sizes(struct span message, struct classify_verdict *verdict)
{
    int64_t size = sizes_requested(message);

    if (size < 0)
        return;
    verdict->requested_bytes = size;
    verdict->free_bytes = sizes_free(message);
    verdict->tenant_count = sizes_tenants(message, verdict->tenants);
}

static size_t find_rule(struct reader *reader)
{
    size_t rule = 0;

    if (memcmp(&reader->judged, &reader->found, sizeof reader->found) == 0)
        return reader->rule;
    while (rule < message_rule_count && !matches(reader, rule))
        rule++;
    reader->judged = reader->found;
    return reader->rule = rule;
}

/* The words that were gathered are a message. */
static void end_message(struct reader *reader)
{
    struct classify_verdict *verdict = reader->verdict;
    struct span message = reader->line;
    size_t rule;

    if (!reader->any)
        return;
    rule = find_rule(reader);
    if (rule < message_rule_count && message_rules[rule].kind != OUTPUT_NOTHING) {
        enum output_kind kind = message_rules[rule].kind;
        if (message.length > MESSAGE_BYTES) { /* one of many in a long line */
            size_t begin = reader->first > MESSAGE_GAP ? reader->first - 64 : 0;
            message = (struct span){message.text + begin, message.length - begin};
            message.length = message.length < MESSAGE_BYTES ? message.length : MESSAGE_BYTES;
        }
        if (kind == verdict->kind || !tells_less(kind, verdict->kind)) {
            verdict->kind = kind;
            verdict->own_error = verdict->outlived = false;
            keep_line(message, verdict);
        }
        if (kind == OUTPUT_GPU_OOM)
            take_sizes(message, verdict);
        reader->lines = 0;
        reader->handled = reader->says_handled;
        verdict->steps = reader->handled ? STEPS_ENOUGH : 0;
        reader->ends.memory = true;
    }
    reader->found = (struct found){0};
    reader->any = reader->says_handled = false;
    reader->hedge = 0;
}

static void take_word(struct reader *reader, uint32_t word, size_t at)
{
    const struct use *use = &reader->uses[word];
    size_t length = reader->words.length[word - 1];
    uint32_t sets = use->sets, shortage = 1u << MESSAGE_SHORTAGE;

    if (reader->any && at > reader->last + MESSAGE_GAP)
        end_message(reader);
    if (!reader->any)
        reader->first = reader->last = at;
    reader->any = true;
    if (at + length > reader->last)
        reader->last = at + length;
    if (use->hedge)
        reader->hedge = at + length;
    reader->says_handled |= use->handled;
    reader->ends.marked |= use->end;
    /* only talked about, or a text in a program */
    if (sets & shortage && ((reader->hedge && at <= reader->hedge + HEDGE_BYTES) ||
                            (at && strchr("'\"`", reader->line.text[at - 1])) || is_in_source(reader->line, at)))
        sets &= ~shortage;
    reader->found.sets |= sets;
    if (!use->name || begins_message(reader->line, at, length))
        reader->found.there[word / 64] |= UINT64_C(1) << word % 64;
}

static bool is_of_memory(enum output_kind kind)
{
    return kind == OUTPUT_GPU_OOM || kind == OUTPUT_GPU_HANDLE || kind == OUTPUT_GPU_HANDLE_MAYBE ||
           kind == OUTPUT_HOST_OOM;
}

/* An error that ended the program, later than a message of memory that it survived, is why it failed. */
static void weigh_end(struct reader *reader, enum end_weight weight)
{
    struct classify_verdict *verdict = reader->verdict;
    bool near = reader->lines < NEAR_LINES && !reader->handled;

    if (weight == END_NONE || (weight == END_LIKELY && near))
        return;
    if (is_of_memory(verdict->kind) || (verdict->kind == OUTPUT_GPU_ERROR && verdict->steps >= STEPS_ENOUGH)) {
        classify_init(verdict);
        verdict->outlived = true;
    }
    verdict->own_error |= verdict->kind == OUTPUT_NOTHING && weight == END_CERTAIN;
}

/* What grep prints of another log: "old/train.log:112:...". */
static bool is_of_other_log(struct span line)
{
    static const char *const endings[] = {".log:", ".out:", ".err:", ".txt:"};
    size_t length = line.length < LOG_NAME_BYTES ? line.length : LOG_NAME_BYTES;

    for (size_t i = 0; i < array_size(endings); i++) {
        const char *at = memmem(line.text, length, endings[i], strlen(endings[i]));
        if (at && at > line.text && at[-1] != ' ' && at + strlen(endings[i]) < line.text + line.length &&
            at[strlen(endings[i])] != ' ')
            return true;
    }
    return false;
}

/* The colours of a terminal stand between a message's words. The copy is owned. */
static char *without_colours(struct span *line)
{
    char *plain = memchr(line->text, '\033', line->length) ? xmalloc(line->length) : NULL;

    if (plain) {
        memcpy(plain, line->text, line->length);
        *line = (struct span){plain, printable_drop_colours(plain, line->length)};
    }
    return plain;
}

static void take_line(struct reader *reader, struct span line)
{
    char *plain = without_colours(&line);
    struct classify_verdict *verdict = reader->verdict;
    uint64_t step;

    reader->line = line;
    reader->ends.memory = reader->ends.marked = false;
    if (!ends_is_source(&reader->ends, line) && !is_of_other_log(line)) {
        for (size_t at = 0; at + 3 <= line.length; at++)
            for (uint32_t word = words_at(&reader->words, line.text, line.length, at, 0); word;
                 word = words_at(&reader->words, line.text, line.length, at, word))
                take_word(reader, word, at);
        end_message(reader);
    }
    weigh_end(reader, ends_take(&reader->ends, line));
    if ((is_of_memory(verdict->kind) || verdict->kind == OUTPUT_GPU_ERROR) && !reader->ends.memory &&
        (step = steps_identify(line)) && step != reader->step) {
        verdict->steps++;
        reader->step = step;
    }
    reader->lines += !reader->ends.in_traceback;
    free(plain);
}

void classify_init(struct classify_verdict *verdict)
{
    *verdict = (struct classify_verdict){.requested_bytes = -1, .free_bytes = -1};
}

void classify_output(const char *text, size_t length, struct classify_verdict *verdict)
{
    struct reader *reader = xcalloc(1, sizeof *reader);

    classify_init(verdict);
    reader->verdict = verdict;
    reader->rule = message_rule_count;
    make_words(reader);
    for (size_t at = 0, end; at < length; at = end + 1) {
        /* a progress bar's carriage return and a NUL end a line too */
        for (end = at; end < length && text[end] != '\n' && text[end] != '\r' && text[end] != '\0'; end++)
            ;
        take_line(reader, (struct span){text + at, end - at});
    }
    free(reader);
}

const char *output_kind_name(uint32_t kind)
{
    static const char *const names[OUTPUT_KIND_COUNT] = {
        [OUTPUT_NOTHING] = "nothing",
        [OUTPUT_GPU_OOM] = "gpu_oom",
        [OUTPUT_GPU_HANDLE] = "gpu_handle",
        [OUTPUT_GPU_HANDLE_MAYBE] = "gpu_handle_maybe",
        [OUTPUT_HOST_OOM] = "host_oom",
        [OUTPUT_GPU_FAULT] = "gpu_fault",
        [OUTPUT_MPS] = "mps",
        [OUTPUT_GPU_ERROR] = "gpu_error",
    };

    return kind < OUTPUT_KIND_COUNT ? names[kind] : "unknown";
}
