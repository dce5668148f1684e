/* Configuration: defaults, the file, single settings, and one line for every fault. */
#include "unit.h"

#include "config/config.h"
#include "config/user_shares.h"
#include "config/presets.h"

static char path[64];

static int set_up(void **state)
{
    int rc = make_folder(state);

    snprintf(path, sizeof path, "%s/carma.conf", folder);
    return rc;
}

/* Of each test, with the defaults at first. */
static struct config config;

AROUND(begin)
{
    config_init_default(&config);
    trouble = (struct error){{0}};
}

AROUND(end)
{
    config_release(&config);
}

#define CONFIG_TEST(name) TEST_BETWEEN(name, begin, end)

static void set(const char *key, const char *value)
{
    fail_if(config_set(&config, key, value, &trouble), trouble);
}

/* Into a configuration that has the defaults. */
static int read_text(const char *text, size_t length)
{
    end(NULL);
    begin(NULL);
    assert_int_equal(file_write_atomic(path, text, length, 0600, NULL), 0);
    return config_read_file(&config, path, &trouble);
}

/* `expected` follows "PATH:" */
static void refuse_bytes(const char *text, size_t length, const char *expected)
{
    assert_true(read_text(text, length) < 0);
    assert_memory_equal(trouble.text, path, strlen(path));
    assert_string_equal(trouble.text + strlen(path) + 1, expected);
}

static void refuse(const char *text, const char *expected)
{
    refuse_bytes(text, strlen(text), expected);
}

CONFIG_TEST(test_gpus_that_are_shared_otherwise)
{
    CLEANUP(free_ptr)
    char *bad = xstrdup("|mig|any|mps,|mps, 3|mps, 3=any|mps, =time-slice|mps, A100=time-slice|mps:|"
                        "mps:user|mps, 3=mps:gpu|mps:gpu, 0=mps:gpu, 1=mps|auto, 1=mps, 1=exclusive");
    char *rest = bad;

    set("share", "mps");
    assert_int_equal(config_share_of(&config, 3, "GPU-ab12"), SHARE_MPS);
    set("share", "mps, GPU-ab12=exclusive ,3=time-slice");
    assert_int_equal(config_share_of(&config, 0, "GPU-cd"), SHARE_MPS);
    assert_int_equal(config_share_of(&config, 0, "GPU-ab12-77"), SHARE_EXCLUSIVE);
    assert_int_equal(config_share_of(&config, 3, "GPU-cd"), SHARE_TIME_SLICE);
    assert_int_equal(config_share_of(&config, 33, "GPU-ab1"), SHARE_MPS);
    assert_int_equal(config_share_of(&config, 3, "GPU-ab12-77"), SHARE_TIME_SLICE); /* the last that names it */
    assert_int_equal(config.core.mps_domain, MPS_DOMAIN_USER);
    set("share", "exclusive, 1=mps:gpu, 3=time-slice");
    assert_int_equal(config_share_of(&config, 1, "GPU-cd"), SHARE_MPS);
    assert_int_equal(config.core.mps_domain, MPS_DOMAIN_GPU);
    set("policy", "lug"); /* no part of a policy */
    assert_int_equal(config.core.mps_domain, MPS_DOMAIN_GPU);
    for (char *text = strsep(&rest, "|"); text; text = strsep(&rest, "|"))
        if (config_set(&config, "share", text, &trouble) != -EINVAL)
            fail_msg("'%s' was taken", text);
    assert_int_equal(config_share_of(&config, 3, "GPU-cd"), SHARE_TIME_SLICE); /* nothing of a bad value is taken */
    assert_int_equal(config.core.mps_domain, MPS_DOMAIN_GPU);
    assert_int_equal(config_check(&config, &trouble), 0);
    set("share", "mps:node"); /* of a simulation's policy */
    assert_int_equal(config_check(&config, &trouble), -EINVAL);
    assert_string_equal(trouble.text,
                        "share 'mps:node' is the simulator's: for one MPS server for all users set share = mps and "
                        "mps_multiuser = yes");
}

