// SPDX-License-Identifier: GPL-2.0
//! Execution under a plan: the planner has decided about all tasks, and the node keeps their order.
//!
//! `pbsctl run --cosched` starts the program with the places of its tasks ([`LANES_VARIABLE`]).
//! Each process of the plan is a thread here, which attaches itself and marks the ends of its tasks.
//! A task begins when the node lets it, after all tasks for which it waits.  The threads wait for
//! each other as well: without that, a dropped plan would leave the tasks without an order.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use pbs_job::graph::{lanes_from_text, ProgramLane, LANES_VARIABLE};
use pbs_uapi::task::{Process, ENV_DEVICE, ENV_PROCESS};
use pbs_uapi::DEVICE_PATH;

use crate::execute::{execute, Ran};
use crate::graph::Graph;
use crate::profile::learn;
use crate::report::{Report, TaskReport};
use crate::runtime::{Candidate, Runtime};
use crate::Error;

/// Whether a graph of this process was run under the plan: the plan is of the first one.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Place of this program in a plan.
pub(crate) struct Place {
    /// The tasks of each process of the plan, in their order.
    processes: Vec<Vec<ProgramLane>>,
    /// Number of the first process; the others follow it.
    first: u32,
    device: PathBuf,
}

/// A thread while it is a process of the plan.
trait Attached {
    /// Ends the present task, and returns when the next one begins.
    fn end_task(&self) -> Result<(), String>;
}

impl Attached for Process {
    fn end_task(&self) -> Result<(), String> {
        self.task_end().map(|_| ()).map_err(|error| error.to_string())
    }
}

/// Returns the place of this program in a plan, for its first graph.
///
/// # Errors
///
/// [`Error::Plan`] if the environment names a place that can't be.
pub(crate) fn place() -> Result<Option<Place>, Error> {
    let (Ok(lanes), Ok(first)) = (std::env::var(LANES_VARIABLE), std::env::var(ENV_PROCESS)) else {
        return Ok(None);
    };
    if IS_USED.swap(true, Ordering::Relaxed) {
        return Ok(None);
    }
    let unset = |name: &str, value: &str| {
        let why = format!("{name}={value} has not the form that pbsctl gives it; unset it");
        Error::Plan(why)
    };
    let processes = lanes_from_text(&lanes).ok_or_else(|| unset(LANES_VARIABLE, &lanes))?;
    let first = first.parse().map_err(|_| unset(ENV_PROCESS, &first))?;
    let device = std::env::var_os(ENV_DEVICE).unwrap_or_else(|| DEVICE_PATH.into());
    Ok(Some(Place { processes, first, device: device.into() }))
}

/// Tasks that have ended, for all threads.
#[derive(Debug)]
struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ended: Vec<Option<Ran>>,
    failed: Option<Error>,
}

