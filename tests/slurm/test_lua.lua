-- Usage: lua5.1 test_lua.lua INTEGRATIONS: the functions of job_submit.lua and cli_filter.lua, without a Slurm.
local folder = arg[1]
local said
slurm = {
  SUCCESS = 0,
  ERROR = -1,
  log_user = function(text) said = text end,
  log_error = function(text, ...) said = string.format(text, ...) end,
}
dofile(folder .. "/job_submit.lua")
dofile(folder .. "/cli_filter.lua")

local function expect(got, wanted, what)
  assert(got == wanted, string.format("%s: %s, not %s", what, tostring(got), tostring(wanted)))
end

local sizes = { ["12G"] = 12288, ["1.5G"] = 1536, ["100M"] = 100, ["1025K"] = 2, ["1T"] = 1048576, ["1048577"] = 2 }
for text, mib in pairs(sizes) do
  expect(carma_mib(text), mib, text)
end
expect(carma_mib("much"), nil, "much")
expect(carma_mib("12GB"), nil, "12GB")

-- A job as slurmctld shows it: the options' environment counts from 0.
local function submit(options, gres, nodes, more)
  local job = { spank_job_env_size = 0, spank_job_env = {}, tres_per_node = gres, min_nodes = nodes }
  for name, value in pairs(more or {}) do
    job[name] = value
  end
  for name, value in pairs(options) do
    job.spank_job_env[job.spank_job_env_size] = "_SLURM_SPANK_OPTION_carma_carma_" .. name .. "=" .. value
    job.spank_job_env_size = job.spank_job_env_size + 1
  end
  said = nil
  return slurm_job_submit(job, {}, 1000), job.gres or job.tres_per_node
end

local batch, never_again = { script = "#!/bin/sh", requeue = 65534 }, { script = "#!/bin/sh", requeue = 0 }
local accepted = {
  { { mem = "12G" }, nil, "gpumem:12288M,gpusm:600,gpuslot:2" },
  { { mem = "20G" }, nil, "gpumem:20480M,gpusm:600,gpuslot:2" },
  { { mem = "25G" }, nil, "gpumem:25600M,gpubig:1,gpusm:600,gpuslot:2" },
  { { mem = "25G", gpus = "2" }, nil, "gpumem:51200M,gpubig:2,gpusm:1200,gpuslot:4" },
  { { mem = "40G" }, nil, "gpumem:40960M,gpubig:1,gpusm:1500,gpuslot:2" },
  { { mem = "5G", exclusive = "(null)" }, nil, "gpumem:40960M,gpubig:1,gpusm:1500,gpuslot:2" },
  { { gpus = "2" }, nil, "gpumem:81920M,gpubig:2,gpusm:3000,gpuslot:4" },
  { { gpus = "2" }, nil, "gpumem:81920M,gpubig:2,gpusm:3000,gpuslot:4", nil, never_again },
  { { gpus = "2" }, nil, "gpumem:45056M,gpubig:2,gpusm:1200,gpuslot:5", nil, batch },
  { { gpus = "1" }, nil, "gpumem:40960M,gpubig:1,gpusm:1500,gpuslot:2", 2, batch },
  { { gpus = "1", exclusive = "(null)" }, nil, "gpumem:40960M,gpubig:1,gpusm:1500,gpuslot:2", nil, batch },
  { { mem = "5G" }, nil, "gpumem:5120M,gpusm:600,gpuslot:2", nil, batch },
  { { summary = "/m" }, "gres:gpumem:30G", "gpumem:30720M,gpubig:1,gpusm:600,gpuslot:2", nil, batch },
  { { mem = "5G" }, nil, "gpumem:40960M,gpubig:1,gpusm:1500,gpuslot:2", 2 },
  { { mem = "5G", share = "mps" }, nil, "gpumem:5120M,gpusm:600,gpuslot:2", 2 },
  { { mem = "5G" }, nil, "gpumem:5120M,gpusm:600,gpuslot:2", 4294967294 },
  { { summary = "/m", gpus = "2" }, "gres:gpumem:11154M,gres:gpusm:1110", "gpumem:11154M,gpusm:1200,gpuslot:4" },
  { { summary = "/m" }, "gres:gpumem:5G,gres:gpusm:9000", "gpumem:5120M,gpusm:600,gpuslot:2" },
  { { summary = "/m", exclusive = "(null)" }, "gres:gpumem:5G,gres:gpusm:555", "gpumem:40960M,gpubig:1,gpusm:1500,gpuslot:2" },
  { { summary = "/m" }, "gres:nic:1,gres:gpumem:30G", "gpumem:30720M,gpubig:1,gpusm:600,gpuslot:2,nic:1" },
  { { summary = "/m" }, "gres/nic:1,gres/gpumem:30G", "gpumem:30720M,gpubig:1,gpusm:600,gpuslot:2,nic:1" },
  { {}, nil, nil },
}
for number, case in ipairs(accepted) do
  local code, list = submit(case[1], case[2], case[4], case[5])
  expect(code, slurm.SUCCESS, "case " .. number .. ": " .. tostring(said))
  expect(list, case[3], "case " .. number)
