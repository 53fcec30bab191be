// SPDX-License-Identifier: GPL-2.0
//! From events to samples.

use pbs_interference::{Key, Level, Neighbour, Sharing, Watch, Watched, Window};
use pbs_uapi::{Event, EventKind, IDLE, NO_TASK};

/// Nothing is unallocated.
const ALL: Window = Window {
    period_ns: 100,
    unallocated_ns: 0,
};

fn key(process: u32, task: u32) -> Key {
    Key {
        fingerprint: process.into(),
        task,
        variant: 0,
    }
}

/// Events with numbers from 0 on: time, CPU, kind, process and task, retired.
struct Told(Vec<Event>);

impl Told {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn tell(&mut self, time_ns: u64, cpu: u32, kind: EventKind, of: (u32, u32), insns: u64) {
        self.0.push(Event {
            seq: self.0.len() as u64,
            time_ns,
            cpu,
            kind: kind as u16,
            process: of.0,
            task: of.1,
            retired_insns: insns,
            ..Event::default()
        });
    }

    fn begin(&mut self, time_ns: u64, cpu: u32) {
        self.tell(time_ns, cpu, EventKind::PlanInstalled, (IDLE, NO_TASK), 0);
    }

    fn grant(&mut self, time_ns: u64, cpu: u32, of: (u32, u32), insns: u64) {
        self.tell(time_ns, cpu, EventKind::Grant, of, insns);
    }

    fn idle(&mut self, time_ns: u64, cpu: u32) {
        self.grant(time_ns, cpu, (IDLE, NO_TASK), 0);
    }

    fn end(&mut self, time_ns: u64, cpu: u32, of: (u32, u32), insns: u64) {
        self.tell(time_ns, cpu, EventKind::TaskEnded, of, insns);
    }

    fn watch(&self, window: Window) -> Watch {
        let mut watch = Watch::new(window);
        self.0.iter().for_each(|event| watch.event(event));
        watch
    }

    fn samples(&self, window: Window) -> Vec<Watched> {
        let known = |process, task| (process < 90).then(|| key(process, task));
        self.watch(window).samples(&known, &Sharing::default())
    }
}

/// Who was there, and for how long.
type Sets = Vec<(Vec<Key>, u64)>;

/// Of a task: what it retired, and for how long it ran beside whom.
fn of(samples: &[Watched], process: u32, task: u32) -> Option<(u64, Sets)> {
    let mut samples = samples.iter();
    let found = samples.find(|known| (known.process, known.task) == (process, task))?;
    assert_eq!(found.sample.victim, key(process, task));
    let beside = found.sample.beside.iter().map(|beside| {
        let others = beside.neighbours.iter().map(|by| by.key);
        (others.collect(), beside.duration_ns)
    });
    Some((found.sample.insns, beside.collect()))
}

/// 1 runs on CPU 0, is preempted by 2, and goes on; 3 runs two tasks on CPU 1 under
/// one grant.
fn scene() -> Told {
    let mut told = Told::new();
    told.begin(0, 0);
    told.begin(0, 1);
    told.grant(0, 0, (1, 0), 0);
    told.grant(10, 1, (3, 0), 0);
    told.end(30, 1, (3, 0), 20);
    told.grant(40, 0, (2, 5), 0);
    told.end(60, 0, (2, 5), 20);
    told.grant(60, 0, (1, 0), 40);
    // Only here it is told that it was task 1.
    told.end(70, 1, (3, 1), 40);
    told.tell(70, 1, EventKind::ProcessEnded, (3, NO_TASK), 0);
    told.end(90, 0, (1, 0), 70);
    told.idle(95, 0);
    told
}

#[test]
fn f32_events_of_all_cpus_tell_who_ran_beside_whom() {
    let samples = scene().samples(ALL);
    let (first, second) = (key(3, 0), key(3, 1));
    assert_eq!(
        of(&samples, 1, 0),
        Some((
            70,
            vec![
                // From 0 to 10 and from 70 to 90.
                (vec![], 30),
                (vec![first], 20),
                (vec![second], 20),
            ]
        ))
    );
    assert_eq!(of(&samples, 2, 5), Some((20, vec![(vec![second], 20)])));
    assert_eq!(of(&samples, 3, 0), Some((20, vec![(vec![key(1, 0)], 20)])));
    let beside = vec![(vec![key(1, 0)], 20), (vec![key(2, 5)], 20)];
    assert_eq!(of(&samples, 3, 1), Some((40, beside)));
    assert_eq!(samples.len(), 4);
}

