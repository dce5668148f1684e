/* Time limits and the signal before one, as people write them. */
#include "unit.h"

#include "api/job_signal.h"

static void takes_signal(const char *text, uint32_t signal, int64_t seconds)
{
    uint32_t got = 0;
    int64_t before_ns = 0;

    fail_if(job_signal_parse(text, &got, &before_ns, &trouble), trouble);
    assert_int_equal(got, signal);
    assert_true(before_ns == seconds * NS_PER_SEC);
}

static void refuses_signal(const char *text, const char *expected)
{
    uint32_t signal = 77;
    int64_t before_ns = 77;

    assert_int_equal(job_signal_parse(text, &signal, &before_ns, &trouble), -EINVAL);
    assert_string_equal(trouble.text, expected);
    assert_true(signal == 77 && before_ns == 77);
}

TEST(test_signals)
{
    takes_signal("USR1@120", SIGUSR1, 120);
    takes_signal("SIGTERM@5m", SIGTERM, 300);
    takes_signal("usr2@1:30", SIGUSR2, 90);
    takes_signal("12", 12, 60); /* as with Slurm, a minute */
    takes_signal("64@1", 64, 1);
    refuses_signal("USR3@60", "there is no signal 'USR3': did you mean USR1?");
    refuses_signal("@60", "there is no signal '': write a name such as USR1, or a number");
    refuses_signal("65@60", "there is no signal '65': write a name such as USR1, or a number");
    refuses_signal("KILL@60", "signal 'KILL' cannot be caught: choose one that can, such as USR1");
    refuses_signal("19", "signal '19' cannot be caught: choose one that can, such as USR1");
    refuses_signal("USR1@soon",
                   "'soon' is not a time before the limit: write seconds, or a number with a unit such as 5m");
    refuses_signal("USR1@", "'' is not a time before the limit: write seconds, or a number with a unit such as 5m");
    refuses_signal("USR1@0", "'0' is out of range: more than 0, at most ten years");
}

TEST(test_names)
{
    char text[JOB_SIGNAL_TEXT];

    assert_string_equal(job_signal_name(SIGUSR1, text), "USR1");
    assert_string_equal(job_signal_name(50, text), "50");
    assert_string_equal(job_signal_name(4000000000, text), "4000000000");
    assert_false(job_signal_can_be_caught(0) || job_signal_can_be_caught(SIGKILL) || job_signal_can_be_caught(65));
    assert_true(job_signal_can_be_caught(SIGTERM));
}

/* The forms are those of every time (test_base_units.c). */
TEST(test_times)
{
    int64_t limit_ns = 77;

    assert_int_equal(job_time_parse("0", &limit_ns, &trouble), -EINVAL);
    assert_string_equal(trouble.text, "'0' is out of range: more than 0, at most ten years");
    assert_int_equal(job_time_parse("3651d", &limit_ns, &trouble), -EINVAL);
    assert_int_equal(job_time_parse("tomorrow", &limit_ns, &trouble), -EINVAL);
    assert_true(limit_ns == 77);
}
