/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The runtime of co-scheduled task graphs for programs in C++17: pbs_runtime.h with objects that
 * free themselves, functions of any kind, and errors as exceptions.  There is nothing to link but
 * libpbsruntime.
 */
#ifndef PBS_RUNTIME_HPP
#define PBS_RUNTIME_HPP

#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pbs_runtime.h"

namespace pbs
{

/* A failure: its number, and what pbs_rt_last_error() said. */
class error : public std::runtime_error
{
public:
	error(int number, const std::string &text) : std::runtime_error(text), number_(number)
	{
	}

	int number() const noexcept
	{
		return number_;
	}

private:
	int number_;
};

/* Throws if the answer is an error; returns it otherwise. */
inline int checked(int answer)
{
	if (answer < 0)
		throw error(answer, pbs_rt_last_error());
	return answer;
}

template <typename T> T *checked(T *handle)
{
	if (!handle)
		throw error(PBS_RT_EINVAL, pbs_rt_last_error());
	return handle;
}

/* Options of a runtime. */
class options
{
public:
	options() : handle_(checked(pbs_rt_options_new()), pbs_rt_options_free)
	{
	}

	options &threads(std::uint32_t count)
	{
		checked(pbs_rt_options_threads(get(), count));
		return *this;
	}

	/* Enables co-scheduling; an empty directory is /dev/shm. */
	options &shared(const std::string &directory = "", std::int64_t group = -1)
	{
		const char *name = directory.empty() ? nullptr : directory.c_str();

		checked(pbs_rt_options_shared(get(), name, group));
		return *this;
	}

	options &determination(const std::string &name)
	{
		checked(pbs_rt_options_determination(get(), name.c_str()));
		return *this;
	}

	options &scheduler(const std::string &name)
	{
		checked(pbs_rt_options_scheduler(get(), name.c_str()));
		return *this;
	}

	options &simulated(const std::string &name, pbs_rt_model model, std::uint32_t count,
			   std::uint64_t memory_bytes)
	{
		checked(pbs_rt_options_simulated(get(), name.c_str(), model, count, memory_bytes));
		return *this;
	}

	/* Expected rate of transfers to devices that were added before. */
	options &link(const std::string &name, std::uint64_t bytes_per_s)
	{
		checked(pbs_rt_options_link(get(), name.c_str(), bytes_per_s));
		return *this;
	}

	/* The handle, for all other options. */
	pbs_rt_options *get() const noexcept
	{
		return handle_.get();
	}

private:
	std::unique_ptr<pbs_rt_options, decltype(&pbs_rt_options_free)> handle_;
};

/* Data of the caller, which must live until the last graph with the region is gone. */
class region
{
public:
	template <typename T>
	explicit region(std::vector<T> &data)
		: handle_(checked(pbs_rt_region_new(data.data(), data.size() * sizeof(T))),
			  pbs_rt_region_free)
	{
	}

	region(void *data, std::size_t bytes)
		: handle_(checked(pbs_rt_region_new(data, bytes)), pbs_rt_region_free)
	{
	}

	pbs_rt_region *get() const noexcept
	{
		return handle_.get();
	}

private:
	std::unique_ptr<pbs_rt_region, decltype(&pbs_rt_region_free)> handle_;
};

/* What a function sees while it runs. */
class context
{
public:
	explicit context(pbs_rt_context *handle) : handle_(handle)
	{
	}

	std::uint32_t threads() const
	{
		return pbs_rt_context_threads(handle_);
	}

	/* The content of a region, and the number of its elements. */
	template <typename T> std::pair<const T *, std::size_t> read(std::size_t number) const
	{
		std::size_t bytes = 0;
		const void *data = checked(pbs_rt_context_read(handle_, number, &bytes));

		return {static_cast<const T *>(data), bytes / sizeof(T)};
	}

	template <typename T> std::pair<T *, std::size_t> write(std::size_t number)
	{
		std::size_t bytes = 0;
		void *data = checked(pbs_rt_context_write(handle_, number, &bytes));

		return {static_cast<T *>(data), bytes / sizeof(T)};
	}

private:
	pbs_rt_context *handle_;
};

/* Function of a variant.  A task whose function throws has failed. */
using function = std::function<void(context &)>;

/* Tasks, with the functions of their variants. */
class graph
{
public:
	graph() : handle_(checked(pbs_rt_graph_new()), pbs_rt_graph_free)
	{
	}

	/* Adds a task; returns its number.  Runtimes are stored by kind. */
	int task(const std::string &name, const std::string &kind = "")
	{
		const char *of_kind = kind.empty() ? nullptr : kind.c_str();

		return checked(pbs_rt_graph_task(get(), name.c_str(), of_kind));
	}

	graph &variant(int task, pbs_rt_model model, function run, std::uint32_t threads = 1,
		       std::uint64_t takes_ns = 0)
	{
		functions_.push_back(std::move(run));
		checked(pbs_rt_task_function(get(), task, model, threads, takes_ns, call,
					     &functions_.back()));
		return *this;
	}

	graph &uses(int task, const region &data, pbs_rt_access access)
	{
		checked(pbs_rt_task_region(get(), task, data.get(), access));
		return *this;
	}

	/* Bytes that a task transfers to another memory, in place of the regions that it reads. */
	graph &transfer(int task, std::uint64_t bytes)
	{
		checked(pbs_rt_task_transfer(get(), task, bytes));
		return *this;
	}

	graph &after(int task, int before)
	{
		checked(pbs_rt_task_after(get(), task, before));
		return *this;
	}

	/* Time from the submission by which plans end the last task. */
	graph &deadline(std::uint64_t deadline_ns)
	{
		checked(pbs_rt_graph_deadline(get(), deadline_ns));
		return *this;
	}

	pbs_rt_graph *get() const noexcept
	{
		return handle_.get();
	}

private:
	/* No exception may leave it. */
	static int call(pbs_rt_context *handle, void *argument) noexcept
	{
		try {
			context own(handle);

			(*static_cast<function *>(argument))(own);
			return 0;
		} catch (...) {
			return 1;
		}
	}

	/* Their places stay the same. */
	std::list<function> functions_;
	std::unique_ptr<pbs_rt_graph, decltype(&pbs_rt_graph_free)> handle_;
};

/* A run in the background.  Its runtime and its graph must outlive it. */
class running
{
public:
	explicit running(pbs_rt_started *handle) : handle_(handle)
	{
	}

	running(running &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
	{
	}

	running &operator=(running &&other) = delete;

	/* Waits for a run that nobody has waited for. */
	~running()
	{
		if (handle_)
			pbs_rt_wait(handle_, nullptr);
	}

	bool is_done() const
	{
		return checked(pbs_rt_is_done(handle_)) != 0;
	}

	pbs_rt_report wait()
	{
		pbs_rt_report report = {};

		checked(pbs_rt_wait(std::exchange(handle_, nullptr), &report));
		return report;
	}

private:
	pbs_rt_started *handle_;
};

/* Executes graphs. */
class runtime
{
public:
	explicit runtime(const options &how) : handle_(checked(pbs_rt_new(how.get())), pbs_rt_free)
	{
	}

	pbs_rt_report run(graph &of)
	{
		pbs_rt_report report = {};

		checked(pbs_rt_run(get(), of.get(), &report));
		return report;
	}

	running start(graph &of)
	{
		return running(checked(pbs_rt_start(get(), of.get())));
	}

	pbs_rt *get() const noexcept
	{
		return handle_.get();
	}

private:
	std::unique_ptr<pbs_rt, decltype(&pbs_rt_free)> handle_;
};

} // namespace pbs

#endif /* PBS_RUNTIME_HPP */