CONFIG_TEST(test_shares_of_users_and_groups)
{
    static const char *const bad[][2] = {{"shares", "alice=0"},
                                         {"shares", "alice"},
                                         {"shares", "@vision=1001"},
                                         {"share_groups", "vision"},
                                         {"share_groups", "=alice"},
                                         {"share_groups", "vision=alice+"},
                                         {"share_groups", "vision="},
                                         {"share_groups", "a=b c"},
                                         {"share_groups", "a-name-that-is-much-too-long-for=b"}};
    char group[USER_GROUP_SIZE];

    set("shares", "alice=3, 12002 = 2 ,@vision=4");
    set("share_groups", "vision=alice+12002, nlp=bob+alice");
    for (size_t i = 0; i < array_size(bad); i++)
        if (config_set(&config, bad[i][0], bad[i][1], &trouble) != -EINVAL)
            fail_msg("%s '%s' was taken", bad[i][0], bad[i][1]);
    assert_int_equal(user_shares_find(config.user_shares, 12002, "bob"), 2);
    assert_int_equal(user_shares_find(config.user_shares, 12003, "vision"), 0);
    user_groups_find(config.share_groups, 12001, "alice", group); /* the first that has her */
    assert_string_equal(group, "vision");
    assert_int_equal(user_groups_share(config.user_shares, group), 4);
    user_groups_find(config.share_groups, 12003, "bob", group);
    assert_string_equal(group, "nlp");
    assert_int_equal(user_groups_share(config.user_shares, group), 1);
    user_groups_find(config.share_groups, 12004, "al", group);
    assert_string_equal(group, "");
}

/* A plain policy is the thesis's, without carma's own additions; upon a preset it only ranks. */
CONFIG_TEST(test_policies)
{
    struct core_config plain;

    set("max_running_per_user", "4");
    set("requeue_lost", "yes");
    set("policy", "lug");
    core_config_default(&plain);
    strcpy(plain.policy, "lug");
    plain.per_user.max_running = 4; /* users' limits do not belong to the policy */
    plain.per_user.max_retries = 20;
    plain.requeue_lost = true;
    assert_memory_equal(&config.core, &plain, sizeof plain);
    assert_int_equal(config.estimator, ESTIMATOR_DECLARED);
    set("policy", "thesis+lug");
    assert_string_equal(config.core.policy, "lug");
    assert_true(config.core.paced && config.core.memory_view == MEMORY_MONITOR);
    set("estimator", "replay"); /* a setting goes before its preset's */
    assert_int_equal(config.estimator, ESTIMATOR_REPLAY);
    set("policy", "thesis");
    assert_int_equal(config.estimator, ESTIMATOR_DECLARED);
    set("policy", "default");
    assert_string_equal(config.core.policy, "carma");
    assert_int_equal(config.estimator, ESTIMATOR_AUTO);
    assert_false(config.core.paced);
    assert_int_equal(config_set(&config, "policy", "thesis+", &trouble), -EINVAL);
    assert_int_equal(config_set(&config, "policy", "thesis+none", &trouble), -EINVAL);
    assert_string_equal(config.core.policy, "carma");
    for (const struct preset *preset = presets; preset->name;
         preset++) { /* every setting of every preset is a good one */
        CLEANUP(free_ptr) char *settings = xstrdup(preset->settings);
        char *rest;
        for (char *pair = strtok_r(settings, " ", &rest); pair; pair = strtok_r(NULL, " ", &rest))
            if (config_set_pair(&config, pair, &trouble) != 0)
                fail_msg("preset %s: %s", preset->name, trouble.text);
    }
}

