// SPDX-License-Identifier: GPL-2.0
//! The Standard Workload Format: what is read, written and refused.

use std::io::{self, BufReader, Read};

use pbs_cluster_sim::swf::{
    read, write, write_replayed, Error, Header, NoJob, Reader, Stop, Why, Writer,
};
use pbs_cluster_sim::{as_they_came, replay, Easy, Fcfs, Status, TraceJob};

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
    let count = |why| trace.notes.count(why);
    assert_eq!((count(Why::Cancelled), count(Why::Part), count(Why::Unknown)), (1, 1, 1));
    assert_eq!(trace.notes.left_out(), 3);
    let first = TraceJob {
        number: 1,
        submit_s: 5,
        run_s: 60,
        requested_s: 300,
        cores: 4,
        memory_bytes: Some(200 * 1024 * 4),
        user: 7,
        group: 2,
        application: Some(3),
        deadline_s: None,
        preceding: None,
        think_s: 0,
        status: Status::Completed,
    };
    assert_eq!(trace.jobs[0], first);
    let second = TraceJob {
        number: 2,
        user: 8,
        group: 2,
        preceding: Some(1),
        think_s: 30,
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
    assert_eq!((trace.jobs.len(), trace.notes.count(Why::Cancelled)), (2, 1));
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
        (good.replacen("0 0", "0 nan", 1), "write a number"),
        (good.replace(' ', ";"), "write spaces between the fields"),
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

const JOB: &str = "1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 -1 -1 -1 -1 -1";

#[test]
fn headers_are_read_as_archives_write_them() {
    for (header, cores) in [
        // Tabs and columns, values that begin with a number, and lines that go on.
        (&b";\t  MaxNodes:\t100\n;\t  MaxProcs:\t100\n; Note:  one\n;        two\n"[..], 100),
        (b";MaxProcs:338\n;\n;;; a line\n", 338),
        (b"; MaxNodes: 128 + 8 login\n; MaxProcs: 1,152 (144 of 8)\n", 1152),
        // Nodes are processors where only they are there.
        (b"; MaxNodes: 430\n; Queues: 0: interactive; 1: batch\n", 430),
        // Lines of other systems, letters of other encodings, and a mark before all.
        (b"\xef\xbb\xbf; MaxProcs: 64\r\n; Computer: M\xfcnchen\r\n", 64),
        // A header may continue among the jobs.
        (b"; Version: 2.2\n1 0 5 9 2 -1 -1 2 9 -1 1 1 1 1 1 1 -1 -1\n; MaxProcs: 32\n", 32),
    ] {
        let shown = String::from_utf8_lossy(header).into_owned();
        let trace = read(&[header, JOB.as_bytes(), b"\r\n"].concat()[..]).unwrap();
        assert_eq!(trace.header.cores(), Some(cores), "{shown}");
        assert_eq!(trace.notes.left_out(), 0, "{shown}");
        let last = trace.jobs.iter().find(|job| job.run_s == 100).unwrap();
        assert_eq!((last.cores, last.requested_s), (4, 200), "{shown}");
    }
}

#[test]
fn more_columns_and_titles_are_skipped_and_noted() {
    let text = format!("id\tsubmit\twait\n; MaxProcs: 16\n{JOB} gpu=1\n{JOB} 0 0 0\n{JOB}\n");
    let trace = read(text.as_bytes()).unwrap();
    assert_eq!((trace.jobs.len(), trace.notes.left_out()), (3, 1));
    assert!(trace.jobs.iter().all(|job| *job == trace.jobs[0]));
    let notes: Vec<_> = trace.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "1 line before the jobs is no comment; left out (line 1: id\tsubmit\twait)".to_string(),
            format!(
                "2 lines have more than 18 columns; the others are not read (the first is line 3: \
                 {JOB} gpu=1)"
            ),
        ]
    );
    // Below a job titles are a line that went wrong.
    assert!(read(format!("{JOB}\nid submit\n").as_bytes()).is_err());
}

#[test]
fn lines_with_impossible_numbers_are_left_out_and_noted() {
    for (from, to, what) in [
        ("0 -1 100", "0 -5 100", "field 3 (wait time) is \"-5\""),
        ("0 -1 100", "0 -1 -1359980917", "field 4 (run time) is \"-1359980917\""),
        ("0 -1 100", "0 -1 1e300", "field 4 (run time) is \"1e300\"; that is more than 2^40"),
    ] {
        let text = format!("{JOB}\n{}\n{JOB}\n", JOB.replacen(from, to, 1));
        let trace = read(text.as_bytes()).unwrap();
        assert_eq!((trace.jobs.len(), trace.notes.count(Why::Impossible)), (2, 1), "{to}");
        let note = trace.notes.iter().next().unwrap();
        assert_eq!(note.line, 2);
        assert!(note.example.starts_with(what), "{note}");
    }
    // A line that is no line of the format is another matter.
    assert!(read(format!("{JOB}\n1 0 -5\n").as_bytes()).is_err());
}

#[test]
fn what_is_unknown_stays_so_in_a_replay() {
    let text = "\
; UnixStartTime: 1700000000
; MaxProcs: 999
1 0 -1 100 4 -1 -1 4 200 -1 1 -1 -1 -1 -1 -1 -1 -1
2 5 7 50 4 33 -1 4 60 -1 1 -1 -1 3 2 1 1 10
3 5 -1 50 4 -1 -1 -1 60 -1 1 1 1 -1 -1 -1 77 10
";
    let trace = read(text.as_bytes()).unwrap();
    assert_eq!(trace.notes.count(Why::NoPredecessor), 1);
    let outcomes = replay(&trace.jobs, &mut Easy::new(16), |_| ()).unwrap();
    let jobs = as_they_came(&trace.jobs, &outcomes);
    let mut written = Vec::new();
    write_replayed(&mut written, &trace.header, &trace.records, &jobs, &outcomes, 16).unwrap();
    assert_eq!(
        String::from_utf8(written).unwrap(),
        "\
; Version: 2.2
; MaxJobs: 3
; MaxRecords: 3
; MaxProcs: 16
; UnixStartTime: 1700000000
1 0 0 100 4 -1 -1 4 200 -1 1 -1 -1 -1 -1 -1 -1 -1
2 110 0 50 4 33 -1 4 60 -1 1 -1 -1 3 2 1 1 10
3 5 0 50 4 -1 -1 -1 60 -1 1 1 1 -1 -1 -1 77 10
"
    );
}
