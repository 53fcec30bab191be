// SPDX-License-Identifier: GPL-2.0
//! The Standard Workload Format: what is read, written and refused.

use std::io::{self, BufReader, Read};

use pbs_cluster_sim::swf::{read, write, Error, Header, NoJob, Reader, Stop, Writer};
use pbs_cluster_sim::{replay, Fcfs, Status, TraceJob};

const TRACE: &str = "\
; Version: 2.2
; Computer: a cluster
; MaxNodes: 16 (of 4 cores)
; MaxProcs: 64
; UnixStartTime: 1500000000
;  a remark: for people
; Queue: 1 short
; Queue: 2 long

3 7 0 -1 -1 -1 -1 4 60 -1 5 1 1 -1 -1 -1 -1 -1
  1 5 10 60.4 4 55.75 100 8 300 200 1 7 2 3 1 0 -1 -1
2 5 10 0 0 -1 -1 2 -1 -1 0 8 2 -1 -1 -1 1 30
4 8 1 20 4 -1 -1 4 60 -1 2 1 1 -1 -1 -1 -1 -1
5 9 1 20 4 -1 50 4 60 -1 5 1 1 -1 -1 -1 -1 -1
6 9 1 20 0 -1 -1 -1 60 -1 1 1 1 -1 -1 -1 -1 -1
";

#[test]
fn each_field_is_read() {
    let trace = read(TRACE.as_bytes()).unwrap();
    assert_eq!(trace.header.cores(), Some(64));
    assert_eq!(trace.header.get("UnixStartTime"), Some("1500000000"));
    assert_eq!(trace.header.get("computer"), Some("a cluster"));
    assert_eq!(trace.header.fields().filter(|field| field.0 == "Queue").count(), 2);
    let left_out = trace.left_out;
    assert_eq!((left_out.cancelled, left_out.parts, left_out.unknown), (1, 1, 1));
    assert_eq!(left_out.total(), 3);
    let first = TraceJob {
        number: 1,
        submit_s: 5,
        run_s: 60,
        requested_s: 300,
        cores: 4,
        memory_bytes: Some(200 * 1024 * 4),
        user: 7,
        group: 2,
        deadline_s: None,
        status: Status::Completed,
    };
    assert_eq!(trace.jobs[0], first);
    let second = TraceJob {
        number: 2,
        user: 8,
        group: 2,
        status: Status::Failed,
        ..TraceJob::new(5, 1, 1, 2)
    };
    assert_eq!(trace.jobs[1], second);
    // Taken back, but after it had started.
    assert_eq!((trace.jobs[2].status, trace.jobs[2].run_s), (Status::Cancelled, 20));
    assert_eq!(trace.jobs[2].memory_bytes, Some(50 * 1024 * 4));
}

#[test]
fn records_are_written_as_they_were_read() {
    let mut reader = Reader::new(TRACE.as_bytes());
    let records: Vec<_> = (&mut reader).map(Result::unwrap).collect();
    assert_eq!(records[0].job(), Err(NoJob::Cancelled));
    let mut writer = Writer::new(Vec::new(), reader.header()).unwrap();
    for record in &records {
        writer.record(record).unwrap();
    }
    let written = writer.finish().unwrap();
    let mut again = Reader::new(&written[..]);
    let read_again: Vec<_> = (&mut again).map(Result::unwrap).collect();
    assert_eq!(read_again, records);
    assert_eq!(again.into_header(), reader.into_header());
    let text = String::from_utf8(written).unwrap();
    assert!(text.contains("\n1 5 10 60 4 56 100 8 300 200 1 7 2 3 1 0 -1 -1\n"), "{text}");
}