CONFIG_TEST(test_file)
{
    static const char text[] = "# carma\n"
                               "; another comment\n"
                               "\n"
                               "policy = lug\r\n"
                               "  memory_view=monitor\n" /* indented: a key of its own, not a continued value */
                               "memory_floor = 2GiB\n"
                               "decide_period = 500ms\n"
                               "max_retries = 0\n"
                               "window = 1:00\n"
                               "grace = 3s ; short\n"
                               "nvml_library = /opt/libnvidia-ml.so.1\n"
                               "socket = /srv/carma/sock";

    fail_if(read_text(text, sizeof text - 1), trouble);
    assert_string_equal(config.core.policy, "lug");
    assert_int_equal(config.core.memory_view, MEMORY_MONITOR);
    assert_true(config.core.floor_bytes == 2 * GIB && config.core.decide_period_ns == 500 * NS_PER_MS);
    assert_int_equal(config.core.max_retries, 0);
    assert_true(config.core.window_ns == 60 * NS_PER_SEC && config.grace_ns == 3 * NS_PER_SEC);
    assert_string_equal(config.nvml_library, "/opt/libnvidia-ml.so.1");
    assert_string_equal(config.socket, "/srv/carma/sock");

    /* --set comes after the file */
    assert_int_equal(config_set_pair(&config, "policy=exclusive", &trouble), 0);
    assert_int_equal(config_set_pair(&config, "nvml_library=", &trouble), 0);
    assert_string_equal(config.core.policy, "exclusive");
    assert_null(config.nvml_library);
}

CONFIG_TEST(test_bad_files)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};

    refuse("policy = magm\n\ncolour = red\n", "3: unknown key 'colour': `carmad --settings` lists them");
    refuse("max_slwodown = 2\n", "1: unknown key 'max_slwodown': did you mean max_slowdown?");
    refuse(
        "policy = best\n",
        "1: policy 'best' (did you mean best-fit?) is not allowed: write carma, default, thesis, code-2025, off, obf, "
        "owf, olug, horus, lucid, exclusive, round-robin, magm, "
        "lug, mug, first-fit, best-fit; joined by +");
    refuse("memory_view = both\n", "1: memory_view 'both' is not allowed: write monitor or reserve");
    refuse("share = mig\n",
           "1: share 'mig' is not allowed: write auto, time-slice, mps, mps:gpu or exclusive; then, by number or UUID, "
           "GPUs that differ, once: mps, 3=exclusive (mps and mps:gpu do not go together)");
    refuse("max_slowdown = 0.5\n", "1: max_slowdown '0.5' is not allowed: write 0, or 1 to 1000");
    refuse("share = mps\ngrace = 1s\nshare = auto\n", "3: share is set twice, here and in line 1: keep one");
    refuse("policy\n", "1: neither `key = value` nor a comment");
    refuse("share = mps\npolicy\npolicy = best\n", /* the first error is reported */
           "2: neither `key = value` nor a comment");
    refuse("[gpus]\npolicy = lug\n", "2: there are no [sections]: remove the heading above this line");
    refuse_bytes("policy = \0lug\n", 14, "1: a control character: this is not a text file");
    refuse("\n\x1b[2J\n", "2: a control character: this is not a text file");

    strbuf_puts(&text, "policy = lug\nsocket = /");
    while (text.length < 100000)
        strbuf_puts(&text, "0123456789");
    assert_true(read_text(text.text, text.length) < 0);
    assert_non_null(strstr(trouble.text, "carma.conf:2: the line is longer than"));
    while (text.length <= 1 << 20)
        strbuf_puts(&text, "0123456789\n");
    assert_int_equal(read_text(text.text, text.length), -EFBIG);

    unlink(path);
    assert_int_equal(config_read_file(&config, path, &trouble), -ENOENT);
}

static void refuse_set(const char *key, const char *value, const char *allowed)
{
    CLEANUP(free_ptr) char *expected = xasprintf("%s '%s' is not allowed: write %s", key, value, allowed);

    assert_int_equal(config_set(&config, key, value, &trouble), -EINVAL);
    assert_string_equal(trouble.text, expected);
}