end
local refused = {
  { { mem = "41G" }, nil, "one has 40960 MiB" },
  { { mem = "12" }, nil, "not a size with a unit" },
  { { mem = "5G", gpus = "0" }, nil, "not a number of GPUs" },
  { { mem = "5G", gpus = "1.5" }, nil, "not a number of GPUs" },
  { {}, "gres:gpumem:1G", "--carma-mem" },
  { {}, "gres/gpumem:1G", "--carma-mem" },
  { {}, "gres:gpubig:1", "--carma-mem" },
  { {}, "gres:gpusm:1", "--carma-mem" },
  { {}, "gres:gpuslot:1", "--carma-mem" },
  { { mem = "5G", gpus = "5" }, nil, "5 GPUs are asked for on each node; one has 4" },
  { { mem = "5G", gpus = "0x2" }, nil, "not a number of GPUs" },
  { { share = "mps", exclusive = "(null)" }, nil, "shares no GPU" },
}
for number, case in ipairs(refused) do
  expect(submit(case[1], case[2]), slurm.ERROR, "refused " .. number)
  assert(said:find(case[3], 1, true), said)
end

-- Slurm's own requests of GPUs: what slurmctld shows of them; the counts, and what is left of them.
local NONE16, NONE32 = 65534, 4294967294
local function old(asked)
  local job = { num_tasks = NONE32, ntasks_per_node = NONE16, min_nodes = NONE32, sockets_per_node = NONE16, spank_job_env_size = 0 }
  for name, value in pairs(asked) do
    job[name] = value
  end
  said = nil
  return slurm_job_submit(job, {}, 1000), job
end
local one, two = "gpumem:40960M,gpubig:1,gpusm:1500,gpuslot:2", "gpumem:81920M,gpubig:2,gpusm:3000,gpuslot:4"
for number, case in ipairs({
  { { tres_per_node = "gres:gpu" }, one },
  { { tres_per_node = "gres:gpu:2" }, two },
  { { tres_per_node = "gres/gpu:a100:2" }, two },
  { { tres_per_node = "gres:gpu:a100:1,gres:gpu:t4:1,gres:nic:1" }, two .. ",nic:1" },
  { { tres_per_job = "gres:gpu:2" }, two, 1 },
  { { tres_per_job = "gres:gpu:8", min_nodes = 4 }, two, 4 },
  { { tres_per_job = "gres:gpu:8" }, "gpumem:163840M,gpubig:4,gpusm:6000,gpuslot:8", 2 },
  { { tres_per_task = "gres:gpu:1", num_tasks = 2 }, two, 1 },
  { { tres_per_task = "gres:gpu:1", num_tasks = 8, ntasks_per_node = 2, min_nodes = 4 }, two },
  { { tres_per_socket = "gres:gpu:1", sockets_per_node = 2 }, two },
}) do
  local code, job = old(case[1])
  expect(code, slurm.SUCCESS, "Slurm's request " .. number .. ": " .. tostring(said))
  expect(job.gres, case[2], "Slurm's request " .. number)
  expect((job.tres_per_job or "") .. (job.tres_per_task or "") .. (job.tres_per_socket or ""), "", "left of " .. number)
  expect(job.max_nodes, case[3], "nodes of " .. number)
