/* Progress bars as tqdm and Lightning print them (tests/golden/progress), and lines of a job's progress file. */
#include "unit.h"

#include "launch/progress.h"

static void read_text(struct progress *progress, const char *text)
{
    progress_read_output(progress, text, strlen(text));
}

static void expect(const struct progress *progress, int64_t step, int64_t total, int64_t done)
{
    const struct progress_count *count = progress_newest(progress);

    assert_non_null(count);
    assert_int_equal(count->step, step);
    assert_int_equal(count->total, total);
    assert_int_equal(count->done, done);
}

static char *golden(const char *name, size_t *length)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/progress/%s", CARMA_GOLDEN, name);
    char *text;

    assert_int_equal(file_read(path, 1 << 20, &text, length, NULL), 0);
    return text;
}

/* The file in pieces of this size, as an output that grows is read: the unread rest comes again. */
static void read_golden(struct progress *progress, const char *name, size_t piece)
{
    size_t length, done = 0, end = 0;
    CLEANUP(free_ptr) char *text = golden(name, &length);

    while (end < length) {
        end = end + piece < length ? end + piece : length;
        done += progress_read_output(progress, text + done, end - done);
        assert_true(done <= end);
    }
}

/* Two epochs of 60 steps, with a validation of 10 after each. */
TEST(test_lightning)
{
    for (size_t piece = 1; piece < 8192; piece = piece * 3 + 1) {
        struct progress progress = {0};
        const struct progress_bar *training = NULL;
        read_golden(&progress, "lightning-2.0.txt", piece);
        for (size_t i = 0; i < PROGRESS_BARS; i++)
            training = progress.bars[i].count.total == 60 ? &progress.bars[i] : training;
        assert_non_null(training);
        assert_int_equal(training->count.step, 60);
        assert_int_equal(training->count.done, 120);
        if (piece > 100) /* else the pieces of a validation seem as many looks in which it stands still */
            expect(&progress, 60, 60, 120);
    }
}

/* Three epochs of 100 steps: their bar goes before that of the epochs while it runs, and counts them together. */
TEST(test_tqdm)
{
    struct progress progress = {0}, kinds = {0};
    size_t length;
    CLEANUP(free_ptr) char *text = golden("tqdm-4.70-nested.txt", &length);
    const char *second = memmem(text, length, "epoch 1:  50%", 13), *end;

    assert_non_null(second);
    end = memchr(second, '\r', (size_t)(text + length - second));
    progress_read_output(&progress, text, (size_t)(end - text));
    expect(&progress, 50, 100, 150);
    read_golden(&kinds, "tqdm-4.70-kinds.txt", 64);
    for (size_t i = 0; i < PROGRESS_BARS; i++) /* with rounded counts ("1.06k/5.00k"), and without a bar: not read */
        assert_true(!kinds.bars[i].moved || kinds.bars[i].count.total == 200 || kinds.bars[i].count.total == 0);
    expect(&kinds, 120, 0, 120);
}

#define BAR(percent, count) percent "%|#####     | " count " [00:12<00:21, 29.9it/s]"

TEST(test_bars)
{
    struct progress progress = {0};

    read_text(&progress,
              "loss 0.5\nstep 3/10 [x]\nacc: 37%| done |\n" BAR("80", "370/1000") "\n" BAR("137", "137/100"));
    assert_null(progress_newest(&progress)); /* nothing that looks a little like one; the numbers do not agree */
    read_text(&progress, BAR("37", "370/1000"));
    expect(&progress, 370, 1000, 370);
    read_text(&progress, "\r" BAR("36", "368/1000")); /* another process's, of the same loop */
    expect(&progress, 370, 1000, 370);
    read_text(&progress, "\r" BAR(" 1", "10/1000")); /* the next epoch */
    expect(&progress, 10, 1000, 1010);
    read_text(&progress, "\r" BAR("50", "10/20")); /* a shorter one beside it */
    expect(&progress, 10, 1000, 1010);
    for (int i = 0; i < 70; i++) /* the long one is not seen any more */
        read_text(&progress, i % 2 ? BAR("55", "11/20") "\r" : BAR("15", "3/20") "\r");
    assert_int_equal(progress_newest(&progress)->total, 20);
    progress_forget_bars(&progress);
    assert_null(progress_newest(&progress));
    read_text(&progress, "\r" BAR("50", "10/20"));
    expect(&progress, 10, 20, 10);
}

/* An end that is missing is waited for, but not for ever. */
TEST(test_pieces)
{
    struct progress progress = {0};
    static char endless[2000];

    assert_int_equal(progress_read_output(&progress, "one\ntwo", 7), 4);
    memset(endless, 'x', sizeof endless);
    assert_int_equal(progress_read_output(&progress, endless, 1000), 0);
    assert_int_equal(progress_read_output(&progress, endless, sizeof endless), sizeof endless);
}

TEST(test_lines)
{
    struct progress progress = {0};

    progress_read_lines(&progress, "x\n\n-1\n5/4\n3/x\n3 \n1234567890123\n7", 33);
    assert_null(progress_newest(&progress));
    progress_read_lines(&progress, "5\n9\n", 4);
    expect(&progress, 9, 0, 9);
    progress_read_lines(&progress, "12/100\n", 7);
    expect(&progress, 12, 100, 12);
    progress_read_lines(&progress, "100/100\n3/100\n", 14);
    expect(&progress, 3, 100, 103);
    read_text(&progress, BAR("37", "370/1000")); /* the job's own lines go before a bar */
    expect(&progress, 3, 100, 103);
}

/* A job that counts without end does not make a status that nobody can read. */
TEST(test_the_sum_is_bounded)
{
    static const char pass[] = "999999999999/999999999999\n0/999999999999\n";
    struct progress progress = {0};

    for (int i = 0; i < 2500; i++) {
        progress_read_lines(&progress, pass, sizeof pass - 1);
        assert_true(progress_newest(&progress)->done >= 0 && progress_newest(&progress)->done <= PROGRESS_DONE_MOST);
    }
}