CONFIG_TEST(test_ranges)
{
    static const char *const activities[] = {"-1", "1.1", "101%", "80", "nan", "%", "", "8e-1", "0.8 %", "80%%"};
    static const char *const durations[] = {"5", "90", "-1s", "61m", "1d", "soon", "", "1.5"};
    static const char *const sizes[] = {"-1", "1P", "65T", "12 parsecs", "", "12"};
    static const char *const counts[] = {"0", "49", "-1", "1.5", "many", "", "99999999999999999999"};

    for (size_t i = 0; i < array_size(activities); i++)
        refuse_set("sm_activity_cap", activities[i], "0% to 100%");
    for (size_t i = 0; i < array_size(durations); i++)
        refuse_set("window", durations[i], "0.01s to 3600s");
    for (size_t i = 0; i < array_size(sizes); i++)
        refuse_set("memory_floor", sizes[i], "0 B to 64.0 TiB, with a unit as in 12GiB");
    for (size_t i = 0; i < array_size(counts); i++)
        refuse_set("max_jobs_per_gpu", counts[i], "1 to 48");
    refuse_set("socket", "carma.sock", "an absolute path of at most 107 bytes");
    refuse_set(
        "socket",
        "/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/sock45678",
        "an absolute path of at most 107 bytes");
    refuse_set("socket", "", "an absolute path of at most 107 bytes");
    refuse_set("nvml_library", "lib/nvml.so", "an absolute path or a file name");
    refuse_set("machine_profile", "a1000", "an absolute path or the name of a built-in machine profile");
    refuse_set("machine_profile", "profiles/here.ini", "an absolute path or the name of a built-in machine profile");
    refuse_set("estimate_quantile", "49%", "50% to 99.9%");
    refuse_set("estimate_quantile", "1", "50% to 99.9%");
    refuse_set("estimator", "oracle", "auto, declared, measured, horus, faketensor, gpumemnet, replay or history");
}

CONFIG_TEST(test_forms)
{
    set("sm_activity_cap", "0.655");
    assert_int_equal(config.core.smact_cap_permille, 655);
    set("sm_activity_cap", "100%");
    assert_int_equal(config.core.smact_cap_permille, 1000);
    set("sm_activity_cap", "0");
    assert_int_equal(config.core.smact_cap_permille, 0);
    set("nvml_library", "libnvidia-ml.so.1");
    assert_string_equal(config.nvml_library, "libnvidia-ml.so.1");

    assert_int_equal(config_set_pair(&config, "policy", &trouble), -EINVAL);
    assert_string_equal(trouble.text, "'policy' is not of the form key=value");
    assert_int_equal(config_set_pair(&config, "=lug", &trouble), -EINVAL);

    set("window", "1s");
    set("sample_period", "2s");
    assert_int_equal(config_check(&config, &trouble), -EINVAL);
    assert_string_equal(trouble.text, "window 1s is shorter than sample_period 2s: lengthen it");
    set("window", "2s");
    set("job_memory_max", "1M"); /* a job cannot ask for so little either */
    assert_int_equal(config_check(&config, &trouble), -EINVAL);
    assert_string_equal(trouble.text,
                        "job_memory_max '1 MiB' is too little for a program to begin: set at least 16 MiB, or 0 "
                        "for any");
    for (int i = 0; i < 2; i++) {
        set("job_memory_max", i ? "0" : "16M");
        assert_int_equal(config_check(&config, &trouble), 0);
    }
}

