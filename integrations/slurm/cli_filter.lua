-- For sbatch, srun and salloc, as the user: a job that names its model and not its memory is estimated before it is queued,
-- and the steps of a job share its GPUs.
-- Copy it to the folder of slurm.conf, or join it with the cli_filter.lua that is there: the functions carma_* stand alone.
local CARMA = "/usr/bin/carma"
-- Whether a job takes its estimated SM activity of gpusm, and not what job_submit.lua gives any other. By today's estimates
-- of activity jobs wait longer (docs/slurm.md).
local COUNT_SM = false

local function quoted(word)
  return "'" .. tostring(word):gsub("'", "'\\''") .. "'"
end

-- The words of the job's own command: a script comes first under sbatch. Slurm counts them from 0.
function carma_job_words(job)
  local words, argv = {}, job["argv"] or {}
  for i = 0, #argv do
    words[#words + 1] = argv[i]
  end
  if job["type"] == "sbatch" and job["wrap"] then -- srun would say invalid-context
    words = { "--", "/bin/sh", "-c", job["wrap"] }
  elseif job["type"] ~= "sbatch" then
    table.insert(words, 1, "--")
  elseif #words > 1 then
    table.insert(words, 2, "--")
  end
  return words
end

-- The command that estimates by these options; nil where they name no model. `own` is the job's own command.
function carma_estimate_command(options, own)
  local words = { quoted(CARMA), "estimate", "--json" }
  if options["carma-capture"] == "auto" then
    for _, word in ipairs(own) do
      words[#words + 1] = quoted(word)
    end
    return table.concat(words, " ") .. " 2>&1"
  end
  for _, name in ipairs({ "summary", "capture", "hf-config", "batch-size" }) do
    if options["carma-" .. name] then
      words[#words + 1] = "--" .. name .. "=" .. quoted(options["carma-" .. name])
    end
  end
  local model = options["carma-summary"] or options["carma-capture"] or options["carma-hf-config"]
  return model and table.concat(words, " ") .. " 2>&1"
end

-- MiB of GPU memory and permille of SM activity of carma's answer; nil where it has none.
function carma_read_estimate(answer)
  local bytes = answer:match('"memory_bytes"%s*:%s*(%d+)')
  local activity = tonumber(answer:match('"sm_activity"%s*:%s*([%d.]+)') or "")
  return bytes and math.ceil(tonumber(bytes) / 2 ^ 20), activity and math.ceil(activity * 1000)
end

-- Whether srun starts a step of a job that is there. Without --jobid Slurm has its largest number there.
function carma_is_step(job)
  local named = tonumber(job["jobid"] or "0") or 0
  return job["type"] == "srun" and (os.getenv("SLURM_JOB_ID") or (named > 0 and named < 4294967294))
end

-- Slurm's options for GPUs, taken out of the job's or step's: the number on each node, with a type before it ("a100:2"), or nil.
function carma_take_gpus(options)
  local gpus, left = options["gpus-per-node"], {}
  for entry in tostring(options["gres"] or ""):gmatch("[^,]+") do
    local name = entry:gsub("^gres[:/]", "")
    if name:match("^gpu$") or name:match("^gpu[:=]") then
      gpus = name:match("^gpu[:=](.+)$") or "1"
    elseif not name:match("^gpu%w+") then
      left[#left + 1] = entry
    end
  end
  if options["gpus-per-node"] then
    options["gpus-per-node"] = ""
  end
  return gpus ~= "" and gpus or nil, table.concat(left, ",")
end

-- A step is on its job's GPUs. Without a word of GRES it would take all that its job has, and the next one wait.
function carma_share_gpus(options, given)
  local gpus, gres = carma_take_gpus(options)
  if gres ~= "" then
    options["gres"] = gres
  elseif given or gpus or options["gpus"] or options["gpus-per-task"] or options["gpus-per-socket"] or os.getenv("CARMA_GPU_UUIDS") then
    options["gres"] = "none"
  end
end

-- Slurm's release as a number, such as 22.05; 0 where it does not tell.
function carma_release()
  local pipe = io.popen("srun --version 2>&1")
  local said = pipe and pipe:read("*a") or ""
  if pipe then
    pipe:close()
  end
  return tonumber(said:match("(%d+%.%d+)") or "0")
end

-- srun asks for its step what it asked for the job: GPUs that Slurm finds on no node. --gpus passes, beside a word of GRES. Since 23.02
-- a step's --gres gives way to the counts that its job got, and nothing else does.
function carma_ask_for_all_nodes(options)
  local gpus, gres = carma_take_gpus(options)
  local nodes = math.max(1, tonumber(tostring(options["nodes"] or "1"):match("%d+") or "1"))
  local function by(list, factor)
    return list and (list:gsub("%d+$", function(number) return string.format("%d", math.ceil(number * factor)) end))
  end
  if not (gpus or options["gpus"] or options["gpus-per-task"] or options["gpus-per-socket"]) then
    return
  end
  if carma_release() < 23.02 then
    options["gpus"] = by(gpus, nodes) or options["gpus"]
    options["gres"] = gres ~= "" and gres or "none"
  elseif gpus or options["gpus"] then
    gpus = gpus or by(options["gpus"], 1 / nodes)
    options["gpus"] = ""
    options["gres"] = (gres ~= "" and gres .. "," or "") .. "gpu:" .. gpus
  end
end

function slurm_cli_setup_defaults(options, early)
  return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
  local given = options["spank"] and options["spank"]["carma"]
  if carma_is_step(options) then -- its job is estimated and counted
    carma_share_gpus(options, given)
    return slurm.SUCCESS
  elseif options["type"] == "srun" then
    carma_ask_for_all_nodes(options)
  end
  local command = given and given["carma-mem"] == nil and carma_estimate_command(given, carma_job_words(options))
  if not command then
    return slurm.SUCCESS
  end
  local pipe = io.popen(command)
  local answer = pipe and pipe:read("*a") or ""
  if pipe then
    pipe:close()
  end
  local mib, activity = carma_read_estimate(answer)
  if not mib then
    slurm.log_error("carma: the model's need of GPU memory cannot be estimated: %s Name it: --carma-mem=12G", answer)
    return slurm.ERROR
  end
  local gpus = tonumber(given["carma-gpus"] or "1") or 1
  local gres = string.format("gpumem:%dM", mib * gpus)
  if COUNT_SM and activity then
    gres = gres .. string.format(",gpusm:%d", activity * gpus)
  end
  options["gres"] = options["gres"] and options["gres"] .. "," .. gres or gres
  return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
  return slurm.SUCCESS
end

return slurm.SUCCESS
