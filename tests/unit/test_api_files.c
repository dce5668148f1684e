/* Job files (.rad, both forms) and script directives, as text. */
#include "unit.h"

#include "api/directives.h"
#include "api/rad.h"
#include "api/spec.h"
#include "trace/trace.h"

/* trace may not see api */
_Static_assert((int)WORKLOAD_MEASURED == (int)SPEC_MEASURED && (int)WORKLOAD_HORUS == (int)SPEC_HORUS &&
                   (int)WORKLOAD_FAKETENSOR == (int)SPEC_FAKETENSOR && (int)WORKLOAD_GPUMEMNET == (int)SPEC_GPUMEMNET,
               "recorded figures in one order");

#define POSITIONAL "conda activate tf\npython vgg.py --b 64\nvgg_64.model\n/data/imagenet\n64\nexclusive\n"

static struct job_spec spec; /* that was parsed last */

static void parse(const char *text)
{
    job_spec_release(&spec);
    fail_if(rad_parse("jobs/vgg2.rad", text, strlen(text), &spec, &trouble), trouble);
}

static void refuse_bytes(const char *text, size_t length, const char *expected)
{
    struct job_spec refused;
    struct error err = {{0}};

    assert_true(rad_parse("j.rad", text, length, &refused, &err) < 0);
    assert_string_equal(err.text, expected);
    assert_null(refused.command.items);
    assert_null(refused.summary_name);
}

static void refuse(const char *text, const char *expected)
{
    refuse_bytes(text, strlen(text), expected);
}

TEST(test_keyed)
{
    /* the thesis's listing 6.1, one of its two policies chosen */
    parse("# assumption is that model.txt file is in the same directory\n"
          "conda activate tf # specifying the conda environment\n"
          "python resnet.py --b 128 # command to execute\n"
          "model: resnet.txt # model summary file name\n"
          "batch_size: 128 # batch size\n"
          "policy: exclusive\n");

    assert_string_equal(spec.name, "vgg2");
    assert_string_equal(spec.conda_environment, "tf");
    assert_int_equal(spec.command.count, 3);
    assert_string_equal(spec.command.items[0], "/bin/sh");
    assert_string_equal(spec.command.items[1], "-c");
    assert_string_equal(spec.command.items[2], "python resnet.py --b 128 # command to execute");
    assert_string_equal(spec.summary_name, "resnet.txt");
    assert_int_equal(spec.batch_size, 128);
    assert_true(spec.exclusive);
    assert_int_equal(spec.gpus, 1);
    assert_true(spec.gpu_memory_bytes == -1);
    assert_null(spec.directory);
    parse("\r\n  gpus :2\r\n\tgpu_memory: 12.5G # each\r\npolicy: collocation\r\nFOO='a # b' ./run: x\t\r\n");
    assert_int_equal(spec.gpus, 2);
    assert_true(spec.gpu_memory_bytes == 25 * GIB / 2);
    assert_false(spec.exclusive);
    assert_null(spec.conda_environment);
    assert_null(spec.summary_name);
    assert_string_equal(spec.command.items[2], "FOO='a # b' ./run: x");
    parse("model: a#b.txt\nconda activate 'my env'\nx"); /* a # inside a word is part of it */
    assert_string_equal(spec.summary_name, "a#b.txt");
    assert_string_equal(spec.conda_environment, "my env");
}

TEST(test_positional)
{
    parse("# a comment\n" POSITIONAL "2\n11760\n40000\n5379.029213\n16000");

    assert_string_equal(spec.conda_environment, "tf");
    assert_string_equal(spec.command.items[2], "python vgg.py --b 64");
    assert_string_equal(spec.summary_name, "vgg_64.model");
    assert_string_equal(spec.dataset, "/data/imagenet");
    assert_int_equal(spec.batch_size, 64);
    assert_string_equal(spec.policy_word, "exclusive");
    assert_false(spec.exclusive); /* the word is kept, not enforced */
    assert_int_equal(spec.gpus, 2);
    assert_true(spec.gpu_memory_bytes == -1);
    assert_true(spec.recorded_bytes[SPEC_MEASURED] == 11760 * MIB);
    assert_true(spec.recorded_bytes[SPEC_HORUS] == 40000 * MIB);
    assert_true(spec.recorded_bytes[SPEC_FAKETENSOR] == INT64_C(5640320936));
    assert_true(spec.recorded_bytes[SPEC_GPUMEMNET] == 16000 * MIB);
    parse(POSITIONAL "1\n");
    assert_true(spec.recorded_bytes[SPEC_MEASURED] == -1);
    parse(POSITIONAL "1 # GPU\n7 # measured\n");
    assert_true(spec.recorded_bytes[SPEC_MEASURED] == 7 * MIB && spec.recorded_bytes[SPEC_HORUS] == -1);
}

