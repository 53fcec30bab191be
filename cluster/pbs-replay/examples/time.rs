use pbs_cluster::{Machine, Rules};
use pbs_replay::*;
use std::sync::Arc;
use std::time::Instant;
fn main() {
    let site = pbs_site::Site::oculus();
    let args: Vec<usize> = std::env::args()
        .skip(1)
        .map(|a| a.parse().unwrap())
        .collect();
    let jobs: Vec<_> = workload::oculus(args[0], args[1], 1)
        .iter()
        .map(|j| j.with(Estimates::Users))
        .collect();
    let machine = Arc::new(Machine::of_site(&site));
    let mut planned = Planned::new(machine, Rules::default(), args[2]);
    let (mut f, mut e, mut c) = (Fcfs::new(9920), Easy::new(9920), Conservative::new(9920));
    let mut all: Vec<&mut dyn Policy> = vec![&mut f, &mut e, &mut planned];
    if args.len() > 3 {
        all.push(&mut c);
    }
    for p in all {
        let t = Instant::now();
        let o = replay(&jobs, p, |_| ()).unwrap();
        check(&jobs, &o, 9920).unwrap();
        let m = metrics::Metrics::of(&jobs, &o, 9920);
        println!("{:14} {:6.1} s  wait {:8.0} bsld {:9.1} util {:.3} loaded {:.3} makespan {:.1} d fair {:.3}", p.name(), t.elapsed().as_secs_f64(), m.wait_s.mean, m.bounded_slowdown.mean, m.utilisation, m.utilisation_loaded, m.makespan_s as f64 / 86400.0, m.fairness);
    }
    println!("decisions {}", planned.decisions());
}
