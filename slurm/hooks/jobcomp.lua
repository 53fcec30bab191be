-- SPDX-License-Identifier: GPL-2.0
--
-- For slurmctld (JobCompType=jobcomp/lua), next to slurm.conf: tells the planner of each job
-- that has ended, was cancelled, lost its node or was requeued, by a line of EVENTS:
--
--     end JOBID SUBMIT_UNIX_S STATE_NUMBER EXIT_STATUS NODELIST
--
-- The state is Slurm's number with its flags (32768: some nodes are not free yet), the exit
-- status is that of wait(2) (exit 1 is 256), the nodes are as n[01-03], or - if there are none.
-- Jobs of all partitions are told; who reads knows its own.  Nothing here waits.

-- For the operator: a file that is SlurmUser's.
local EVENTS = "/var/lib/pbs-slurm/events"

local function number(value)
	return string.format("%.0f", tonumber(value) or 0)
end

function slurm_jobcomp_log_record(job)
	pcall(function()
		local nodes = job.nodes
		if nodes == nil or nodes == "" or nodes == "(null)" then
			nodes = "-"
		end
		local line = table.concat({
			"end", number(job.job_id), number(job.submit_time), number(job.job_state),
			number(job.exit_code), nodes,
		}, " ")
		local file = io.open(EVENTS, "a")
		if file then
			file:write(line, "\n")
			file:close()
		end
	end)
	return slurm.SUCCESS
end

return slurm.SUCCESS