end
local _, hung = old({ tres_per_node = "gres:gpu:2", cpus_per_tres = "gres:gpu:3", mem_per_tres = "gres:gpu:1024", num_tasks = 2, min_nodes = 1 })
expect(hung.cpus_per_task, 3, "--cpus-per-gpu")
expect(hung.min_mem_per_node, 2048, "--mem-per-gpu")
expect(old({ tres_per_node = "gres:gpu:5" }), slurm.ERROR, "more than a node has")
expect(old({ tres_per_job = "gres:gpu:3", min_nodes = 2 }), slurm.ERROR, "three on two nodes")
expect(old({ tres_per_job = "gres:gpumem:1G" }), slurm.ERROR, "a count for the whole job")
expect(old({ spank_job_env_size = 2, spank_job_env = { [0] = "_SLURM_SPANK_OPTION_carma_carma_gpus=1",
  "_SLURM_SPANK_OPTION_carma_carma_gpus=4" } }), slurm.ERROR, "an option twice")

-- Who may change the counts of a job.
local record = { tres_per_node = "gres:gpumem:1G,gres:gpuslot:2" }
expect(slurm_job_modify({ tres_per_node = "gres:gpumem:1M" }, record, {}, 1000), slurm.ERROR, "less")
expect(slurm_job_modify({ tres_per_node = "" }, record, {}, 1000), slurm.ERROR, "nothing")
expect(slurm_job_modify({ tres_per_task = "gres:gpu:1" }, {}, {}, 1000), slurm.ERROR, "a GPU")
expect(slurm_job_modify({ tres_per_node = "gres:nic:1" }, {}, {}, 1000), slurm.SUCCESS, "what is not counted here")
expect(slurm_job_modify({ min_nodes = 2 }, record, {}, 1000), slurm.SUCCESS, "something else")
expect(slurm_job_modify({ tres_per_node = "gres:gpumem:2G" }, record, {}, 0), slurm.SUCCESS, "root")

-- The estimate at submission, by programs that stand in for carma.
expect(carma_estimate_command({ ["carma-mem"] = "5G" }, {}), nil, "no model")
expect(carma_estimate_command({ ["carma-summary"] = "it's", ["carma-batch-size"] = "32" }),
  "'/usr/bin/carma' estimate --json --summary='it'\\''s' --batch-size='32' 2>&1", "command")
local function tried(job)
  return carma_estimate_command({ ["carma-capture"] = "auto" }, carma_job_words(job))
end
expect(tried({ type = "sbatch", argv = { [0] = "/a b.sh" } }), "'/usr/bin/carma' estimate --json '/a b.sh' 2>&1", "a script")
expect(tried({ type = "sbatch", argv = { [0] = "a.sh", "--", "x" } }), "'/usr/bin/carma' estimate --json 'a.sh' '--' '--' 'x' 2>&1",
  "a script's words")
expect(tried({ type = "srun", wrap = "invalid-context", argv = { [0] = "python3", "t.py" } }), "'/usr/bin/carma' estimate --json '--' 'python3' 't.py' 2>&1",
  "a command")
expect(tried({ type = "sbatch", argv = {}, wrap = "python3 t.py" }),
  "'/usr/bin/carma' estimate --json '--' '/bin/sh' '-c' 'python3 t.py' 2>&1", "--wrap")
local mib, activity = carma_read_estimate('{\n "memory_bytes": 5847722682,\n "sm_activity": 0.555,\n "gpu": {"memory_bytes": 1}}')
expect(mib, 5577, "estimate")
expect(activity, 555, "activity")

local popen = io.popen
local function filter(answer, options)
  io.popen = function() return { read = function() return answer end, close = function() end } end
  said = nil
  local code = slurm_cli_pre_submit(options, 0)
  io.popen = popen
  return code, options.gres
end
local function model(more)
  local given = { ["carma-summary"] = "/m" }
  for name, value in pairs(more or {}) do
    given[name] = value
  end
  return { spank = { carma = given } }
end
local good = '{"memory_bytes": 5847722682, "sm_activity": 0.5}'
local code, gres = filter(good, model())
expect(code, slurm.SUCCESS, "estimated")
expect(gres, "gpumem:5577M", "estimated")
_, gres = filter(good, model({ ["carma-gpus"] = "2" }))
expect(gres, "gpumem:11154M", "two GPUs")
_, gres = filter(good, model({ ["carma-mem"] = "7G" }))
expect(gres, nil, "a request goes before an estimate")
expect(filter("carma: /m: no such file", model()), slurm.ERROR, "not estimated")
assert(said:find("no such file", 1, true) and said:find("--carma-mem", 1, true), said)
expect(filter(good, { spank = {} }), slurm.SUCCESS, "none of carma's options")

