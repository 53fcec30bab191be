-- SPDX-License-Identifier: GPL-2.0
--
-- For slurmctld (JobSubmitPlugins=lua), next to slurm.conf: what users submit to the planned
-- partition is held until the planner commits it, and nobody but the planner, which runs as
-- SlurmUser, and root decide when and where it starts.
--
-- slurmctld holds its locks while this runs: nothing here waits, and what can't be told is
-- not told; the planner looks at all jobs every few seconds anyway.  It is read by Lua 5.1.
-- If it can't be read, slurmctld does not start: try `luac5.1 -p` before.
--
-- Lines of EVENTS: "submit UID" (a new job has no number yet) and "alter JOBID".

-- These three lines are for the operator: what SlurmUser in slurm.conf is, by number; a file
-- that is SlurmUser's; the partition.
local SLURM_UID = 64030
local EVENTS = "/var/lib/pbs-slurm/events"
local PARTITION = "plan"

local NO_VAL = slurm.NO_VAL or 4294967294
local NO_VAL16 = slurm.NO_VAL16 or 65534
local NO_VAL64 = slurm.NO_VAL64 or 18446744073709551614
local INFINITE = slurm.INFINITE or 4294967295

-- One write a line, at its end: lines of several writers don't mix.
local function tell(line)
	pcall(function()
		local file = io.open(EVENTS, "a")
		if file then
			file:write(line, "\n")
			file:close()
		end
	end)
end

local function is_operator(uid)
	return uid == 0 or uid == SLURM_UID
end

-- Users may name several partitions: "plan,debug".
local function names_partition(list)
	for name in string.gmatch(list or "", "[^,]+") do
		if name == PARTITION then
			return true
		end
	end
	return false
end

-- Whether a job that names no partition gets ours.
local function is_default(partitions)
	local is = false
	pcall(function()
		local ours = partitions[PARTITION]
		is = ours ~= nil and (ours.flag_default == 1 or ours.flag_default == true)
	end)
	return is
end

local function is_given(text)
	return text ~= nil and text ~= ""
end

local function is_set(number)
	return number ~= nil and number ~= NO_VAL
end

-- sbatch, salloc and srun print why; scontrol only what Slurm calls the code.
-- The planner reads these texts in columns: nobody writes those of another job there.
local TEXTS = {
	"name", "comment", "account", "dependency", "exc_nodes", "features", "licenses", "reservation",
	"tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task",
}

local function has_plain_texts(job)
	for _, text in ipairs(TEXTS) do
		if type(job[text]) == "string" and string.find(job[text], "%c") then
			return false
		end
	end
	return true
end

-- A hold by the job's user or by an operator is a word of the job's comment, apart from the hold
-- with which every job waits for its plan: the planner plans no job with such a word.
local HELD = "pbs-held"
local HELD_BY_OPERATOR = "pbs-held-by-operator"
-- The planner writes this word when the reservation of a job has ended.
local HELD_WITHOUT_RESERVATION = "pbs-held-reservation-ended"

local function has_word(comment, word)
	return string.find(" " .. (comment or "") .. " ", " " .. word .. " ", 1, true) ~= nil
end

-- Slurm takes no empty comment for a change; "pbs" alone says nothing.
local function without_hold(comment)
	local rest = string.gsub(comment or "", "%s*pbs%-held%S*", "")
	return rest == "" and "pbs" or rest
end

local function with_hold(comment, uid)
	if has_word(comment, HELD_BY_OPERATOR) then
		return comment
	end
	local by = is_operator(uid) and HELD_BY_OPERATOR or HELD
	return without_hold(comment) .. " " .. by
end

local function refuse(code, why)
	slurm.log_user(why)
	return code or slurm.ERROR
end

