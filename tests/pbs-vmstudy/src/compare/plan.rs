// SPDX-License-Identifier: GPL-2.0
//! Jobs under plans: admission, the plan, and answers, by the loop of `pbsctl run`
//! (`pbs-control`) with its times.

use pbs_control::{Answer, Controller, Options};
use pbs_job::machine_from_toml;
use pbs_plan::{wire, Config, Plan};
use pbs_planner::RunId;
use pbs_uapi::{Device, Eject, Event, EventKind};
use pbs_vmtest::check;
use pbs_vmtest::harness::{line, now_ns, rate, Child, Context, Verdict};

use crate::beside::sleep_until;
use pbs_gen::deadline_jobs::DeadlineJob;

/// From the call that makes a plan until it is in force, as `pbsctl run` has it.
const LEAD_NS: u64 = 100_000_000;
/// After so much time it is looked whether all is over, whatever was told.
const LONGEST_REST_MS: u64 = 100;

/// The node's planner, with the jobs that it has admitted.
pub struct Planner {
    controller: Controller,
    /// In the order of the jobs; `None`: it was declined.
    runs: Vec<Option<RunId>>,
    /// Plans that the node has taken.
    pub plans: u64,
}

impl Planner {
    /// Asks for all jobs one after the other, whose times count from `base_ns`. Plans have
    /// this configuration.
    pub fn admit(jobs: &[DeadlineJob], base_ns: u64, config: Config) -> Result<Self, String> {
        let options = Options { config: Some(config), lead_ns: LEAD_NS, ..Options::default() };
        let machine = format!(
            "[[node]]\nname = \"vm\"\nmemory_bytes = 1_000_000_000\nrate_insns_per_s = {}\n\
             cores = [{{ name = \"cpu0\", cpu = 0 }}]\n",
            rate().insns_per_ms() * 1_000
        );
        let machine = machine_from_toml(&machine).map_err(|problems| format!("{problems:?}"))?;
        let mut controller = Controller::new(machine, options, 1, 1);
        let mut runs = Vec::new();
        for (index, job) in jobs.iter().enumerate() {
            let asked = job.request(index).map_err(|problems| format!("{problems:?}"))?;
            let asked = asked.submitted_at(base_ns).ok_or("no such time")?;
            let answer = controller.admit(asked, now_ns());
            runs.push(answer.ok().map(|admitted| admitted.run));
        }
        Ok(Self { controller, runs, plans: 0 })
    }

    /// By job: whether it was admitted.
    pub fn accepted(&self) -> Vec<bool> {
        self.runs.iter().map(Option::is_some).collect()
    }

    /// Puts the first plan into force, and attaches those who run the jobs to it.
    pub fn begin<'a>(
        &mut self,
        device: &Device,
        children: impl Iterator<Item = Option<&'a Child>>,
    ) -> Verdict {
        let made_ns = now_ns();
        let plan = self.controller.plan(made_ns);
        let plan = plan.map_err(|problems| format!("{problems:?}"))?;
        self.write(device, &plan.ok_or("nothing was admitted")?, made_ns)?;
        for (run, child) in self.runs.iter().zip(children) {
            if let (Some(run), Some(child)) = (run, child) {
                let number = self.controller.number(*run, 0);
                device.attach(child.pid, number, 0).context("attach")?;
            }
        }
        Ok(())
    }

    /// Hears of what happens, and answers it if `answers`, until `is_over`.
    pub fn follow(
        &mut self,
        device: &Device,
        answers: bool,
        is_over: impl Fn() -> bool,
    ) -> Verdict {
        let mut batch = [Event::default(); 64];
        while !is_over() {
            let mut timeout_ms = LONGEST_REST_MS;
            if answers {
                let made_ns = now_ns();
                match self.controller.answer(made_ns) {
                    Ok(Answer::Plan { plan, .. }) => self.write(device, &plan, made_ns)?,
                    Ok(Answer::NotBefore(at_ns)) => {
                        let rest_ms = at_ns.saturating_sub(now_ns()) / 1_000_000 + 1;
                        timeout_ms = timeout_ms.min(rest_ms);
                    }
                    Ok(Answer::Nothing) => {}
                    Err(problems) => return Err(format!("{problems:?}")),
                }
            }
            device.poll(timeout_ms as i32).context("poll")?;
            let count = device.read_events(&mut batch).context("read events")?;
            for event in &batch[..count] {
                self.controller.event(event);
                let is_fault = event.kind == EventKind::PlanDropped as u16
                    || event.kind == EventKind::Ejected as u16
                        && event.reason == Eject::Fault as u16;
                check!(!is_fault, "the class gave up: {}", line(event));
            }
        }
        Ok(())
    }

    /// Puts a plan into force when its time has come: its slots would come before the jobs
    /// are released otherwise, and go by while those sleep.
    fn write(&mut self, device: &Device, plan: &Plan, made_ns: u64) -> Verdict {
        sleep_until(made_ns + LEAD_NS);
        match device.write_plan(&wire::encode(plan).bytes) {
            Ok(()) => {
                self.controller.taken();
                self.plans += 1;
            }
            // Something has happened that is not heard of yet; the first plan has to do.
            Err(_) if self.plans > 0 => self.controller.refused(),
            Err(refused) => return Err(format!("the kernel refused the plan: {refused}")),
        }
        Ok(())
    }
}
