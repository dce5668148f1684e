-- For slurmctld: carma's options become counts of GPU memory, which Slurm schedules by, and the only thing that gives a job
-- GPUs. Copy it to the folder of slurm.conf, or join it with the job_submit.lua that is there: the functions carma_* stand
-- alone, and the last two call them.
--
-- GPU memory of one GPU in GiB, and GPUs of a node, by partition; `default` for the others. A partition should have nodes of
-- one kind.
local GPU_GIB = { default = 40 }
local NODE_GPUS = { default = 4 }
-- Where nodes of one partition have unlike GPUs: the memory of each type that users name in --gres=gpu:TYPE:N, which is a
-- feature of its nodes (Feature=a100 in slurm.conf), such as { a100 = 40, h100 = 80 }. Empty: the type is not looked at.
local TYPE_GIB = {}
-- Whether the nodes' carmads can share by MPS (`share` in carma.conf, and nvidia-cuda-mps-control). Without it --carma-share=mps is
-- refused here, and not by each node in turn.
local HAS_MPS = true
-- Whether nodes count gpubig, one for each GPU: requests for more than half a GPU never share one, which a sum of memory
-- cannot tell.
local COUNT_BIG = true
-- The gpusm of a GPU: the SM activity that its jobs may expect together, in permille. It is more than 1000, since jobs that
-- are busy half of the time slow one another little. nil: nodes count no gpusm. Then jobs crowd where memory alone has room.
local GPU_SM = 1500
-- The gpusm of a job for which nothing tells its activity.
local JOB_SM = 600
-- Whether gpusm of cli_filter.lua's estimate counts in its place. It is the user's word.
local COUNT_SM = false
-- GPU memory in GiB of a job for which nothing tells its need: what 85% of workloads need. carmad goes by what it has seen of
-- the job's script, or guesses. A job that needs more goes back to the queue, which only a batch job can. Others have whole
-- GPUs. nil: so have all.
local JOB_GIB = 22

local OURS = { gpumem = true, gpubig = true, gpusm = true, gpuslot = true }

-- "12G", "1.5G" or "12288M" in MiB, rounded up; a number alone is bytes, as Slurm's counts are. nil: not a size.
function carma_mib(text)
  local number, unit = tostring(text or ""):match("^(%d+%.?%d*)([KMGTkmgt]?)$")
  local powers = { K = 1, M = 2, G = 3, T = 4 }
  return number and math.ceil(tonumber(number) * 1024 ^ (powers[unit:upper()] or 0) / 1024 ^ 2)
end