/* Built in, from a file, or none: then the GPUs say. */
CONFIG_TEST(test_machine_profile)
{
    static const char text[] = "gpu = Card\ncontext = 300M\ncudnn = 20M\nmemory = 16G\n";
    struct machine_profile profile;

    assert_int_equal(config_machine_profile(&config, &profile, &trouble), 0);
    assert_string_equal(profile.name, "");
    set("machine_profile", "a100-40g-thesis");
    assert_int_equal(config_machine_profile(&config, &profile, &trouble), 0);
    assert_string_equal(profile.gpu, "NVIDIA A100-SXM4-40GB");
    set("machine_profile", "/nowhere/x");
    assert_int_equal(config_machine_profile(&config, &profile, &trouble), -ENOENT);
    assert_int_equal(file_write_atomic(path, text, sizeof text - 1, 0600, NULL), 0);
    set("machine_profile", path);
    fail_if(config_machine_profile(&config, &profile, &trouble), trouble);
    assert_string_equal(profile.gpu, "Card");
    assert_true(profile.context_bytes == 300 * MIB && *profile.name);
    assert_int_equal(file_write_atomic(path, "colour = red\n", 13, 0600, NULL), 0);
    assert_int_equal(config_machine_profile(&config, &profile, &trouble), -EINVAL);
    assert_memory_equal(trouble.text, path, strlen(path)); /* FILE:LINE: */
    set("machine_profile", "");
    assert_null(config.machine_profile);
    unlink(path);
}

CONFIG_TEST(test_directories)
{
    unsetenv("CARMA_SOCKET");
    setenv("HOME", "/home/ada", 1);
    setenv("XDG_CONFIG_HOME", "/cfg", 1);
    setenv("XDG_RUNTIME_DIR", "/rt", 1);
    setenv("XDG_STATE_HOME", "relative/is/ignored", 1);
    config_release(&config);
    config_init_default(&config);
    CLEANUP(free_ptr) char *file = config_default_path();
    if (geteuid() == 0) {
        assert_string_equal(config.socket, "/run/carma/carma.sock");
        assert_string_equal(config.state_directory, "/var/lib/carma");
        assert_string_equal(file, "/etc/carma/carma.conf");
    } else {
        assert_string_equal(config.socket, "/rt/carma/carma.sock");
        assert_string_equal(config.state_directory, "/home/ada/.local/state/carma");
        assert_string_equal(file, "/cfg/carma/carma.conf");
    }
    config_release(&config);

    setenv("CARMA_SOCKET", "/elsewhere/sock", 1);
    config_init_default(&config);
    assert_string_equal(config.socket, "/elsewhere/sock");
    unsetenv("CARMA_SOCKET");
}