function slurm_job_submit(job, partitions, uid)
	local ours
	if is_given(job.partition) then
		ours = names_partition(job.partition)
	else
		ours = is_default(partitions)
	end
	if not ours then
		return slurm.SUCCESS
	end
	-- sbatch --hold
	if job.priority == 0 then
		job.comment = with_hold(job.comment, uid)
	end
	if not is_operator(uid) then
		if is_given(job.partition) and job.partition ~= PARTITION then
			return refuse(slurm.ERROR, string.format(
				"Partition %s is planned; a job can't be in it and in others: write -p %s",
				PARTITION, PARTITION))
		end
		-- --time=0 is for ever.
		if not is_set(job.time_limit) or job.time_limit == INFINITE then
			return refuse(slurm.ESLURM_MISSING_TIME_LIMIT, string.format(
				"Partition %s is planned: add the longest run time of the job, " ..
				"such as --time=30 (minutes) or --time=1:30:00", PARTITION))
		end
		-- The planner leaves such a job to Slurm, on the nodes of the reservation. Licences are
		-- those of the whole cluster, and planned for others.
		if is_given(job.reservation) and is_given(job.licenses) then
			return refuse(slurm.ERROR, string.format(
				"Partition %s is planned, and a job in a reservation gets no licences: " ..
				"leave out --licenses or --reservation", PARTITION))
		end
		-- Slurm starts all of its parts together or none, which no plan says yet.
		if is_set(job.het_job_offset) then
			return refuse(slurm.ERROR, string.format(
				"Partition %s is planned, and has no heterogeneous jobs: " ..
				"submit the parts one by one", PARTITION))
		end
		if is_given(job.req_nodes) then
			return refuse(slurm.ERROR, string.format(
				"Partition %s is planned, and the planner chooses the nodes: " ..
				"leave out --nodelist", PARTITION))
		end
		if not has_plain_texts(job) then
			return refuse(slurm.ERROR, string.format(
				"Partition %s is planned: remove control characters from name, comment, " ..
				"account and the other texts of the job", PARTITION))
		end
		if is_given(job.qos) then
			slurm.log_user(string.format(
				"Partition %s is planned: --qos=%s does not change when the job starts",
				PARTITION, job.qos))
		end
		-- Held.  Whether Slurm sends it back when its node fails is a word of its user (--requeue,
		-- --no-requeue) or of the site (JobRequeue): it then waits for another plan.
		job.priority = 0
	end
	tell("submit " .. uid)
	return slurm.SUCCESS
end

-- scontrol hold and release, by anybody but the planner.
local function change_hold(job, record, uid)
	local is_by_operator = has_word(record.comment, HELD_BY_OPERATOR)
	local is_held = is_by_operator or has_word(record.comment, HELD) or
		has_word(record.comment, HELD_WITHOUT_RESERVATION)
	local is_theirs = is_operator(uid) or not is_by_operator
	local comment = is_given(job.comment) and job.comment or record.comment
	if job.priority == 0 then
		job.comment = with_hold(is_by_operator and record.comment or comment, uid)
	elseif is_set(job.priority) and is_held and is_theirs then
		-- It waits for its plan again.
		job.comment = without_hold(comment)
		job.priority = 0
	elseif is_given(job.comment) and not is_theirs then
		-- Nobody writes an operator's hold away.
		job.comment = without_hold(job.comment) .. " " .. HELD_BY_OPERATOR
	end
end

-- What a job takes, beside its time. Slurm does not check these once the planner has released the
-- job, and what is planned there for others would wait.
local SIZES = {
	"min_nodes", "max_nodes", "min_cpus", "max_cpus", "pn_min_cpus", "pn_min_memory",
	"pn_min_tmp_disk", "num_tasks", "ntasks_per_node", "ntasks_per_socket", "ntasks_per_tres",
	"cpus_per_task", "sockets_per_node", "cores_per_socket", "threads_per_core", "shared",
	"contiguous", "features", "core_spec", "cpus_per_tres", "exc_nodes", "licenses", "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task",
}

local function is_change(value)
	return value ~= nil and value ~= "" and value ~= NO_VAL and value ~= NO_VAL16 and
		value ~= NO_VAL64
