// SPDX-License-Identifier: GPL-2.0
//! Messages about parameters from which no plan can be generated.

use pbs_gen::{generate, Parameters, Scenario, SlotOrder, Span};

fn complaint(parameters: Parameters) -> String {
    match generate(&parameters) {
        Ok(_) => "made".into(),
        Err(error) => error.to_string(),
    }
}

macro_rules! golden {
    ($($name:ident: { $($field:ident: $value:expr),* } => $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            let parameters = Parameters { $($field: $value,)* ..Parameters::default() };
            assert_eq!(complaint(parameters), $expected);
        }
    )*};
}

golden! {
    no_processes: { processes: 0 }
        => "processes is 0; it must be between 1 and 1_024";
    too_many_processes: { processes: 1025 }
        => "processes is 1_025; it must be between 1 and 1_024";
    no_tasks: { tasks: Span::new(0, 3) }
        => "tasks is 0..3; it must be between 1 and 4_194_304";
    too_many_tasks: { processes: 3, tasks: Span::new(1, 2_000_000) }
        => "tasks may be 2_000_000 for each of 3 processes, but a plan has at most 4_194_304 slots; make it less";
    wrong_way_round: { task_insns: Span::new(5, 3) }
        => "task_insns is 5..3; write the least first: 3..5";
    too_long: { task_insns: Span::new(1, 274_877_906_945) }
        => "task_insns is 1..274_877_906_945; it must be between 1 and 274_877_906_944";
    no_length: { task_insns: Span::new(0, 0) }
        => "task_insns is 0; it must be between 1 and 274_877_906_944";
    all_idle: { idle_permille: 1000 }
        => "idle_permille is 1_000; it must be between 0 and 900";
    no_idle_length: { idle_insns: Span::new(0, 1) }
        => "idle_insns is 0..1; it must be between 1 and 274_877_906_944";
    too_many_idle_slots: { idle_insns: Span::new(1, 1) }
        => "idle_insns is 1; that needs more than the 4_194_304 slots of a plan; make it longer or idle_permille less";
    buffer: { buffer_permille: Span::new(1, 100_001) }
        => "buffer_permille is 1..100_001; it must be between 0 and 100_000";
    sigma: { task_sigma_permille: 1001 }
        => "task_sigma_permille is 1_001; it must be between 0 and 1_000";
    edges: { edge_permille: 1001 }
        => "edge_permille is 1_001; it must be between 0 and 1_000";
    messages: { message_permille: 1001 }
        => "message_permille is 1_001; it must be between 0 and 1_000";
    message_sigma: { message_sigma_permille: 1001 }
        => "message_sigma_permille is 1_001; it must be between 0 and 1_000";
    memory: { memory_bytes: Span::new(0, 281_474_976_710_657) }
        => "memory_bytes is 0..281_474_976_710_657; it must be between 0 and 281_474_976_710_656";
    memory_sigma: { memory_sigma_permille: 1001 }
        => "memory_sigma_permille is 1_001; it must be between 0 and 1_000";
    deviation_without_meaning: { deviation_permille: Some(100) }
        => "deviation_permille has no meaning in normal; leave it out";
    earlier_than_nothing: { scenario: Scenario::EarlyNode, deviation_permille: Some(1001) }
        => "deviation_permille is 1_001; it must be between 0 and 1_000";
    later_than_late: { scenario: Scenario::RogueTask, deviation_permille: Some(100_001) }
        => "deviation_permille is 100_001; it must be between 0 and 100_000";
    no_worker: { scenario: Scenario::ScatterGather, processes: 1 }
        => "processes is 1; scatter-gather needs a coordinator and at least one worker; write at least 2";
    no_short_task: { scenario: Scenario::LongThenShort, tasks: Span::new(1, 5) }
        => "tasks is 1..5; long-then-short needs a short task after a long one; write a least number of 2";
    long_is_short: { scenario: Scenario::LongThenShort, task_insns: Span::new(100, 999) }
        => "task_insns is 100..999; in long-then-short the greatest must be ten times the least: 100..1_000";
    the_least: {
        processes: 1, tasks: Span::new(1, 1), task_insns: Span::new(1, 1), idle_permille: 0,
        buffer_permille: Span::new(0, 0), task_sigma_permille: 0
    } => "made";
}

#[test]
fn names_and_spans_are_read() {
    for scenario in Scenario::ALL {
        assert_eq!(scenario.name().parse(), Ok(scenario));
    }
    for order in SlotOrder::ALL {
        assert_eq!(order.name().parse(), Ok(order));
    }
    assert_eq!(
        "fast".parse::<SlotOrder>().unwrap_err(),
        "there is no order \"fast\"; it can be alternate, turns, blocks"
    );
    assert_eq!(
        "fast".parse::<Scenario>().unwrap_err(),
        "there is no scenario \"fast\"; it can be normal, one-over, all-slightly-late, \
         long-then-short, early-node, endless-loop, scatter-gather, rogue-task"
    );
    assert_eq!("20_000..3_000".parse(), Ok(Span::new(20_000, 3_000)));
    assert_eq!(" 7 ".parse(), Ok(Span::new(7, 7)));
    assert_eq!(
        "3-5".parse::<Span>().unwrap_err(),
        "\"3-5\" is no whole number; write MIN..MAX, as 20_000..3_000_000"
    );
    for span in [Span::new(3, 9), Span::new(4, 4)] {
        assert_eq!(span.to_string().parse(), Ok(span));
    }
}
