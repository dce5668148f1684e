/* dcgm-exporter's files of jobs by GPU: a directory's content afterwards, for any content before. */
#include "unit.h"

#include "daemon/node/job_files.h"

#define FILE_OF(name, text)                                                                                            \
    {                                                                                                                  \
        name, (char[])                                                                                                 \
        {                                                                                                              \
            text                                                                                                       \
        }                                                                                                              \
    }

static char *path_of(const char *name)
{
    static char paths[8][300];
    static unsigned turn;
    char *path = paths[turn++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void expect(const char *name, const char *text)
{
    CLEANUP(free_ptr) char *found = file_text(path_of(name));

    assert_string_equal(found, text);
}

static size_t entries(void)
{
    DIR *list = opendir(folder);
    const struct dirent *entry;
    size_t count = 0;

    while ((entry = readdir(list)))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(list);
    return count;
}

static void set(const struct job_file *files, size_t count)
{
    fail_if(job_files_set(folder, files, count, &trouble) != 0, trouble);
}

TEST_BETWEEN(test_set_and_set_again, make_folder, remove_folder)
{
    const struct job_file before[] = {FILE_OF("0", "12\n13\n"), FILE_OF("1.2", "7\n"), FILE_OF("10", "9\n")};
    const struct job_file after[] = {FILE_OF("0", "13\n"), FILE_OF("10", "9\n")};
    struct stat kept, same, replaced, st;

    mode_t mask = umask(077);
    set(before, 3);
    umask(mask);
    expect("0", "12\n13\n");
    expect("1.2", "7\n");
    assert_int_equal(stat(path_of("0"), &replaced), 0);
    assert_int_equal(replaced.st_mode & 0777, 0644);
    assert_int_equal(stat(path_of("10"), &kept), 0);
    set(after, 2);
    expect("0", "13\n");
    assert_int_equal(stat(path_of("10"), &same), 0);
    assert_true(kept.st_ino == same.st_ino); /* as it was: not written again */
    assert_int_equal(stat(path_of("1.2"), &st), -1);
    assert_int_equal(entries(), 2);
    set(NULL, 0);
    assert_int_equal(entries(), 0);
}

TEST_BETWEEN(test_same_length_other_text, make_folder, remove_folder)
{
    put("0", "12\n");
    set(&(struct job_file)FILE_OF("0", "21\n"), 1);
    expect("0", "21\n");
}

/* Files that carmad, or another program, left there. */
TEST_BETWEEN(test_others, make_folder, remove_folder)
{
    static const char *const kept[] = {"3.", ".5", "3.4.5", "0x1", "README"};

    put("3", "1\n");
    put("3.4", "1\n");
    for (size_t i = 0; i < array_size(kept); i++)
        put(kept[i], "kept");
    put(".carma-0", "half of a fi");
    set(&(struct job_file)FILE_OF("0", "1\n"), 1);
    expect("0", "1\n");
    for (size_t i = 0; i < array_size(kept); i++)
        expect(kept[i], "kept");
    assert_int_equal(entries(), 6);
}

TEST_BETWEEN(test_links_are_not_followed, make_folder, remove_folder)
{
    struct stat st;

    put("victim", "1\n");
    assert_int_equal(symlink("victim", path_of("0")), 0); /* has the wanted content, and is not one of them all
                                                             the same */
    assert_int_equal(symlink("victim", path_of("1")), 0); /* to be replaced */
    assert_int_equal(symlink("victim", path_of(".carma-1")), 0);
    assert_int_equal(symlink("victim", path_of("2")), 0); /* to be removed */
    set((const struct job_file[]){FILE_OF("0", "1\n"), FILE_OF("1", "22\n")}, 2);
    expect("victim", "1\n");
    expect("1", "22\n");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lstat(path_of(i ? "1" : "0"), &st), 0);
        assert_true(S_ISREG(st.st_mode));
    }
    assert_int_equal(lstat(path_of("2"), &st), -1);
    assert_int_equal(lstat(path_of(".carma-1"), &st), -1);
}

TEST_BETWEEN(test_directory_is_a_link, make_folder, remove_folder)
{
    struct job_file file = FILE_OF("0", "1\n");

    assert_int_equal(mkdir(path_of("real"), 0755), 0);
    assert_int_equal(symlink("real", path_of("link")), 0);
    assert_true(job_files_set(path_of("link"), &file, 1, &trouble) < 0);
    assert_non_null(strstr(trouble.text, "no symbolic link"));
    assert_int_equal(access(path_of("real/0"), F_OK), -1);
    assert_int_equal(job_files_set(path_of("new/deep"), &file, 1, &trouble), 0);
    expect("new/deep/0", "1\n");
}

/* One that cannot be written does not keep the others. */
TEST_BETWEEN(test_what_fails, make_folder, remove_folder)
{
    struct job_file files[] = {FILE_OF("0", "1\n"), FILE_OF("1", "2\n")};

    assert_int_equal(mkdir(path_of("0"), 0755), 0);
    put("7", "1\n");
    assert_true(job_files_set(folder, files, 2, &trouble) < 0);
    assert_non_null(strstr(trouble.text, "cannot write '"));
    assert_non_null(strstr(trouble.text, "/0'"));
    expect("1", "2\n");
    assert_int_equal(access(path_of("7"), F_OK), -1);
    assert_int_equal(access(path_of(".carma-0"), F_OK), -1);
}