end

-- Between its release by the planner and its start a job has a priority and no node yet. Slurm
-- itself lets no user have more for a job that runs; a running job may become smaller.
local JOB_PENDING = 0
local JOB_RUNNING = 1

local function is_released(record)
	return record.priority ~= 0 and (record.job_state or 0) % 256 ~= JOB_RUNNING
end

local function has_begun(record)
	return (record.job_state or 0) % 256 ~= JOB_PENDING
end

-- An empty name takes the job out of its reservation.
local function is_moved(job, record)
	return job.reservation ~= nil and job.reservation ~= (record.resv_name or "")
end

-- Reason for which a change may not be made to a job that is released: nil if it may.
local function too_late(job, record)
	-- Slurm would start it at once, where the plan has others.
	if is_moved(job, record) then
		return "its reservation can't be changed"
	end
	if is_change(job.time_limit) and not (record.time_limit and job.time_limit <= record.time_limit)
	then
		return "its time limit can only be lowered"
	end
	for _, size in ipairs(SIZES) do
		if is_change(job[size]) then
			return "its size can't be changed"
		end
	end
	return nil
end

function slurm_job_modify(job, record, partitions, uid)
	local is_ours = names_partition(record.partition)
	local to_ours = is_given(job.partition) and names_partition(job.partition)
	if not is_ours and not to_ours then
		return slurm.SUCCESS
	end
	if is_ours and uid ~= SLURM_UID then
		change_hold(job, record, uid)
		-- It waits for the planner again, which leaves it to Slurm or plans it.
		if is_operator(uid) and is_released(record) and is_moved(job, record) then
			job.priority = 0
		end
	end
	if not is_operator(uid) then
		-- Slurm ends a job with its reservation, unless it has left that.
		if is_ours and has_begun(record) and is_moved(job, record) then
			return refuse(slurm.ESLURM_ACCESS_DENIED, string.format(
				"Job %s has begun, and its reservation can't be changed", record.job_id))
		end
		local late = is_ours and is_released(record) and too_late(job, record)
		if late then
			return refuse(slurm.ESLURM_ACCESS_DENIED, string.format(
				"The job may start at any time, and %s: hold it first (scontrol hold %s), change it, " ..
				"and release it", late, record.job_id))
		end
		if not is_ours or is_given(job.partition) and job.partition ~= PARTITION then
			return refuse(slurm.ESLURM_ACCESS_DENIED, string.format(
				"Partition %s is planned, and jobs can't move into or out of it: " ..
				"cancel the job and submit it again", PARTITION))
		end
		if is_set(job.priority) and job.priority ~= 0 then
			return refuse(slurm.ESLURM_ACCESS_DENIED,
				"The job is planned: the planner releases it at its planned time")
		end
		if not has_plain_texts(job) then
			return refuse(slurm.ERROR,
				"Remove control characters from name, comment, account and the other texts of the job")
		end
		-- Slurm makes a new priority of that, which would release the job.
		if job.nice ~= nil and job.nice ~= NO_VAL then
			return refuse(slurm.ESLURM_ACCESS_DENIED, "The job is planned: its priority can't be changed")
		end
		if is_given(job.req_nodes) then
			return refuse(slurm.ESLURM_ACCESS_DENIED, "The job is planned: the planner chooses its nodes")
		end
		if job.begin_time ~= nil and job.begin_time ~= 0 and job.begin_time ~= NO_VAL then
			return refuse(slurm.ESLURM_ACCESS_DENIED, "The job is planned: the planner chooses its start")
		end
		if job.time_limit == INFINITE or job.time_limit == 0 then
			return refuse(slurm.ESLURM_INVALID_TIME_LIMIT,
				"The job is planned: it needs a time limit")
		end
	end
	-- The planner knows what it does itself.
	if uid ~= SLURM_UID then
		tell("alter " .. record.job_id)
	end
	return slurm.SUCCESS
end

return slurm.SUCCESS