impl Progress {
    fn new(tasks: usize) -> Self {
        let ended = (0..tasks).map(|_| None).collect();
        Self { state: Mutex::new(State { ended, failed: None }), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all tasks before a task have ended. Returns whether the task may run.
    fn wait(&self, graph: &Graph, task: usize) -> bool {
        let is_open =
            |state: &State| graph.tasks[task].after.iter().any(|of| state.ended[of.0].is_none());
        let waited =
            self.changed.wait_while(self.state(), |state| state.failed.is_none() && is_open(state));
        waited.unwrap_or_else(PoisonError::into_inner).failed.is_none()
    }

    fn end(&self, task: usize, ran: Result<Ran, Error>) {
        let mut state = self.state();
        match ran {
            Ok(ran) => state.ended[task] = Some(ran),
            // The first failure is reported.
            Err(error) => {
                state.failed.get_or_insert(error);
            }
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl Runtime {
    /// Executes a graph at its place in a plan.
    pub(crate) fn run_planned(
        &self,
        graph: &Graph,
        candidates: &[Vec<Candidate>],
        place: &Place,
    ) -> Result<Report, Error> {
        let attach = |index: u32| {
            let number = place.first.saturating_add(index);
            let attached = Process::attach_at(&place.device, number);
            attached.map_err(|error| error.to_string())
        };
        self.run_lanes(graph, candidates, &place.processes, &attach)
    }

    fn run_lanes<A: Attached>(
        &self,
        graph: &Graph,
        candidates: &[Vec<Candidate>],
        processes: &[Vec<ProgramLane>],
        attach: &(dyn Fn(u32) -> Result<A, String> + Sync),
    ) -> Result<Report, Error> {
        if !self.can_run(graph, candidates, processes) {
            let why = "the plan is of another graph than the program has: announce it again";
            return Err(Error::Plan(why.into()));
        }
        let progress = Progress::new(graph.tasks.len());
        let regions = graph.regions();
        thread::scope(|scope| {
            for (index, lanes) in (0..).zip(processes) {
                let (progress, regions) = (&progress, &regions);
                scope.spawn(move || {
                    let attached = match attach(index) {
                        Ok(attached) => attached,
                        Err(why) => {
                            let first = lanes.first().map_or(0, |lane| lane.task);
                            return progress.end(first, Err(Error::Plan(why)));
                        }
                    };
                    for lane in lanes {
                        if !progress.wait(graph, lane.task) {
                            return;
                        }
                        let own = &candidates[lane.task][lane.variant];
                        let memories = &self.devices[own.device].memories;
                        let memory = memories.get(lane.instance as usize);
                        let task = &graph.tasks[lane.task];
                        let ran = self.pool.within(|| execute(task, own.variant, memory, regions));
                        let name = || task.name.clone();
                        let ran = ran.map_err(|why| Error::Failed { task: name(), why });
                        progress.end(lane.task, ran);
                        if let Err(why) = attached.end_task() {
                            return progress.end(lane.task, Err(Error::Plan(why)));
                        }
                    }
                });
            }
        });
        let State { ended, mut failed } =
            progress.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        for region in regions {
            if let Err(why) = region.go_home() {
                failed.get_or_insert(Error::Device { device: "memory".into(), why });
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(self.report_of_lanes(graph, candidates, processes, ended)),
        }
    }

    /// Whether the tasks of a plan are those of the graph, each once and on a device that is here.
    fn can_run(
        &self,
        graph: &Graph,
        candidates: &[Vec<Candidate>],
        processes: &[Vec<ProgramLane>],
    ) -> bool {
        let mut tasks: Vec<usize> = processes.iter().flatten().map(|lane| lane.task).collect();
        tasks.sort_unstable();
        let is_here = |lane: &ProgramLane| {
            let own = candidates.get(lane.task).and_then(|own| own.get(lane.variant));
            own.is_some_and(|own| match own.device {
                0 => own.units == 1,
                device => (lane.instance as usize) < self.devices[device].memories.len(),
            })
        };
        tasks.into_iter().eq(0..graph.tasks.len()) && processes.iter().flatten().all(is_here)
    }

    fn report_of_lanes(
        &self,
        graph: &Graph,
        candidates: &[Vec<Candidate>],
        processes: &[Vec<ProgramLane>],
        ended: Vec<Option<Ran>>,
    ) -> Report {
        let mut lanes: Vec<ProgramLane> = processes.iter().flatten().copied().collect();
        lanes.sort_unstable_by_key(|lane| lane.task);
        let profiles = &self.options.profiles;
        let tasks = graph.tasks.iter().zip(&lanes).zip(ended);
        let tasks = tasks.filter_map(|((task, lane), ran)| {
            let (own, ran) = (&candidates[lane.task][lane.variant], ran?);
            profiles.ran(&own.key, ran.ended_ns.saturating_sub(ran.started_ns));
            learn(&**profiles, &ran.transfers);
            Some(TaskReport {
                name: task.name.clone(),
                variant: own.variant,
                model: own.key.model,
                device: own.key.device.clone(),
                instance: (own.device > 0).then_some(lane.instance),
                started_ns: ran.started_ns,
                ended_ns: ran.ended_ns,
                reruns: 0,
                is_co_scheduled: true,
            })
        });
        Report { tasks: tasks.collect(), ..Report::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::accelerator::{Accelerator, Simulated};
    use crate::graph::{Task, Variant};
    use crate::region::Region;
    use crate::runtime::{DeviceSpec, Options};
    use crate::{Access, Model};

    /// Numbers of the processes whose tasks have ended, in that order.
    type Ends = Mutex<Vec<u32>>;

    struct Fake<'a> {
        process: u32,
        ends: &'a Ends,
    }

    impl Attached for Fake<'_> {
        fn end_task(&self) -> Result<(), String> {
            self.ends.lock().unwrap().push(self.process);
            Ok(())
        }
    }

    fn runtime() -> Runtime {
        let gpu = || Arc::new(Simulated::new(&[Model::Gpu], 1 << 20)) as Arc<dyn Accelerator>;
        let gpus = DeviceSpec {
            name: "gpu".into(),
            instances: vec![gpu(), gpu()],
            link_bytes_per_s: None,
        };
        Runtime::new(Options { threads: 2, devices: vec![gpus], ..Options::default() }).unwrap()
    }

    /// Three tasks that each append their number to the text, one after the other.
    fn graph(text: &Region) -> Graph {
        let mut graph = Graph::new();
        for number in 0..3_u8 {
            let append = move |context: &mut crate::Context<'_>| {
                let text = context.write(0)?;
                let end = text.iter().position(|&byte| byte == 0).ok_or("the text is full")?;
                text[end] = b'0' + number;
                Ok(())
            };
            let on_gpu = crate::Body::Function(Arc::new(append));
            let task = Task::new("append")
                .variant(Variant::cpu(append))
                .variant(Variant::new(Model::Gpu, 1, on_gpu))
                .region(text, Access::ReadWrite);
            graph.add(task);
        }
        graph
    }

    fn run(runtime: &Runtime, graph: &Graph, lanes: &str, ends: &Ends) -> Result<Report, Error> {
        let candidates = runtime.candidates(graph)?;
        let attach = |process| Ok(Fake { process, ends });
        runtime.run_lanes(graph, &candidates, &lanes_from_text(lanes).unwrap(), &attach)
    }

    #[test]
    fn tasks_run_in_the_threads_of_their_processes_in_the_order_of_the_graph() {
        let (runtime, text, ends) = (runtime(), Region::new(vec![0; 4]), Ends::default());
        let report = run(&runtime, &graph(&text), "1:1:1;0:0:0,2:0:0", &ends).unwrap();
        assert_eq!(text.content(), *b"012\0");
        let mut ends = ends.into_inner().unwrap();
        ends.sort_unstable();
        assert_eq!(ends, [0, 1, 1]);
        let models: Vec<_> = report.tasks.iter().map(|of| of.model).collect();
        assert_eq!(models, [Model::Cpu, Model::Gpu, Model::Cpu]);
        assert_eq!(report.tasks[1].instance, Some(1));
        assert_eq!(runtime.device_memory_bytes(), 0, "data are at home");
    }

    #[test]
    fn a_plan_of_another_graph_is_refused_and_runs_nothing() {
        let (runtime, text) = (runtime(), Region::new(vec![0; 4]));
        for lanes in ["0:0:0,1:0:0", "0:0:0,1:0:0,1:0:0", "0:9:0,1:0:0,2:0:0", "0:1:2,1:0:0,2:0:0"]
        {
            let refused = run(&runtime, &graph(&text), lanes, &Ends::default()).unwrap_err();
            assert!(matches!(&refused, Error::Plan(why) if why.contains("announce it again")));
        }
        assert_eq!(text.content(), [0; 4]);
    }

    /// Tasks behind one that cannot run are not waited for.
    #[test]
    fn a_failed_task_or_process_ends_the_run() {
        let (runtime, text) = (runtime(), Region::new(vec![b'x'; 4]));
        let failed = run(&runtime, &graph(&text), "1:0:0,2:0:0;0:0:0", &Ends::default());
        assert_eq!(failed.unwrap_err().to_string(), "task append: the text is full");
        let text = Region::new(vec![0; 4]);
        let ends = Ends::default();
        let attach = |process: u32| match process {
            1 => Err("there is no such process".into()),
            process => Ok(Fake { process, ends: &ends }),
        };
        let graph = graph(&text);
        let candidates = runtime.candidates(&graph).unwrap();
        let lanes = lanes_from_text("1:0:0,2:0:0;0:0:0").unwrap();
        let failed = runtime.run_lanes(&graph, &candidates, &lanes, &attach);
        assert_eq!(failed.unwrap_err().to_string(), "there is no such process");
        assert_eq!(text.content(), [0; 4]);
    }
}