/// 90 of each 100, counted from the first plan of each CPU.
#[test]
fn f32_unallocated_time_is_nobodys() {
    let mut told = Told::new();
    told.begin(1000, 0);
    told.grant(1000, 0, (1, 0), 0);
    told.begin(1005, 1);
    told.grant(1020, 1, (2, 0), 0);
    // A later plan does not change the rhythm.
    told.begin(1150, 0);
    told.end(1250, 0, (1, 0), 9);
    told.tell(1250, 0, EventKind::ProcessEnded, (1, NO_TASK), 0);
    told.end(1300, 1, (2, 0), 9);
    let window = Window {
        period_ns: 100,
        unallocated_ns: 10,
    };
    let samples = told.samples(window);
    // 1000 to 1090, 1100 to 1190, 1200 to 1250; the other one 1020 to 1095, 1105 to
    // 1195, 1205 to 1295.
    let beside = vec![(vec![], 20 + 5 + 5), (vec![key(2, 0)], 70 + 85 + 45)];
    assert_eq!(of(&samples, 1, 0), Some((9, beside)));
    let alone = 5 + 5 + 45;
    let beside = vec![(vec![], alone), (vec![key(1, 0)], 70 + 85 + 45)];
    assert_eq!(of(&samples, 2, 0), Some((9, beside)));
}

/// Whatever event is lost: what is still told is what was told with it.
#[test]
fn f32_what_lost_events_may_have_told_is_left_out() {
    let whole = scene();
    let all = whole.samples(ALL);
    // That there was one after the last one nobody can see.
    for lost in 1..whole.0.len() - 1 {
        let mut rest = Told(whole.0.clone());
        rest.0.remove(lost);
        let samples = rest.samples(ALL);
        for found in &samples {
            assert!(all.contains(found), "without {lost}: {found:?}");
        }
        // An overrun tells the same.
        let mut overrun = Told(whole.0.clone());
        overrun.0[lost] = Event {
            seq: lost as u64,
            kind: EventKind::Overrun as u16,
            value: 1,
            ..Event::default()
        };
        assert_eq!(overrun.samples(ALL), samples);
    }
    // Without the grant of 3 nothing is known of it, nor of 1, which ran beside it;
    // 2 came later.
    let mut rest = Told(whole.0.clone());
    rest.0.remove(3);
    let samples = rest.samples(ALL);
    assert_eq!(of(&samples, 1, 0), None);
    assert_eq!(of(&samples, 3, 0), None);
}

#[test]
fn f32_who_was_there_before_or_is_unknown_tells_nothing() {
    let mut told = Told::new();
    told.begin(0, 0);
    // It has run before.
    told.grant(0, 0, (1, 0), 5);
    told.end(10, 0, (1, 0), 15);
    told.grant(10, 0, (2, 0), 0);
    told.grant(12, 1, (99, 0), 0);
    told.end(20, 0, (2, 0), 10);
    told.tell(21, 0, EventKind::Grant, (3, 0), 0);
    told.end(25, 1, (99, 0), 10);
    told.idle(25, 1);
    told.end(30, 0, (3, 0), 10);
    told.grant(40, 0, (4, 0), 0);
    let killed = told.0.len() + 1;
    told.end(50, 0, (4, 0), 10);
    told.tell(50, 0, EventKind::ProcessEnded, (4, NO_TASK), 0);
    told.0[killed].value = 2;
    told.grant(60, 0, (5, 0), 0);
    told.end(70, 0, (5, 0), 10);
    // It has not ended.
    told.grant(70, 0, (6, 0), 0);
    let samples = told.samples(ALL);
    let known: Vec<_> = samples.iter().map(|found| found.process).collect();
    assert_eq!(known, [5]);
}

#[test]
fn f32_events_may_be_told_twice() {
    let told = scene();
    let mut watch = told.watch(ALL);
    told.0.iter().for_each(|event| watch.event(event));
    let known = |process, task| Some(key(process, task));
    let sharing = Sharing::new(vec![(Level::L2, vec![0, 1])]);
    let samples = watch.samples(&known, &sharing);
    assert_eq!(samples.len(), 4);
    let neighbour = Neighbour {
        level: Level::L2,
        key: key(3, 1),
    };
    assert_eq!(samples[1].sample.beside[0].neighbours, [neighbour]);
}