#[test]
fn what_was_replayed_is_written() {
    let jobs =
        [TraceJob::new(0, 100, 60, 4), TraceJob::new(10, 30, 60, 2), TraceJob::new(11, 30, 60, 5)];
    let outcomes = replay(&jobs, &mut Fcfs::new(4), |_| ()).unwrap();
    let mut text = Vec::new();
    write(&mut text, &jobs, Some(&outcomes), 4).unwrap();
    let records: Vec<_> = Reader::new(&text[..]).map(Result::unwrap).collect();
    let [killed, waited, declined] = &records[..] else {
        panic!("{records:?}");
    };
    assert_eq!((killed.wait_s, killed.run_s, killed.status), (Some(0), Some(60), Status::Failed));
    assert_eq!((waited.wait_s, waited.run_s), (Some(50), Some(30)));
    assert_eq!((waited.allocated_cores, waited.status), (Some(2), Status::Completed));
    assert_eq!((declined.wait_s, declined.status), (None, Status::Cancelled));
    let trace = read(&text[..]).unwrap();
    assert_eq!((trace.jobs.len(), trace.left_out.cancelled), (2, 1));
    assert_eq!(trace.header.cores(), Some(4));
}

#[test]
fn the_first_dozen_of_bad_lines_is_told() {
    let text = format!("; MaxProcs: 4\n{}", "1 2 three\n".repeat(20));
    let Err(error) = read(text.as_bytes()) else {
        panic!("it was read");
    };
    let told = error.to_string();
    assert_eq!(told.lines().count(), 13, "{told}");
    assert!(told.starts_with("line 2: field 3 (wait time) is \"three\"; write"), "{told}");
    assert!(told.ends_with("\nand 8 more"), "{told}");
}

#[test]
fn each_kind_of_bad_line_says_what_is_right() {
    let good = "1 0 0 1 1 -1 -1 1 1 -1 1 1 1 -1 -1 -1 -1 -1";
    assert!(read(good.as_bytes()).is_ok());
    let bad = [
        ("1 2 3".to_string(), "there are 3 of 18 fields; write −1 for what is unknown"),
        (format!("{good} 0"), "more than 18 fields"),
        (good.replacen("0 0", "0 -2", 1), "nothing else is less than 0"),
        (good.replacen("0 0", "0 1e300", 1), "at most 2^40"),
        (good.replacen("0 0", "0 nan", 1), "write a number"),
        (good.replacen("-1 1 1 1", "-1 6 1 1", 1), "field 11 (status) is 6"),
        ("9".repeat(1 << 17), "longer than 65535 bytes"),
    ];
    for (line, what) in bad {
        let text = format!("{good}\n{line}\n{good}\n");
        let Err(Error::Lines(problems, 1)) = read(text.as_bytes()) else {
            panic!("{what}: it was read");
        };
        assert_eq!(problems[0].line, 2, "{what}");
        assert!(problems[0].message.contains(what), "{}", problems[0]);
    }
}

#[test]
fn files_of_any_bytes_are_no_reason_to_panic() {
    let mut random = pbs_gen::Random::new(1, pbs_gen::Stream::Trace);
    let letters = b"0123456789-. ;:\n\r\xff\x00e";
    for _ in 0..2000 {
        let mut bytes = TRACE.as_bytes().to_vec();
        for _ in 0..1 + random.below(20) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = letters[random.below(letters.len() as u64) as usize];
        }
        if let Ok(trace) = read(&bytes[..]) {
            let mut text = Vec::new();
            write(&mut text, &trace.jobs, None, 64).unwrap();
            let jobs = read(&text[..]).unwrap().jobs;
            assert_eq!(jobs.len(), trace.jobs.len());
        }
    }
}

#[test]
fn headers_hold_no_more_than_a_line() {
    let mut header = Header::default();
    header.push("Note", "two\nlines");
    let writer = Writer::new(Vec::new(), &header).unwrap();
    assert_eq!(writer.finish().unwrap(), b"; Version: 2.2\n; Note: two lines\n");
}

#[test]
fn a_file_that_fails_ends_there() {
    struct Fails;
    impl Read for Fails {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("gone"))
        }
    }
    let mut reader = Reader::new(BufReader::new(Fails));
    assert!(matches!(reader.next(), Some(Err(Stop::Io(_)))));
    assert!(reader.next().is_none());
    assert!(matches!(read(BufReader::new(Fails)), Err(Error::Io(_))));
}
