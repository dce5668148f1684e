/* Which jobs are runs of the same thing. */
#include "unit.h"

#include "api/spec.h"
#include "api/workload_key.h"

enum key { SAME_KEY, OTHER_KEY };

struct variant {
    const char *command; /* words parted by spaces */
    enum key key;
    const char *environment; /* NULL: the first's */
    const char *directory;
    const char *code;
    const char *script, *lengths;
    uid_t uid;
};

static const struct variant first = {.command = "python3 -u train.py --batch-size 32 --lr 0.1 --seed 1 -v --out a",
                                     .environment = "BATCH_SIZE=8 LANG=C",
                                     .directory = "/home/u",
                                     .code = "0123456789abcdef",
                                     .uid = 1000};

/* Members that are not there are the first's. */
static const struct variant variants[] = {
    {"python3 -u train.py --batch-size 32 --lr 0.1 --seed 1 -v --out a", SAME_KEY},
    {"python3 -u train.py --batch-size 32 --lr 3e-4 --seed 2 -v --out b", SAME_KEY},
    {"python3 -u train.py --batch-size 32 --learning_rate=-1 --random-seed=2 -v", SAME_KEY},
    {"python3 -u train.py --batch-size 32 --lr -1 -v", SAME_KEY},
    {"python3 -u train.py --batch-size 32 +run.seed=4 optimizer.lr=1 -v", SAME_KEY},
    {"python3 -u train.py --batch-size 32 --seed -v", SAME_KEY}, /* -v is no value */
    {"python3 -u train.py --batch-size 64 --lr 0.1 --seed 1 -v --out a", OTHER_KEY},
    {"python3 -u train.py --batch-size 32 --lr 0.1 --seed 1 --out a", OTHER_KEY},
    {"python3 -u train.py --batch-size 32 --lr 0.1 --seeds 1 -v --out a", OTHER_KEY},
    {"python3 -u train.py --batch-size 32 --seed 1 2 -v", OTHER_KEY},
    {"python3 -u other.py --batch-size 32 --lr 0.1 --seed 1 -v --out a", OTHER_KEY},
    {"python3 -m train --batch-size 32 --lr 0.1 --seed 1 -v --out a", OTHER_KEY},
    {.command = NULL, OTHER_KEY, .environment = "BATCH_SIZE=16 LANG=C"},
    {.command = NULL, SAME_KEY, .environment = "LANG=en BATCH_SIZE=8"},
    {.command = NULL, OTHER_KEY, .environment = "MODEL_NAME=x BATCH_SIZE=8"},
    {.command = NULL, SAME_KEY, .environment = "BATCH_SIZE=8 SEED=BATCH"},
    {.command = NULL, OTHER_KEY, .directory = "/home/u/v"},
    {.command = NULL, OTHER_KEY, .code = "0123456789abcde0"},
    {.command = NULL, OTHER_KEY, .uid = 1001},
    {.command = NULL, OTHER_KEY, .script = "python3 train.py"},
    {.command = NULL, OTHER_KEY, .lengths = "64\n"},
};

static void add_words(struct spec_strings *strings, const char *words)
{
    CLEANUP(free_ptr) char *copy = xstrdup(words);
    char *rest = copy;

    for (char *word = strsep(&rest, " "); word; word = strsep(&rest, " "))
        spec_strings_add(strings, word);
}

static void key_of(const struct variant *variant, char key[static RECORD_WORKLOAD_SIZE])
{
    CLEANUP(job_spec_release) struct job_spec spec;
    const char *code = variant->code ? variant->code : first.code;

    job_spec_init(&spec);
    add_words(&spec.command, variant->command ? variant->command : first.command);
    add_words(&spec.environment, variant->environment ? variant->environment : first.environment);
    spec.directory = xstrdup(variant->directory ? variant->directory : first.directory);
    spec.code = xstrdup(code);
    spec.script = xstrdup(variant->script);
    spec.lengths = xstrdup(variant->lengths);
    workload_key(&spec, variant->uid ? variant->uid : first.uid, key);
}

/* Another workload differs behind the program's part, too. */
TEST(test_variants)
{
    char key[RECORD_WORKLOAD_SIZE], first_key[RECORD_WORKLOAD_SIZE];

    key_of(&first, first_key);
    for (size_t i = 0; i < array_size(variants); i++) {
        key_of(&variants[i], key);
        if (variants[i].key == SAME_KEY ? strcmp(key, first_key) != 0
                                        : strcmp(strchr(key, ':'), strchr(first_key, ':')) == 0)
            fail_msg("variant %zu: the key is %s, the first's %s", i, key, first_key);
    }
}

/* Of a script only the text counts, under whatever name it is submitted; its arguments do as a command's. */
TEST(test_scripts)
{
    char key[RECORD_WORKLOAD_SIZE], same[RECORD_WORKLOAD_SIZE];
    const struct variant script = {.command = "a.sh 32 --seed 1", .script = "python3 train.py \"$@\""},
                         renamed = {.command = "b.sh 32 --seed 2", .script = "python3 train.py \"$@\""},
                         larger = {.command = "a.sh 64 --seed 1", .script = "python3 train.py \"$@\""};

    key_of(&script, key);
    key_of(&renamed, same);
    assert_string_equal(key, same);
    key_of(&larger, same);
    assert_string_not_equal(key, same);
}

/* Runs with other arguments have the program in common. */
TEST(test_programs)
{
    static const struct {
        struct variant variant;
        bool same;
    } cases[] = {
        {{"python3 -u train.py --batch-size 64"}, true},
        {{"torchrun --nproc-per-node 2 train.py", .code = "1", .environment = "BATCH_SIZE=1"}, true},
        {{"python3 -u other.py --batch-size 32"}, false},
        {{"python3 -m train"}, false},
        {{"python3"}, false},
        {{NULL, .directory = "/home/u/v"}, false},
        {{NULL, .uid = 1001}, false},
        {{NULL, .script = "python3 train.py"}, false},
    };
    char key[RECORD_WORKLOAD_SIZE], first_key[RECORD_WORKLOAD_SIZE];

    key_of(&first, first_key);
    for (size_t i = 0; i < array_size(cases); i++) {
        size_t program = strcspn(first_key, ":");
        key_of(&cases[i].variant, key);
        if ((strncmp(key, first_key, program + 1) == 0) != cases[i].same)
            fail_msg("case %zu: the key is %s, the first's %s", i, key, first_key);
    }
}
