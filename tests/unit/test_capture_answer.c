/* What a job's processes say of their capture. */
#include "unit.h"

#include "api/capture_answer.h"

#define FAR  "{\"capture\": false, \"reason\": \"train.py needs the network\", \"closeness\": 2, \"bytes\": 0}\n"
#define NEAR "{\"capture\": false, \"reason\": \"prepare.py ended\", \"closeness\": 0, \"bytes\": 0}\n"
#define ENDED                                                                                                          \
    "{\"capture\": false, \"reason\": \"a.py: failed: no data\", \"closeness\": 1, \"failed\": true, \"bytes\": 0}\n"
#define TAKEN  "{\"capture\": true, \"script\": \"/home/ada/train.py\", \"seconds\": 4.1, \"bytes\": 5}\nhello"
#define LONGER "{\"capture\": true, \"script\": \"/home/ada/train.py\", \"seconds\": 4.1, \"bytes\": 6}\nhello"

static const struct {
    const char *output;
    int rc;
    const char *said;    /* of the origin, or of the error */
    const char *failure; /* of the command */
} answers[] = {
    {"", -ENODATA, "status 3: no data", "status 3: no data"},
    {NEAR, -ENODATA, "status 3: no data; prepare.py ended", "status 3: no data"},
    {NEAR, -ENODATA, "status 3; prepare.py ended", "status 3: ended"},
    {NEAR ENDED, -ENODATA, "a.py: failed: no data", "status 3: other words"},
    {NEAR TAKEN, 0, "an automatic capture of train.py, 5 s", "status 3"},
    {"", -ENODATA, "no Python process of the command imported torch"},
    {NEAR FAR NEAR, -ENODATA, "train.py needs the network"},
    {NEAR TAKEN, 0, "an automatic capture of train.py, 5 s"},
    {TAKEN FAR, 0, "an automatic capture of train.py, 5 s"},
    {LONGER, -EPROTO, "what it recorded cannot be read"},
    {NEAR "no JSON\n", -EPROTO, "what it recorded cannot be read"},
    {"{\"capture\": true, \"bytes\": -1}\nhello", -EPROTO, "what it recorded cannot be read"},
    {"{\"capture\": true, \"bytes\": 0}", -EPROTO, "what it recorded cannot be read"},
};

TEST(test_remedies)
{
    static const char *const said[][2] = {
        {"train.py needs the network: gaierror", "; name copies of them on this machine, or give --hf-config"},
        {"no Python process of the command imported torch", "torch; give --summary or --gpu-memory"},
        {"took longer than 120 s: step 1", "--example-batch"},
        {"ended with exit status 3: no data.", "no data; give --hf-config, --summary or --gpu-memory"},
    };

    for (size_t i = 0; i < array_size(said); i++) {
        error_set(&trouble, ENODATA, "%s", said[i][0]);
        capture_add_remedy(&trouble);
        assert_has(trouble.text, said[i][1]);
    }
}

/* There is more behind the output: it is another's. */
TEST(test_answers)
{
    struct capture_answer answer;

    for (size_t i = 0; i < array_size(answers); i++) {
        size_t length = strlen(answers[i].output);
        CLEANUP(free_ptr) char *output = xasprintf("%s!!", answers[i].output);
        int rc = capture_answer_read(output, length, answers[i].failure, &answer, &trouble);
        if (rc != answers[i].rc ||
            strncmp(rc ? trouble.text : answer.from, answers[i].said, strlen(answers[i].said)) != 0)
            fail_msg("answer %zu: %d, %s", i, rc, rc ? trouble.text : answer.from);
        if (rc == 0)
            assert_string_equal(answer.text, "hello");
        capture_answer_release(&answer);
    }
}
