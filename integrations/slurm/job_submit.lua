-- For slurmctld: carma's options become counts of GPU memory, which Slurm schedules by. Copy it to the folder of slurm.conf, or
-- join it with the job_submit.lua that is there: the functions carma_* stand alone.
--
-- GPU memory of one GPU in GiB, by partition; `default` for the others. A partition should have GPUs of one size.
local GPU_GIB = { default = 40 }
-- Whether nodes count gpubig, one for each GPU: requests for more than half a GPU never share one, which a sum of memory
-- cannot tell.
local COUNT_BIG = true
-- The gpusm of a GPU: the SM activity that its jobs may expect together, in permille. It is more than 1000, since jobs that
-- are busy half of the time slow one another little. nil: nodes count no gpusm. Then jobs crowd where memory alone has room.
local GPU_SM = 1500
-- The gpusm of a job for which nothing tells its activity.
local JOB_SM = 600
-- GPU memory in GiB of a job for which nothing tells its need: what 85% of workloads need. carmad goes by what it has seen of
-- the job's script, or guesses. A job that needs more goes back to the queue, which only a batch job can. Others have whole
-- GPUs. nil: so have all.
local JOB_GIB = 22

-- "12G", "1.5G" or "12288M" in MiB, rounded up; a number alone is bytes, as Slurm's counts are. nil: not a size.
function carma_mib(text)
  local number, unit = tostring(text or ""):match("^(%d+%.?%d*)([KMGTkmgt]?)$")
  local powers = { K = 1, M = 2, G = 3, T = 4 }
  return number and math.ceil(tonumber(number) * 1024 ^ (powers[unit:upper()] or 0) / 1024 ^ 2)
end

-- Slurm's list of GRES as a table of names and counts, and the names in their order.
function carma_gres(list)
  local counts, order = {}, {}
  for entry in tostring(list or ""):gmatch("[^,]+") do
    local name, count = entry:gsub("^gres[:/]", ""):match("^(%w+)[:=]?(.*)$")
    if name then
      counts[name] = count == "" and "1" or count
      order[#order + 1] = name
    end
  end
  return counts, order
end

-- The options that sbatch, srun or salloc was given; nil: none of carma's.
function carma_options(job)
  local found
  for i = 0, (job.spank_job_env_size or 0) - 1 do
    local name, value = (job.spank_job_env[i] or ""):match("^_SLURM_SPANK_OPTION_carma_carma_([%w_]+)=(.*)$")
    if name then
      found = found or {}
      found[name] = value
    end
  end
  return found
end

-- The list of GRES for these options, without Slurm's prefix; nil without options; or nil and what is wrong. `given` is
-- what the job asks for already, by --gres or from cli_filter.lua's estimate. `again`: the job may go back to the queue.
function carma_counts(options, given, partition, nodes, again)
  local counts, order = carma_gres(given)
  if not options then
    if counts.gpumem or counts.gpubig or counts.gpusm then
      return nil, "gpumem, gpubig and gpusm are counted by --carma-mem: ask by that"
    end
    return nil
  end
  local gpus = tonumber(options.gpus or "1")
  local whole = (GPU_GIB[partition or "default"] or GPU_GIB.default) * 1024
  if not gpus or gpus < 1 or gpus % 1 ~= 0 then
    return nil, "--carma-gpus=" .. tostring(options.gpus) .. " is not a number of GPUs"
  end
  local each = options.mem and carma_mib(options.mem)
  if options.mem and (not each or not options.mem:match("%a$")) then
    return nil, "--carma-mem=" .. options.mem .. " is not a size with a unit, such as 12G"
  end
  if not each and counts.gpumem then
    each = math.ceil(carma_mib(counts.gpumem) / gpus)
  elseif not each and again and JOB_GIB then
    each = math.min(JOB_GIB * 1024, whole)
  end
  if each and each > whole then
    return nil, string.format("%d MiB of GPU memory are asked for on each GPU; one has %d MiB", each, whole)
  end
  -- Whole GPUs: on request, where nothing tells the need, and over several nodes, where a slow GPU slows all ranks.
  if not each or options.exclusive or ((nodes or 1) > 1 and nodes < 4294967294 and not options.share) then
    each = whole
  end
  local list = { string.format("gpumem:%dM", each * gpus) }
  if COUNT_BIG and each * 2 > whole then
    list[#list + 1] = string.format("gpubig:%d", gpus)
  end
  if GPU_SM then
    local said = tonumber(counts.gpusm) or JOB_SM * gpus
    list[#list + 1] = string.format("gpusm:%d", each == whole and GPU_SM * gpus or math.min(said, GPU_SM * gpus))
  end
  for _, name in ipairs(order) do
    if name ~= "gpumem" and name ~= "gpubig" and name ~= "gpusm" then
      list[#list + 1] = string.format("%s:%s", name, counts[name])
    end
  end
  return table.concat(list, ",")
end

function slurm_job_submit(job, partitions, uid)
  local again = job.script ~= nil and job.requeue ~= 0
  local list, wrong = carma_counts(carma_options(job), job.tres_per_node, job.partition, job.min_nodes, again)
  if wrong then
    slurm.log_user("carma: " .. wrong)
    return slurm.ERROR
  end
  if list then
    job.gres = list -- Slurm adds its release's prefix, which is "gres:" or "gres/"; not so to tres_per_node
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