TEST(test_bad_keyed)
{
    refuse("model: a.txt\n", "j.rad: no command line: add the command that trains the model");
    refuse("./a\nmodel:\n", "j.rad:2: model: nothing stands behind it: fill it in or leave it out");
    refuse("./a\nmodel:#none\n", "j.rad:2: model: nothing stands behind it: fill it in or leave it out");
    refuse("./a\nmodel: # none\n", "j.rad:2: model: nothing stands behind it: fill it in or leave it out");
    refuse("./a\nbatch_size: many\n", "j.rad:2: batch_size: 'many' is not a whole number");
    refuse("./a\nbatch_size: -1\n", "j.rad:2: batch_size: -1 is out of range: 1 to 1099511627776");
    refuse("./a\npolicy: exclusive/ collocation\n",
           "j.rad:2: policy 'exclusive/ collocation': write exclusive or collocation");
    refuse("./a\ngpus: 65\n", "j.rad:2: gpus: 65 is out of range: 0 to 64");
    refuse("./a\ngpu_memory: 7000\n", "j.rad:2: gpu_memory: '7000' has no unit: say 7000GiB or 7000MiB");
    refuse("./a\ngpu_memory: -5G\n", "j.rad:2: gpu_memory: '-5G' is not a size: write it like 12G, 512M or 1.5GiB");
    refuse("./a\ngpu_memory: 0\n", "j.rad:2: gpu_memory: 0 is out of range: 1 B to 1024.0 TiB");
    refuse("./a\ngpu_memory: 2000T\n", "j.rad:2: gpu_memory: 2000T is out of range: 1 B to 1024.0 TiB");
    refuse("./a\nbatchsize: 4\n", "j.rad:2: unknown key 'batchsize': did you mean batch_size?");
    refuse("./a\nxyzzy: 4\n", "j.rad:2: unknown key 'xyzzy': write model, policy, or an option of carma submit "
                              "with _ for - (gpu_memory)");
    refuse("./a\ngpus: 1\n\ngpus: 1\n", "j.rad:4: gpus is already given on line 2: remove one");
    refuse("gpus: 1\n./a\n./b\n", "j.rad:3: a second command line: join them with && or remove one");
    refuse("gpus: 1\nconda activate\n./a\n",
           "j.rad:2: write `conda activate ENVIRONMENT`, the environment's name alone");
    refuse("gpus: 1\nconda activate -h\n./a\n",
           "j.rad:2: write `conda activate ENVIRONMENT`, the environment's name alone");
    refuse("gpus: 1\nconda activate a\nconda activate b\n./a\n", "j.rad:3: a second `conda activate`: keep one");
}

TEST(test_bad_positional)
{
    refuse("", "j.rad:1: the job file ends before `conda activate ENVIRONMENT`: add it");
    refuse("# nothing\n\n", "j.rad:1: the job file ends before `conda activate ENVIRONMENT`: add it");
    refuse("python a.py\n",
           "j.rad:1: 'python a.py': the first line of a job file without keys is `conda activate ENVIRONMENT`");
    refuse("conda activate tf\n", "j.rad:1: the job file ends before the command line: add it");
    refuse(POSITIONAL, "j.rad:6: the job file ends before the number of GPUs: add it");
    refuse("conda activate tf\nx\nm\nd\nbig\n", "j.rad:5: the batch size: 'big' is not a whole number");
    refuse(POSITIONAL "two\n", "j.rad:7: the number of GPUs: 'two' is not a whole number");
    refuse(POSITIONAL "1\n-5\n", "j.rad:8: measured memory '-5' is not a number of MiB");
    refuse(POSITIONAL "1\n5\nnan\n", "j.rad:9: horus memory 'nan' is not a number of MiB");
    refuse(POSITIONAL "1\n5\n1.2.3\n", "j.rad:9: horus memory '1.2.3' is not a number of MiB");
    refuse(POSITIONAL "1\n0\n", "j.rad:8: measured memory 0 MiB is out of range: more than 0, at most 1073741824");
    refuse(POSITIONAL "1\n99999999999\n",
           "j.rad:8: measured memory 99999999999 MiB is out of range: more than 0, at most 1073741824");
    refuse(POSITIONAL "1\n1\n2\n3\n4\n5\n", "j.rad:12: '5': nothing is expected after the GPUMemNet estimate");
}

