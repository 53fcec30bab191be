/* SPDX-License-Identifier: GPL-2.0 */
/* The objects of C++: runs, runs in the background, and failures. */
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "pbs_runtime.hpp"

static int bad;

static void want(bool is, const char *what)
{
	if (!is) {
		std::printf("%s (%s)\n", what, pbs_rt_last_error());
		bad = 1;
	}
}

/* Two tasks in a row add to the same numbers. */
static void runs(pbs::runtime &runtime)
{
	std::vector<std::uint64_t> numbers = {1, 2, 3};
	pbs::region region(numbers);
	pbs::graph graph;

	for (std::uint64_t more : {10, 100}) {
		int task = graph.task("add " + std::to_string(more), "add");

		graph.variant(task, PBS_RT_CPU, [more](pbs::context &context) {
			auto [data, count] = context.write<std::uint64_t>(0);

			for (std::size_t at = 0; at < count; at++)
				data[at] += more;
		}, 1, 1000);
		graph.uses(task, region, PBS_RT_READ_WRITE);
	}
	pbs_rt_report report = runtime.run(graph);
	want(report.tasks == 2, "two tasks");
	want(numbers == std::vector<std::uint64_t>({111, 112, 113}), "all numbers");
}

/* A graph runs until it may end, while this thread does something else. */
static void runs_in_the_background(pbs::runtime &runtime)
{
	std::atomic<bool> may_end(false);
	std::vector<char> data(1);
	pbs::region region(data);
	pbs::graph graph, second;
	int task = graph.task("waits"), other = second.task("other");

	graph.variant(task, PBS_RT_CPU, [&may_end](pbs::context &context) {
		while (!may_end)
			std::this_thread::yield();
		context.write<char>(0).first[0] = 'x';
	}, 1, 1000);
	graph.uses(task, region, PBS_RT_WRITE);
	second.variant(other, PBS_RT_CPU, [](pbs::context &) {}, 1, 1000);
	second.uses(other, region, PBS_RT_READ);

	pbs::running running = runtime.start(graph);
	want(!running.is_done(), "it is not done");
	try {
		runtime.start(second);
		want(false, "a region of a graph that is running");
	} catch (const pbs::error &error) {
		want(error.number() == PBS_RT_EINVAL, "the number of the error");
		want(std::string(error.what()) == "a region is of a graph that is running",
		     error.what());
	}
	may_end = true;
	want(running.wait().tasks == 1, "one task");
	want(data[0] == 'x', "its data");
	want(runtime.start(second).wait().tasks == 1, "the region is free again");
	/* One that nobody waits for ends with its object. */
	runtime.start(second);
}

static void failures_are_exceptions(pbs::runtime &runtime)
{
	pbs::graph graph;
	int task = graph.task("throws");

	graph.variant(task, PBS_RT_CPU, [](pbs::context &context) {
		context.read<char>(7);
	}, 1, 1000);
	try {
		runtime.run(graph);
		want(false, "a task has failed");
	} catch (const pbs::error &error) {
		want(error.number() == PBS_RT_EFAILED, "the number of a failed task");
	}
	try {
		pbs::running running = runtime.start(graph);

		running.wait();
		want(false, "a task has failed in the background");
	} catch (const pbs::error &error) {
		want(error.number() == PBS_RT_EFAILED, "the number, in the background");
	}
	try {
		pbs::options().determination("always");
		want(false, "co-scheduling is off");
	} catch (const pbs::error &error) {
		want(error.number() == PBS_RT_EINVAL, "the number of wrong options");
	}
}

/* A task stays on the CPU if its data take longer to the accelerator than it saves there. */
static void transfers_count()
{
	for (std::uint64_t bytes : {std::uint64_t(0), std::uint64_t(100) << 20}) {
		pbs::options options;
		pbs::graph graph;
		bool is_on_cpu = false;

		options.threads(1).simulated("gpu", PBS_RT_GPU, 1, 1 << 20).link("gpu", 1 << 30);
		pbs::runtime runtime(options);
		int task = graph.task("work");

		graph.variant(task, PBS_RT_CPU, [&is_on_cpu](pbs::context &) {
			is_on_cpu = true;
		}, 1, 5000000);
		graph.variant(task, PBS_RT_GPU, [](pbs::context &) {}, 1, 1000000);
		graph.transfer(task, bytes);
		runtime.run(graph);
		want(is_on_cpu == (bytes > 0), "the variant that a transfer selects");
	}
}

int main()
{
	pbs::options options;

	options.threads(2).simulated("gpu", PBS_RT_GPU, 1, 1 << 20);
	pbs::runtime runtime(options);

	runs(runtime);
	runs_in_the_background(runtime);
	failures_are_exceptions(runtime);
	transfers_count();
	return bad;
}
