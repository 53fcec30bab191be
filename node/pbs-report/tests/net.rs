// SPDX-License-Identifier: GPL-2.0
//! Task nets as pictures.

use pbs_report::{net_picture, Net, NetEdge, NetTask};
use roxmltree::{Document, Node};

fn task(process: usize, name: &str, after: &[usize]) -> NetTask {
    NetTask {
        process,
        name: name.into(),
        figures: vec!["1,000 instr.".into(), "1 ms".into()],
        after: after.iter().map(|&task| NetEdge { task, message_bytes: None }).collect(),
    }
}

/// A fork of two processes: 0 → 1 → 4, 0 → 2 → 3 → 4.
fn net() -> Net {
    let mut net = Net {
        title: "Task net of job <a & b>".into(),
        note: "A note.".into(),
        processes: vec![("first".into(), "1.0 MiB".into()), ("<b>".into(), String::new())],
        tasks: vec![
            task(0, "zero", &[]),
            task(0, "one", &[0]),
            task(1, "two <&>", &[0]),
            task(1, "three", &[2]),
            task(0, "four", &[1, 3]),
        ],
    };
    net.tasks[4].after[1].message_bytes = Some(2048);
    net
}

fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

/// Left and upper edges of the boxes, in the order of the tasks.
fn boxes(svg: &str) -> Vec<(f64, f64, f64, f64)> {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    let all = document.descendants().filter(|node| node.attribute("class") == Some("box"));
    all.map(|node| {
        (number(&node, "x"), number(&node, "y"), number(&node, "width"), number(&node, "height"))
    })
    .collect()
}

#[test]
fn a_task_is_below_all_for_which_it_waits() {
    let net = net();
    let svg = net_picture(&net);
    let boxes = boxes(&svg);
    assert_eq!(boxes.len(), net.tasks.len());
    for (task, place) in net.tasks.iter().zip(&boxes) {
        for edge in &task.after {
            let before = boxes[edge.task];
            assert!(place.1 > before.1 + before.3, "{}: {place:?} {before:?}", task.name);
        }
    }
    // Each process has a column.
    assert!(boxes[0].0 == boxes[1].0 && boxes[1].0 == boxes[4].0 && boxes[2].0 == boxes[3].0);
    assert!(boxes[2].0 > boxes[0].0 + boxes[0].2);
    assert_eq!(svg.matches("waits for").count(), 5 + 1);
    assert!(svg.contains("four waits for three, which sends 2.0 KiB"), "{svg}");
    assert_eq!(net_picture(&net), svg);
}

#[test]
fn names_and_figures_are_in_the_picture_and_escaped() {
    let svg = net_picture(&net());
    for text in ["Task net of job &lt;a &amp; b&gt;", "two &lt;&amp;&gt;", "B &lt;b&gt;"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    assert!(svg.contains(">1,000 instr.<") && svg.contains(">1 ms<"));
    assert!(svg.contains("A first: 1.0 MiB") && svg.contains("waits for a message"));
    let hidden = Net { title: "a\u{202e}b".into(), ..net() };
    assert!(!net_picture(&hidden).contains('\u{202e}'));
}

/// A layer of more tasks than boxes fit beside each other continues in the next row.
#[test]
fn a_wide_layer_has_several_rows_and_no_boxes_overlap() {
    let mut tasks = vec![task(0, "start", &[])];
    tasks.extend((1..40).map(|process| task(process, &format!("long name of {process}"), &[0])));
    let all: Vec<_> = (1..40).collect();
    tasks.push(task(0, "end", &all));
    let processes = (0..40).map(|number| (format!("p{number}"), String::new())).collect();
    let svg = net_picture(&Net { processes, tasks, ..net() });
    let boxes = boxes(&svg);
    assert_eq!(boxes.len(), 41);
    for (number, one) in boxes.iter().enumerate() {
        assert!(one.0 >= 0.0 && one.0 + one.2 <= 960.0);
        for other in &boxes[number + 1..] {
            let apart = one.0 + one.2 <= other.0 || other.0 + other.2 <= one.0;
            assert!(apart || one.1 + one.3 <= other.1 || other.1 + other.3 <= one.1);
        }
    }
    let lowest = boxes[..40].iter().map(|place| place.1).fold(0.0, f64::max);
    assert!(boxes[40].1 > lowest);
}