-- A step is neither estimated nor counted.
local getenv, inside = os.getenv, {}
os.getenv = function(name) return inside[name] end
local function step(environment, options)
  inside = environment
  options.type = options.type or "srun"
  return filter("carma: not one", options)
end
for number, case in ipairs({
  { { SLURM_JOB_ID = "5" }, model(), "none" }, { { SLURM_JOB_ID = "5" }, { spank = {} }, nil },
  { { SLURM_JOB_ID = "5", CARMA_GPU_UUIDS = "GPU-1" }, { spank = {} }, "none" }, { {}, { jobid = "5", spank = model().spank }, "none" },
  { { SLURM_JOB_ID = "5" }, { gres = "nic:1", spank = model().spank }, "nic:1" },
  { { SLURM_JOB_ID = "5" }, { gres = "gpu:2,nic:1", spank = {} }, "nic:1" }, { { SLURM_JOB_ID = "5" }, { gpus = "2", spank = {} }, "none" },
  { {}, { gres = "gpu:a100:2", nodes = "2-2", spank = {} }, "none" }, { {}, { spank = {} }, nil },
}) do
  code, gres = step(case[1], case[2])
  expect(code, slurm.SUCCESS, "step " .. number)
  expect(gres, case[3], "step " .. number)
end
for release, wanted in pairs({ ["22.05"] = { "a100:8", "nic:1" }, ["23.02"] = { "", "nic:1,gpu:a100:2" } }) do
  local options = { type = "srun", gpus = "a100:8", nodes = "4", gres = "nic:1", spank = {} }
  _, gres = filter("slurm-wlm " .. release .. ".8", options)
  expect(options.gpus, wanted[1], "srun's GPUs, Slurm " .. release)
  expect(gres, wanted[2], "srun's GRES, Slurm " .. release)
end
for _, kind in ipairs({ "sbatch", "salloc" }) do
  expect(step({ SLURM_JOB_ID = "5" }, { type = kind, argv = {}, spank = model().spank }), slurm.ERROR, kind .. " in a job")
end
expect(step({}, { jobid = "4294967294", argv = {}, spank = model().spank }), slurm.ERROR, "srun with a job of its own")
os.getenv = getenv

-- Partitions with other GPUs: a job that names none is in the cluster's default; of several the largest counts.
local other = assert(io.open(folder .. "/job_submit.lua"))
assert((loadstring or load)((other:read("*a"):gsub("GPU_GIB = {", "GPU_GIB = { big = 80,"))))()
other:close()
for names, wanted in pairs({ main = "40960M", big = "81920M", ["main,big"] = "81920M", [""] = "81920M" }) do
  local job = { tres_per_node = "gres:gpu:1", partition = names ~= "" and names or nil }
  slurm_job_submit(job, { main = { flag_default = 0 }, big = { flag_default = 1 } }, 1000)
  expect(job.gres:match("^gpumem:(%w+)"), wanted, "partition '" .. names .. "'")
end

-- Unlike GPUs in one partition.
local again = assert(io.open(folder .. "/job_submit.lua"))
assert((loadstring or load)((again:read("*a"):gsub("local TYPE_GIB = {}", "local TYPE_GIB = { a100 = 40, h100 = 80 }"):gsub("HAS_MPS = true", "HAS_MPS = false"))))()
again:close()
local _, typed = old({ tres_per_node = "gres:gpu:h100:1", features = "fast" })
expect(typed.gres, "gpumem:81920M,gpubig:1,gpusm:1500,gpuslot:2", "a type's memory")
expect(typed.features, "(fast)&h100", "a type's nodes")
expect(old({ tres_per_node = "gres:gpu:t4:1" }), slurm.ERROR, "an unknown type")
expect(old({ tres_per_node = "gres:gpu:a100:1,gres:gpu:h100:1" }), slurm.ERROR, "two types")
expect(submit({ share = "mps", mem = "1G" }), slurm.ERROR, "nodes without MPS")

-- A site that counts estimated activities.
local file = assert(io.open(folder .. "/cli_filter.lua"))
local text, count = file:read("*a"):gsub("local COUNT_SM = false", "local COUNT_SM = true")
file:close()
expect(count, 1, "COUNT_SM")
assert((loadstring or load)(text))()
_, gres = filter(good, model({ ["carma-gpus"] = "2" }))
expect(gres, "gpumem:11154M,gpusm:1000", "activities")