TEST(test_hostile_rad)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};

    refuse_bytes("conda activate tf\npy\0thon\n", 26, "j.rad:2: byte 0x00 at column 3: this is not a text file");
    refuse("\x7f"
           "ELF\x02",
           "j.rad:1: byte 0x7f at column 1: this is not a text file");
    refuse("./a\x1b[31m\n", "j.rad:1: byte 0x1b at column 4: this is not a text file");
    while (text.length < RAD_MAX_BYTES) /* tens of thousands of lines */
        strbuf_puts(&text, "x\n");
    refuse(text.text, "j.rad:1: 'x': the first line of a job file without keys is `conda activate ENVIRONMENT`");
    strbuf_puts(&text, "x");
    CLEANUP(free_ptr)
    char *expected = xasprintf("j.rad: too large for a job file: %zu bytes, at most 65536", text.length);
    refuse(text.text, expected);
}

static void expect_words(const char *text, const char *const *expected)
{
    CLEANUP(spec_strings_release) struct spec_strings words = {0};
    size_t count = 0;

    fail_if(directives_parse("#CARMA", "run.sh", text, strlen(text), &words, &trouble), trouble);
    for (; expected[count]; count++) {
        assert_true(count < words.count);
        assert_string_equal(words.items[count], expected[count]);
    }
    assert_int_equal(words.count, count);
}

static void refuse_script(const char *text, const char *expected)
{
    CLEANUP(spec_strings_release) struct spec_strings words = {0};
    struct error err = {{0}};

    assert_int_equal(directives_parse("#CARMA", "run.sh", text, strlen(text), &words, &err), -EINVAL);
    assert_string_equal(err.text, expected);
}

TEST(test_directives)
{
    expect_words("#!/bin/sh\n"
                 "# about this\n"
                 "\n"
                 "#CARMA --gpus 2 --gpu-memory 12G # each\r\n"
                 "#CARMA\n"
                 "#CARMA\t-J 'my run' -o \"a \\\"b\\\" \\x $c\"  d\\ e ''f#g\n"
                 "#CARMAX --no\n"
                 " #CARMA --no\n"
                 "# CARMA --no\n"
                 "##CARMA --no\n"
                 "echo begin\n"
                 "#CARMA --late\n",
                 (const char *const[]){"--gpus", "2", "--gpu-memory", "12G", "-J", "my run", "-o", "a \"b\" \\x $c",
                                       "d e", "f#g", NULL});
    expect_words("", (const char *const[]){NULL});
    expect_words("#CARMA ''", (const char *const[]){"", NULL});
    expect_words("\x7f"
                 "ELF\x01\n#CARMA --no\n",
                 (const char *const[]){NULL});

    refuse_script("#!/bin/sh\n#CARMA -J 'my run\n", "run.sh:2: a quote (') is not closed");
    refuse_script("#CARMA -J \"my run\\\n", "run.sh:1: a quote (\") is not closed");
    refuse_script("#CARMA -J a \\\n", "run.sh:1: a backslash ends the line: lines are not continued here");
    refuse_script("#CARMA -J \x1b[0m\n", "run.sh:1: byte 0x1b at column 11: this is not a text file");
    CLEANUP(strbuf_release) struct strbuf text = {0};
    for (int i = 0; i < 1000; i++)
        strbuf_puts(&text, "#CARMA a b c d e f g h\n");
    refuse_script(text.text, "run.sh:513: more than 4096 words: shorten it");
}

AROUND(release)
{
    job_spec_release(&spec);
}

RUN_TESTS(NULL, release)