-- Slurm's list of GRES as a table of names and counts, and the names in their order. A name that is there twice has the count
-- of the first, as Slurm's own reading has.
function carma_gres(list)
  local counts, order = {}, {}
  for entry in tostring(list or ""):gmatch("[^,;]+") do
    local name, count = entry:gsub("^gres[:/]", ""):match("^(%w+)[:=]?(.*)$")
    if name and not counts[name] then
      counts[name] = count == "" and "1" or count
      order[#order + 1] = name
    end
  end
  return counts, order
end

-- The options that sbatch, srun or salloc was given; nil: none of carma's. One that is there twice is nobody's honest word.
function carma_options(job)
  local found
  for i = 0, (job.spank_job_env_size or 0) - 1 do
    local name, value = (job.spank_job_env[i] or ""):match("^_SLURM_SPANK_OPTION_carma_carma_([%w_]+)=(.*)$")
    if name then
      found = found or {}
      if found[name] then
        return nil, "--carma-" .. name .. " is given twice"
      end
      found[name] = value
    end
  end
  return found
end

-- The largest figure of the job's partitions ("a,b"), so that no count is too small wherever it starts.
function carma_of_partition(table, partition)
  local most
  for name in tostring(partition or "default"):gmatch("[^,]+") do
    local one = table[name] or table.default
    most = most and math.max(most, one) or one
  end
  return most
end

-- A number of slurmctld's; nil where it is one of its marks for "not given".
local function given(number)
  return number and number > 0 and number < 65534 and number or nil
end

-- GPUs in one of Slurm's lists, and their type, "a100,t4" where there are several; 0: none.
local function gpus_of(list)
  local sum, kind = 0, nil
  for entry in tostring(list or ""):gmatch("[^,;]+") do
    local rest = (entry:gsub("^gres[:/]", "") .. ":"):match("^gpu[:=](.*)$")
    if rest then
      local one = rest:match("^(%a[%w_-]*)[:=]")
      kind = kind and one and kind ~= one and kind .. "," .. one or one or kind
      sum = sum + (tonumber(rest:match("(%d+):$") or "1"))
    end
  end
  return sum, kind
end

-- What Slurm's own options ask for (--gres=gpu:N, --gpus, --gpus-per-node, -task, -socket): GPUs on each node, the number of nodes
-- where they decide it, and the GPUs' type. nil: none; or nil and what is wrong.
function carma_gpus_asked(job, most)
  local each, kind = gpus_of(job.tres_per_node)
  local nodes, tasks = given(job.min_nodes), given(job.num_tasks) or 1
  local sockets, per_socket = gpus_of(job.tres_per_socket), given(job.sockets_per_node) or 1
  local per_task, all = gpus_of(job.tres_per_task), gpus_of(job.tres_per_job)
  kind = kind or select(2, gpus_of(job.tres_per_job)) or select(2, gpus_of(job.tres_per_task))
  if each == 0 and sockets > 0 then
    each = sockets * per_socket
  elseif each == 0 and per_task > 0 and given(job.ntasks_per_node) then
    each = per_task * job.ntasks_per_node
  elseif each == 0 and (all > 0 or per_task > 0) then
    all = all > 0 and all or per_task * tasks
    nodes = nodes or math.ceil(all / most)
    each = all / nodes
    if each % 1 ~= 0 then
      return nil, string.format("%d GPUs on %d nodes are not as many on each: ask by --gpus-per-node", all, nodes)
    end
    return each, nil, nodes, kind
  end
  if each > 0 then
    return each, nil, nil, kind
  end
end

-- Slurm knows no GPUs of its own here: what hangs on them is said by nodes and tasks.
local function without_gpus(job, gpus, nodes)
  local function of(list)
    return list and list ~= "" and tonumber(tostring(list):match("(%d+)$"))
  end
  local tasks = given(job.ntasks_per_node) or (given(job.num_tasks) or 1) / (nodes or given(job.min_nodes) or 1)
  local cpus, mib = of(job.cpus_per_tres), of(job.mem_per_tres)
  if cpus then
    job.cpus_per_task = math.max(1, math.ceil(cpus * gpus / tasks))
  end
  if mib then
    job.min_mem_per_node = mib * gpus
  end
  for _, name in ipairs({ "tres_per_job", "tres_per_task", "tres_per_socket", "cpus_per_tres", "mem_per_tres", "tres_bind", "tres_freq" }) do
    if job[name] and job[name] ~= "" then
      job[name] = ""
    end
  end
  if nodes then
    job.min_nodes, job.max_nodes = nodes, nodes
  end
end

-- The list of GRES for these options, without Slurm's prefix; nil without options; or nil and what is wrong. `have` is what
-- the job asks for already, by --gres or from cli_filter.lua's estimate. `again`: the job may go back to the queue.
-- `gpu_gib` and `most` are of its GPUs.
function carma_counts(options, have, nodes, again, gpu_gib, most)
  local counts, order = carma_gres(have)
  if not options then
    for name in pairs(OURS) do
      if counts[name] then
        return nil, name .. " is counted by --carma-mem: ask by that"
      end
    end
    return nil
  end
  local gpus = tostring(options.gpus or "1"):match("^%d+$")
  local whole = gpu_gib * 1024
  if not gpus or tonumber(gpus) < 1 then
    return nil, "--carma-gpus=" .. tostring(options.gpus) .. " is not a number of GPUs"
  end
  gpus = tonumber(gpus)
  if gpus > most then
    return nil, string.format("%d GPUs are asked for on each node; one has %d", gpus, most)
  end
  if options.share == "mps" and (options.exclusive or not HAS_MPS) then
    return nil, "--carma-share=mps: " .. (HAS_MPS and "an exclusive job shares no GPU" or "these nodes have no MPS")
  end
  local each = options.mem and carma_mib(options.mem)
  if options.mem and (not each or not options.mem:match("%a$")) then
    return nil, "--carma-mem=" .. options.mem .. " is not a size with a unit, such as 12G"
  end
  local guess = false
  if not each and counts.gpumem then
    each = math.ceil((carma_mib(counts.gpumem) or 0) / gpus)
  elseif not each and again and JOB_GIB and JOB_GIB < gpu_gib then
    each, guess = JOB_GIB * 1024, true
  end
  if each and (each < 1 or each > whole) then
    return nil, string.format("%d MiB of GPU memory are asked for on each GPU; one has %d MiB", each, whole)
  end
  -- Whole GPUs: on request, where nothing tells the need, and over several nodes, where a slow GPU slows all ranks.
  if not each or options.exclusive or ((nodes or 1) > 1 and nodes < 4294967294 and not options.share) then
    each, guess = whole, false
  end
  local list = { string.format("gpumem:%dM", each * gpus) }
  if COUNT_BIG and each * 2 > whole then
    list[#list + 1] = string.format("gpubig:%d", gpus)
  end
  if GPU_SM then
    local said = COUNT_SM and tonumber(counts.gpusm) or JOB_SM * gpus
    list[#list + 1] = string.format("gpusm:%d", each == whole and GPU_SM * gpus or math.min(said, GPU_SM * gpus))
  end
  list[#list + 1] = string.format("gpuslot:%d", 2 * gpus + (guess and 1 or 0))
  for _, name in ipairs(order) do
    if not OURS[name] and name ~= "gpu" and name ~= "none" then
      list[#list + 1] = string.format("%s:%s", name, counts[name])
    end
  end
  return table.concat(list, ",")
end

-- The partitions that a job names, or the cluster's own choice.
local function partition_of(job, partitions)
  for name, partition in pairs(job.partition and {} or partitions or {}) do
    if partition.flag_default == 1 then
      return name
    end
  end
  return job.partition
end

-- Sets the job's counts. nil, or what is wrong.
function carma_submit(job, partitions)
  local partition = partition_of(job, partitions)
  local gpu_gib, most = carma_of_partition(GPU_GIB, partition), carma_of_partition(NODE_GPUS, partition)
  local options, wrong = carma_options(job)
  local gpus, nodes, kind, list
  if not wrong then
    gpus, wrong, nodes, kind = carma_gpus_asked(job, most)
  end
  if wrong then
    return wrong
  end
  if kind and next(TYPE_GIB) then
    if not TYPE_GIB[kind] then
      return kind:find(",") and "GPUs of one type, not of " .. kind .. ", can be given to a job" or "there are no GPUs of type '" .. kind .. "'"
    end
    gpu_gib = TYPE_GIB[kind]
    job.features = job.features and job.features ~= "" and "(" .. job.features .. ")&" .. kind or kind
  end
  if gpus then
    options = options or { exclusive = "" }
    options.gpus = options.gpus or string.format("%d", gpus)
    without_gpus(job, gpus, nodes)
  end
  for _, name in ipairs({ "tres_per_job", "tres_per_socket", "tres_per_task" }) do
    for ours in pairs(OURS) do
      if carma_gres(job[name])[ours] then
        return ours .. " is counted by --carma-mem: ask by that"
      end
    end
  end
  local again = job.script ~= nil and job.requeue ~= 0
  list, wrong = carma_counts(options, job.tres_per_node, nodes or job.min_nodes, again, gpu_gib, most)
  if list then
    job.gres = list -- Slurm adds its release's prefix, which is "gres:" or "gres/"; not so to tres_per_node
  end
  return wrong
end

-- Whether the change touches the counts of a job, or would drop them. They are slurmctld's and the agent's.
function carma_changes_counts(job, record)
  for _, name in ipairs({ "tres_per_node", "tres_per_job", "tres_per_socket", "tres_per_task" }) do
    for _, list in pairs({ job[name], job[name] and record and record.tres_per_node }) do
      for entry in pairs(carma_gres(list)) do
        if OURS[entry] or entry == "gpu" then
          return true
        end
      end
    end
  end
  return false
end

function slurm_job_submit(job, partitions, uid)
  local wrong = carma_submit(job, partitions)
  if wrong then
    slurm.log_user("carma: " .. wrong)
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
  if uid ~= 0 and carma_changes_counts(job, record) then
    slurm.log_user("carma: a job's GPUs are counted at its submission: cancel it, and submit it with other options")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

return slurm.SUCCESS
