/* A backend over one of the tests' NVML libraries (tests/fakes/fake_nvml.c), through the real loader. */
#ifndef CARMA_TESTS_NVML_FIXTURE_H
#define CARMA_TESTS_NVML_FIXTURE_H

#include "unit.h"

#include "gpu/frame.h"
#include "gpu/nvml/abi.h"
#include "gpu/nvml/nvml.h"

static struct gpu_node_reading reading;

/* Looks `times`, 105 ms apart, at a library that behaves as `words` say. */
static inline void look(const char *library, const char *words, int times)
{
    struct error err = {""};
    void *looker = NULL;

    setenv("FAKE_NVML", words, 1);
    fail_if(gpu_backend_nvml.open(&(struct gpu_backend_options){.library = library}, &looker, &err) < 0, err);
    while (times--) {
        assert_int_equal(gpu_backend_nvml.read(looker, &reading, &err), 0);
        if (times)
            usleep(105000);
    }
    gpu_backend_nvml.close(looker);
}

/* A backend over more than one look, while the library's answers change. */
static void *backend;
static struct gpu_backend_options options = {.library = FAKE_NEW};

static inline void begin(const char *words)
{
    struct error err = {""};

    setenv("FAKE_NVML", words, 1);
    fail_if(gpu_backend_nvml.open(&options, &backend, &err) < 0, err);
}

static inline void look_again(const char *words)
{
    struct error err = {""};

    setenv("FAKE_NVML", words, 1);
    fail_if(gpu_backend_nvml.read(backend, &reading, &err) < 0, err);
}

static inline void begin_and_look(const char *words)
{
    begin(words);
    look_again(words);
}

static inline void end(void)
{
    gpu_backend_nvml.close(backend);
}

static inline void assert_metric(const struct gpu_reading *gpu, enum gpu_metric metric, int64_t value)
{
    assert_int_equal(gpu->metrics[metric].source, GPU_SOURCE_GPM);
    assert_int_equal(gpu->metrics[metric].value, value);
}

#define RUN_NVML_TESTS                                                                                                 \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        unsetenv("CARMA_TIME_SCALE");                                                                                  \
        return unit_tests_run("tests", NULL, NULL);                                                                    \
    }

#endif
