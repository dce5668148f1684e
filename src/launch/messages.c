#include "launch/messages.h"

#include "base/memory.h"

#define SET(name) (1u << MESSAGE_##name)

/* Sources: pytorch c10/cuda/CUDACachingAllocator.cpp, c10/core/impl/alloc_cpu.cpp, aten THC (before 1.5); tensorflow
 * and openxla xla/tsl/framework/bfc_allocator.cc, xla/stream_executor/cuda, tf_allocator_adapter.cc; the names and
 * descriptions of the status codes of CUDA, cuBLAS, cuDNN (9 has finer ones), cuSOLVER, cuSPARSE, cuFFT, cuRAND, OpenCL
 * and Vulkan; NCCL's and TensorRT's logs; the errors of vLLM, SGLang, text-generation-inference, Accelerate,
 * bitsandbytes, Paddle, ONNX Runtime, RMM, XGBoost, CUDA.jl, llama.cpp, Ray; Slurm's and the kernel's words for a
 * process that was killed; HAMi-core. tests/golden/messages.tsv has a message of each, with its source. All in lower
 * case. */
const struct message_rule message_rules[] = {
    /* never about a GPU of ours: Apple's GPUs, Google's TPUs; attempts after which the program goes on with less */
    {OUTPUT_NOTHING, .all = {"mps backend out of memory"}},
    {OUTPUT_NOTHING, .all = {"memory space hbm"}},
    {OUTPUT_NOTHING, .all = {"xla:tpu"}},
    {OUTPUT_NOTHING, .all = {"the caller indicates that this is not a failure"}},
    {OUTPUT_NOTHING, .all = {"cuda_error_out_of_memory", "from device:"}},
    {OUTPUT_NOTHING, .all = {"cuda_error_out_of_memory", "on host:"}},
    {OUTPUT_NOTHING, .all = {"cuda_error_out_of_memory", "to allocate host"}},
    {OUTPUT_NOTHING, .all = {"of pinned memory"}},               /* llama.cpp goes on with other memory */
    {OUTPUT_NOTHING, .all = {"insufficient memory", "tactic"}},  /* TensorRT takes another */
    {OUTPUT_NOTHING, .all = {"out of resource: shared memory"}}, /* Triton: of a multiprocessor */
    {OUTPUT_NOTHING, .all = {"received message larger than max"}},
    {OUTPUT_HOST_OOM, .all = {"out of host memory"}},
    {OUTPUT_HOST_OOM, .all = {"error_out_of_host_memory"}},
    {OUTPUT_HOST_OOM, .all = {"cl_out_of_host_memory"}},
    /* the host's OOM killer, and programs that report it */
    {OUTPUT_HOST_OOM, .all = {"out of memory: kill"}},
    {OUTPUT_HOST_OOM, .all = {"slurmstepd", "oom"}},
    {OUTPUT_HOST_OOM, .all = {"slurmstepd", "memory limit"}},
    {OUTPUT_HOST_OOM, .all = {"due to the node running low on memory"}},
    {OUTPUT_HOST_OOM, .all = {"dataloader worker", "is killed by signal: killed"}},
    {OUTPUT_HOST_OOM, .all = {"dataloader worker", "bus error"}}, /* /dev/shm is the host's memory, too */
    {OUTPUT_HOST_OOM, .all = {"/dev/shm", "failed to extend"}},
    {OUTPUT_HOST_OOM, .all = {"/dev/shm", "no space left on device"}},
    {OUTPUT_HOST_OOM, .all = {"unable to write to file </torch_", "no space left on device"}},
    {OUTPUT_HOST_OOM, .all = {"java heap space"}},
    {OUTPUT_HOST_OOM, .all = {"heap out of memory"}},
    {OUTPUT_HOST_OOM, .all = {"runtime: out of memory"}, .none = {"cuda", "gpu"}},
    /* PyTorch */
    {OUTPUT_GPU_OOM, .all = {"cuda out of memory. tried to allocate"}},
    {OUTPUT_GPU_OOM, .all = {"torch.outofmemoryerror"}, .exception = true},
    {OUTPUT_GPU_OOM, .all = {"torch.cuda.outofmemoryerror"}, .exception = true},
    {OUTPUT_GPU_OOM, .all = {"cuda error: out of memory"}},
    {OUTPUT_GPU_OOM, .all = {"cuda driver error: out of memory"}},
    {OUTPUT_GPU_OOM, .all = {"cuda runtime error (2)"}},
    {OUTPUT_GPU_OOM, .all = {"thcudacheck fail", "error=2 "}},
    {OUTPUT_GPU_OOM, .all = {"allocation on device", "would exceed allowed memory"}},
    /* built on PyTorch */
    {OUTPUT_GPU_OOM, .all = {"free memory on device", "less than desired gpu memory utilization"}},
    {OUTPUT_GPU_OOM, .all = {"no available memory for the cache blocks"}},
    {OUTPUT_GPU_OOM, .all = {"kv cache", "larger than the available kv cache memory"}},
    {OUTPUT_GPU_OOM, .all = {"maximum number of tokens that can be stored in kv cache"}},
    {OUTPUT_GPU_OOM, .all = {"not enough memory", "mem-fraction-static"}},
    {OUTPUT_GPU_OOM, .all = {"not enough memory to handle", "prefill tokens"}},
    {OUTPUT_GPU_OOM, .all = {"no executable batch size found"}},
    {OUTPUT_GPU_OOM, .all = {"enough gpu ram to fit"}},
    {OUTPUT_GPU_OOM, .all = {"error out of memory at line"}},
    {OUTPUT_GPU_OOM, .all = {"triton error [cuda]: out of memory"}},
    /* TensorFlow says the same of the CPU's memory; before 1.5 it did not name the device, and meant the GPU */
    {OUTPUT_GPU_OOM, .all = {"oom when allocating tensor", "device:gpu"}},
    {OUTPUT_HOST_OOM, .all = {"oom when allocating tensor", "device:cpu"}},
    {OUTPUT_GPU_OOM, .all = {"resourceexhaustederror", "oom when allocating tensor"}, .none = {"allocator cpu"}},
    {OUTPUT_GPU_OOM, .all = {"resourceexhaustederror", "device:gpu"}, .none = {"larger than max", "device:cpu"}},
    {OUTPUT_GPU_OOM, .all = {"failed to allocate memory [op:", "device:gpu"}},
    {OUTPUT_GPU_OOM, .all = {"resource_exhausted", "failed to allocate memory"}, .none = {"device:cpu"}},
    {OUTPUT_GPU_OOM, .all = {"resourceexhaustederror: graph execution error"}},
    {OUTPUT_GPU_OOM, .all = {"dst tensor is not initialized"}},
    /* the allocator's last word; allocators with other names (cpu, cuda_host_bfc, gpu_host_bfc) hold host memory */
    {OUTPUT_GPU_OOM, .all = {"allocator (gpu_", "ran out of memory trying to allocate"}, .none = {"gpu_host"}},
    {OUTPUT_HOST_OOM, .all = {"allocator (", "ran out of memory trying to allocate"}},
    /* JAX; the last is said of the CPU's memory, too, but hardly by a job that has a GPU */
    {OUTPUT_GPU_OOM, .all = {"resource_exhausted: out of memory while trying to allocate"}},
    {OUTPUT_GPU_OOM, .all = {"resource exhausted: out of memory while trying to allocate"}},
    {OUTPUT_GPU_OOM, .all = {"resource_exhausted: failed to allocate request for"}},
    {OUTPUT_GPU_OOM, .all = {"out of memory allocating", " bytes"}},
    {OUTPUT_GPU_OOM, .all = {"failed to allocate ", " bytes for new constant"}},
    /* CUDA itself, and programs close to it */
    {OUTPUT_GPU_OOM, .all = {"cuda_error_out_of_memory"}},
    {OUTPUT_GPU_OOM, .all = {"cudaerrormemoryallocation"}},
    {OUTPUT_GPU_OOM, .all = {"cuda failure", "'out of memory'"}},
    {OUTPUT_GPU_OOM, .all = {"call to cumemalloc returned error 2"}}, /* OpenACC */
    {OUTPUT_GPU_OOM, .all = {"optix_error_device_out_of_memory"}},
    {OUTPUT_GPU_OOM, .all = {"failed to cuda calloc"}},
    {OUTPUT_GPU_OOM, .all = {"cupy.cuda.memory.outofmemoryerror"}, .exception = true},
    {OUTPUT_GPU_OOM, .all = {"std::bad_alloc: out_of_memory: cuda error"}},
    {OUTPUT_GPU_OOM, .all = {"out_of_memory: rmm failure"}},
    {OUTPUT_GPU_OOM, .all = {"rmm failure", "maximum pool size exceeded"}},
    {OUTPUT_GPU_OOM, .all = {"thrust::system::detail::bad_alloc"}},
    {OUTPUT_GPU_OOM, .all = {"device_helpers.cuh", "memory allocation error"}},
    {OUTPUT_GPU_OOM, .all = {"[hami-core error", "device ", " oom "}},
    {OUTPUT_GPU_OOM, .all = {"error code 2: outofmemory"}}, /* TensorRT */
    {OUTPUT_GPU_OOM, .all = {"requested amount of gpu memory", "could not be allocated"}},
    {OUTPUT_GPU_OOM, .all = {"bfc_arena.cc", "failed to allocate memory for requested buffer"}}, /* ONNX Runtime */
    {OUTPUT_GPU_OOM, .all = {"bfc_arena.cc", "is smaller than requested bytes"}},
    {OUTPUT_GPU_OOM, .all = {"unable to allocate cuda"}}, /* llama.cpp: "CUDA0 buffer" */
    {OUTPUT_GPU_OOM, .all = {"failed to allocate cuda", "buffer"}},
    {OUTPUT_GPU_OOM, .all = {"mem_object_allocation_failure"}},
    {OUTPUT_GPU_OOM, .all = {"error_out_of_device_memory"}},
    {OUTPUT_GPU_OOM, .all = {"erroroutofdevicememory"}},
    {OUTPUT_GPU_OOM, .all = {"out of gpu memory"}}, /* CUDA.jl */
    {OUTPUT_GPU_OOM, .all = {"gpuretryoom"}},
    {OUTPUT_GPU_OOM, .all = {"wgpu", "not enough memory left"}},
    /* a library could not make its handle or workspace: the memory is gone */
    {OUTPUT_HOST_OOM, .all = {"cudnn_status_internal_error_host_allocation_failed"}},
    {OUTPUT_GPU_HANDLE, .all = {"cudnn_status_internal_error_device_allocation_failed"}},
    {OUTPUT_GPU_HANDLE, .all = {"cublas_status_alloc_failed"}},
    {OUTPUT_GPU_HANDLE, .all = {"cudnn_status_alloc_failed"}},
    {OUTPUT_GPU_HANDLE, .all = {"cusolver_status_alloc_failed"}},
    {OUTPUT_GPU_HANDLE, .all = {"cusparse_status_alloc_failed"}},
    {OUTPUT_GPU_HANDLE, .all = {"cutensor_status_alloc_failed"}},
    {OUTPUT_GPU_HANDLE, .all = {"cutensornet_status_alloc_failed"}},
    {OUTPUT_GPU_HANDLE, .all = {"custatevec_status_alloc_failed"}},
    {OUTPUT_GPU_HANDLE, .all = {"cufft_alloc_failed"}},
    {OUTPUT_GPU_HANDLE, .all = {"curand_status_allocation_failed"}},
    {OUTPUT_GPU_HANDLE, .all = {"cublas handle", "the resource allocation failed"}},
    /* these have other causes as often, and the text does not tell */
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"cublas_status_not_initialized"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"cudnn_status_not_initialized"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"cudnn_status_internal_error"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"cusolver_status_not_initialized"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"cusparse_status_insufficient_resources"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"curand_status_initialization_failed"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"cublas handle", "the library was not initialized"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"dnn library initialization failed"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"unable to find a valid cudnn algorithm"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"find was unable to find an engine to execute"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"nvml_success == r internal assert failed"}},
    /* MPS (CUDA's errors 805 to 810) */
    {OUTPUT_MPS, .all = {"cuda_error_mps_"}},
    {OUTPUT_MPS, .all = {"cudaerrormps"}},
    {OUTPUT_MPS, .all = {"mps client failed to connect to the mps"}},
    {OUTPUT_MPS, .all = {"procedural call between the mps server and the mps client failed"}},
    {OUTPUT_MPS, .all = {"mps server is not ready to accept"}},
    {OUTPUT_MPS, .all = {"the hardware resources required to create mps client"}},
    {OUTPUT_MPS, .all = {"the hardware resources required to support device connections"}},
    {OUTPUT_MPS, .all = {"mps client has been terminated by the server"}},
    /* the GPU (CUDA's errors 214, 220, 226) */
    {OUTPUT_GPU_ERROR, .all = {"cuda", "uncorrectable ecc error encountered"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda", "uncorrectable nvlink error detected"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda_error_ecc_uncorrectable"}},
    {OUTPUT_GPU_ERROR, .all = {"cudaerroreccuncorrectable"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda_error_nvlink_uncorrectable"}},
    {OUTPUT_GPU_ERROR, .all = {"cudaerrornvlinkuncorrectable"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda_error_contained"}},
    {OUTPUT_GPU_ERROR, .all = {"cudaerrorcontained"}},
    {OUTPUT_GPU_ERROR, .all = {"invalid access of peer gpu memory over nvlink or a hardware error"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda runtime error (39)"}},
    {OUTPUT_GPU_ERROR, .all = {"gpu has fallen off the bus"}},
    {OUTPUT_GPU_ERROR, .all = {"gpu is lost"}},
    /* a device that does not start: CUDA's errors 3, 46, 100, 127, 304, 802 to 804, 999, and what frameworks, NVML and
     * containers make of them */
    {OUTPUT_GPU_ERROR, .all = {"cuda", "initialization error"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda", "devices are busy or unavailable"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda", "device(s) is/are busy or unavailable"}},
    {OUTPUT_GPU_ERROR, .all = {"no cuda-capable device is detected"}},
    {OUTPUT_GPU_ERROR, .all = {"no cuda gpus are available"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda", "os call failed or operation not supported on this os"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda", "system not yet initialized"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda", "unsupported display driver / cuda driver combination"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda", "startup failure in cuda runtime"}},
    {OUTPUT_GPU_ERROR, .all = {"forward compatibility was attempted on non supported hw"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda", "unknown error"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda_error_not_initialized"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda_error_device_unavailable"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda_error_no_device"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda_error_operating_system"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda_error_system_"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda_error_unknown"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda_error_compat_not_supported"}},
    {OUTPUT_GPU_ERROR, .all = {"cudaerrorstartupfailure"}},
    {OUTPUT_GPU_ERROR, .all = {"cudaerrorcompatnotsupported"}},
    {OUTPUT_GPU_ERROR, .all = {"cudaerrorinitializationerror"}},
    {OUTPUT_GPU_ERROR, .all = {"cudaerrordevicesunavailable"}},
    {OUTPUT_GPU_ERROR, .all = {"cudaerrornodevice"}},
    {OUTPUT_GPU_ERROR, .all = {"cudaerroroperatingsystem"}},
    {OUTPUT_GPU_ERROR, .all = {"cudaerrorsystem"}},
    {OUTPUT_GPU_ERROR, .all = {"cudaerrorunknown"}},
    {OUTPUT_GPU_ERROR, .all = {"cuda driver initialization failed"}},
    {OUTPUT_GPU_ERROR, .all = {"unexpected error from cudagetdevicecount"}},
    {OUTPUT_GPU_ERROR, .all = {"failed call to cuinit"}},
    {OUTPUT_GPU_ERROR, .all = {"unable to initialize backend 'cuda'"}},
    {OUTPUT_GPU_ERROR, .all = {"no visible gpu devices"}},
    {OUTPUT_GPU_ERROR, .all = {"no supported devices found for platform cuda"}},
    {OUTPUT_GPU_ERROR, .all = {"failed to initialize nvml"}},
    {OUTPUT_GPU_ERROR, .all = {"nvmlerror_drivernotloaded"}},
    {OUTPUT_GPU_ERROR, .all = {"nvmlerror_librmversionmismatch"}},
    {OUTPUT_GPU_ERROR, .all = {"couldn't communicate with the nvidia driver"}},
    {OUTPUT_GPU_ERROR, .all = {"nvidia-container-cli", "initialization error"}},
    /* a kernel's fault: CUDA's errors 700, 710, 714 to 719 */
    {OUTPUT_GPU_FAULT, .all = {"cuda", "an illegal memory access was encountered"}},
    {OUTPUT_GPU_FAULT, .all = {"cuda", "device-side assert triggered"}},
    {OUTPUT_GPU_FAULT, .all = {"cuda", "hardware stack error"}},
    {OUTPUT_GPU_FAULT, .all = {"cuda", "an illegal instruction was encountered"}},
    {OUTPUT_GPU_FAULT, .all = {"cuda", "misaligned address"}},
    {OUTPUT_GPU_FAULT, .all = {"cuda", "operation not supported on global/shared address space"}},
    {OUTPUT_GPU_FAULT, .all = {"cuda", "invalid program counter"}},
    {OUTPUT_GPU_FAULT, .all = {"cuda", "unspecified launch failure"}},
    /* the host's memory. ENOMEM is also said of limits: of locked memory (RDMA), of thread-local storage */
    {OUTPUT_HOST_OOM, .all = {"defaultcpuallocator: can't allocate memory"}},
    {OUTPUT_HOST_OOM, .all = {"defaultcpuallocator: not enough memory"}},
    {OUTPUT_HOST_OOM, .all = {"_arraymemoryerror: unable to allocate"}},
    {OUTPUT_HOST_OOM, .all = {"failed to allocate cpu memory"}},
    {OUTPUT_HOST_OOM, .all = {"memoryerror"}, .none = {"cuda", "device"}, .exception = true},
    {OUTPUT_HOST_OOM, .all = {"arrowmemoryerror"}, .exception = true},
    {OUTPUT_HOST_OOM, .all = {"error: outofmemoryerror()"}},              /* Julia */
    {OUTPUT_HOST_OOM, .all = {"memory allocation of ", " bytes failed"}}, /* Rust */
    {OUTPUT_HOST_OOM, .all = {"error: cannot allocate vector of size"}},  /* R */
    {OUTPUT_HOST_OOM, .all = {"std::bad_alloc"}, .none = {"catch", "out_of_memory"}},
    {OUTPUT_HOST_OOM, .all = {"cannot allocate memory"}, .none = {"ibv_", "static tls", "mlock"}},
    /* in general: a GPU's name and words for a shortage in one message */
    {OUTPUT_GPU_OOM, .sets = SET(GPU) | SET(SHORTAGE), .no_sets = SET(ELSEWHERE)},
    {OUTPUT_GPU_OOM, .sets = SET(GPU) | SET(REFUSED) | SET(AMOUNT), .no_sets = SET(ELSEWHERE)},
};
const size_t message_rule_count = array_size(message_rules);

static const char *const gpu_words[] = {
    "gpu",      "cuda",     "cublas",   "cudnn",     "nccl",          "vram",         "nvidia", "vulkan",
    "opencl",   "tensorrt", "[trt]",    "cupy",      "rmm::",         "wgpu",         "nvrtc",  "device 0",
    "device 1", "device 2", "device 3", "on device", "device memory", "video memory", NULL};
static const char *const shortage_words[] = {"out of memory",
                                             "outofmemory",
                                             "out_of_memory",
                                             "out of cuda memory",
                                             "out of device memory",
                                             "out of video memory",
                                             "out of vram",
                                             "insufficient memory",
                                             "insufficient gpu memory",
                                             "insufficient device memory",
                                             "insufficient vram",
                                             "not enough memory",
                                             "not enough gpu memory",
                                             "not enough free memory",
                                             "not enough vram",
                                             "not enough device memory",
                                             "memory exhausted",
                                             "cuda oom",
                                             "gpu oom",
                                             "memory allocation failed",
                                             "memory allocation failure",
                                             "memory allocation error",
                                             NULL};
static const char *const refused_words[] = {"failed to allocate", "cannot allocate",    "can't allocate",
                                            "unable to allocate", "could not allocate", "couldn't allocate",
                                            "cudamalloc failed",  "allocation failed",  NULL};
static const char *const amount_words[] = {" bytes", " mib", " gib", "mib ", "gib ", " mb", " gb", "memory", NULL};
static const char *const elsewhere_words[] = {
    "host memory", "pinned",       "cpu memory", "system memory", "system ram", "main memory", "shared memory",
    "on host",     "cuda_host",    "gpu_host",   "locked memory", "mlock",      "ibv_",        "static tls",
    "heap space",  " disk",        "quota",      "tactic",        " metal",     " tpu",        "oom_kill",
    "oom-kill",    "falling back", "fall back",  "shared librar", "device:cpu", NULL};

const char *const *const message_sets[MESSAGE_SET_COUNT] = {
    [MESSAGE_GPU] = gpu_words,       [MESSAGE_SHORTAGE] = shortage_words,   [MESSAGE_REFUSED] = refused_words,
    [MESSAGE_AMOUNT] = amount_words, [MESSAGE_ELSEWHERE] = elsewhere_words,
};

const char *const message_hedges[] = {
    "avoid",     "prevent",   "if you run", "may run",    "might run", "could run",   "can run",
    "will run",  "would run", "to run",     "may cause",  "can cause", "might cause", "could cause",
    "cause of ", "may lead",  "can lead",   "could lead", "risk of",   "in case of",  "result in",
    "no out of", "nothing ",  "without ",   "until ",     "never ",    NULL};

const char *const message_handled[] = {"caught",   "retry",    "halving",       "skipping",      "recover",
                                       "reducing", "ignoring", "smaller batch", "going on with", NULL};