/* The file that is printed changes nothing, and neither does it with every # before a key taken away. */
CONFIG_TEST(test_printed_file)
{
    CLEANUP(free_ptr) char *text = NULL;
    struct config defaults;
    size_t length;
    int keys = 0;
    FILE *out = open_memstream(&text, &length);

    config_file(out);
    fclose(out);
    for (int with = 0; with < 2; with++) {
        for (char *line = with ? text : NULL; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
            if (line[0] == '#' && line[1] != ' ') {
                line[0] = ' ';
                keys++;
            }
        config_init_default(&defaults);
        fail_if(read_text(text, length), trouble);
        assert_int_equal(config_check(&config, &trouble), 0);
        assert_memory_equal(&config.core, &defaults.core, sizeof config.core);
        assert_true(config.share.mode == defaults.share.mode && config.sample_period_ns == defaults.sample_period_ns &&
                    config.grace_ns == defaults.grace_ns && config.retention_ns == defaults.retention_ns &&
                    config.mps_memory_limit_bytes == defaults.mps_memory_limit_bytes);
        assert_string_equal(config.state_directory, with ? "/var/lib/carma" : defaults.state_directory);
        assert_string_equal(config.socket, with ? "/run/carma/carma.sock" : defaults.socket);
        assert_null(config.nvml_library);
        assert_null(config.admin_group);
        config_release(&defaults);
    }
    assert_true(keys >= 40);
}

/* docs/formats/config.md has a row for every key, with the help's text. */
CONFIG_TEST(test_page)
{
    char *help = NULL, *page = file_text(CARMA_DOCS "/formats/config.md"), *line, *rest;
    size_t length;
    FILE *out = open_memstream(&help, &length);

    config_help(out);
    fclose(out);
    for (line = strtok_r(help, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char key[32], *meaning, *takes, *value, *row;

        assert_int_equal(sscanf(line, " %31s", key), 1);
        meaning = strstr(line, key) + strlen(key);
        meaning += strspn(meaning, " ");
        line = strtok_r(NULL, "\n", &rest);
        takes = strchr(line, '(') + 1;
        value = strstr(line, "; default ");
        *value = '\0';
        value += strlen("; default ");
        value[strlen(value) - 1] = '\0';
        bool is_path = strcmp(key, "socket") == 0 || strcmp(key, "state_directory") == 0; /* depends on the user */
        row = xasprintf("\n| `%s` | %s | %s | %s |\n", key, takes, is_path ? "see below" : value, meaning);
        if (!strstr(page, row))
            fail_msg("docs/formats/config.md lacks the row%s", row);
        free(row);
    }
    free(help);
    free(page);
}

struct differences {
    struct config *rebuilt;
    size_t count;
};

static void take_difference(const char *key, const char *value, void *user)
{
    struct differences *differences = user;

    fail_if(config_set(differences->rebuilt, key, value, &trouble), trouble);
    differences->count++;
}

/* The text of a difference restores it, to the last digit; a setting without effect on decisions is left out. */
CONFIG_TEST(test_differences)
{
    static const char *const pairs[] = {"memory_margin=1234567891B",
                                        "settle=61.123456789s",
                                        "max_slowdown=1.7",
                                        "sm_activity_cap=83.3%",
                                        "max_gpus_per_user=7",
                                        "learn=no",
                                        "statistic=ema",
                                        "estimator=horus",
                                        "estimate_quantile=99.9%",
                                        "sample_period=333ms",
                                        "machine_profile=/etc/x.profile",
                                        "mps_multiuser=yes"};
    static const char *const others[] = {"socket=/run/x", "share=mps", "grace=1s", "listen=127.0.0.1:1",
                                         "retention=2d"};
    CLEANUP(config_release) struct config rebuilt;
    struct differences differences = {&rebuilt, 0};

    config_init_default(&rebuilt);
    config_each_difference(&config, &rebuilt, take_difference, &differences);
    assert_int_equal(differences.count, 0);
    for (size_t i = 0; i < array_size(others); i++)
        assert_int_equal(config_set_pair(&config, others[i], NULL), 0);
    config_each_difference(&config, &rebuilt, take_difference, &differences);
    assert_int_equal(differences.count, 0);
    for (size_t i = 0; i < array_size(pairs); i++) {
        assert_int_equal(config_set_pair(&config, pairs[i], NULL), 0);
        differences.count = 0;
        config_each_difference(&config, &rebuilt, take_difference, &differences);
        if (differences.count != 1)
            fail_msg("%s: %zu differences", pairs[i], differences.count);
        assert_memory_equal(&config.core, &rebuilt.core, sizeof config.core);
    }
    assert_string_equal(rebuilt.machine_profile, "/etc/x.profile");
    assert_int_equal(rebuilt.sample_period_ns, config.sample_period_ns);
    assert_int_equal(rebuilt.estimate_quantile_permille, 999);
}

CONFIG_TEST(test_policy_as_it_was_named)
{
    CLEANUP(strbuf_release) struct strbuf many = {0};

    assert_string_equal(config.policy, "default");
    set("policy", "thesis+lug");
    assert_string_equal(config.policy, "thesis+lug");
    assert_string_equal(config.core.policy, "lug");
    assert_true(config_set(&config, "policy", "none", NULL) != 0);
    for (int i = 0; i < 40; i++)
        strbuf_puts(&many, i ? "+lug" : "thesis");
    assert_true(config_set(&config, "policy", many.text, NULL) != 0); /* longer than there is room for */
    assert_string_equal(config.policy, "thesis+lug");
}

TEST(test_keys_that_decide)
{
    assert_true(config_key_decides("settle") && config_key_decides("estimator"));
    assert_false(config_key_decides("policy") || config_key_decides("machine_profile"));
    assert_false(config_key_decides("nvml_library") || config_key_decides("none"));
}

RUN_TESTS(set_up, remove_folder)
