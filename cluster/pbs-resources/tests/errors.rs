// SPDX-License-Identifier: GPL-2.0
//! Errors of unreadable texts, with their column and the correction.

use pbs_resources::{
    parse_items, Condition, Rset, AVOIDED_NODES, CHUNK_ITEMS, RSET_BYTES, RSET_CHUNKS,
};

/// Requests of PBS Pro and Torque are refused with the request in words of this system.
#[test]
fn requests_of_other_systems_are_translated() {
    for (text, instead) in [
        ("select=2:ncpus=4:mem=4gb", "rset=2:ncpus=4:mem=4gb"),
        (" select=2:ncpus=4+1:ncpus=1,place=scatter", "rset=2:ncpus=4+1:ncpus=1,place=scatter"),
        ("nodes=2:ppn=8", "rset=2:ncpus=8"),
    ] {
        let error = text.parse::<Rset>().unwrap_err();
        assert!(error.message.ends_with(instead), "{text}: {error:?}");
        assert!(instead.parse::<Rset>().is_ok(), "{instead}");
    }
    let long = format!("select=1:ncpus=1{}", "+1:ncpus=1".repeat(100));
    // What is no request here, either, is not proposed.
    for text in [&*long, "nodes=1:ppn=4,walltime=01:00:00", "nodes=node01:ppn=8", "select=select="]
    {
        let error = text.parse::<Rset>().unwrap_err();
        assert!(error.message.ends_with("rset=2:ncpus=16:mem=32g"), "{error:?}");
    }
    // Names of resources are free.
    assert!("nodes=2:ncpus=1".parse::<Rset>().is_ok() && "selected=1".parse::<Rset>().is_ok());
}

#[test]
fn wrong_requests_are_refused() {
    for (text, column, words) in [
        ("", 1, "a resource must be here, not the end"),
        ("rset=", 6, "a resource must be here, not the end"),
        ("rset=4", 7, "4 has no value; write 4:ncpus=4 for 4 chunks"),
        ("4:", 3, "a resource must be here"),
        ("0:ncpus=1", 1, "0 chunks are none"),
        ("99999999999999999999:ncpus=1", 1, "is too large"),
        ("ncpus=", 7, "ncpus must have a value here, not the end"),
        ("ncpus", 6, "ncpus has no value; write ncpus=1"),
        ("ncpus=four", 7, "ncpus is counted, and four is no number; write one as 4"),
        ("mem=10x", 5, "write one as 512m or 10g"),
        ("mem=20000000t", 5, "is too large"),
        ("2000000000:mem=16000000t", 1, "all chunks together ask for more mem"),
        ("mem=16000000t,mem=2000000t", 1, "all chunks together ask for more mem"),
        ("18446744073709551615:a=1+2:b=1", 1, "too many chunks"),
        ("ncpus=1:ncpus=2", 9, "ncpus of the chunk stands here again"),
        ("ncpus=1,sw=a,sw=b", 14, "sw of the job as a whole stands here again"),
        ("ncpus=1+", 9, "a resource must be here, not the end"),
        ("ncpus=1++ncpus=1", 9, "a resource must be here, not \"+\""),
        ("ncpus=1,", 9, "a resource must be here"),
        ("ncpus=1 mem=2g", 9, "\"m\" can't be here"),
        ("ncpus=1;mem=2g", 8, "\";\" can't be here"),
        ("ncpus=1:place=pack", 9, "write a comma before it"),
        ("ncpus=1,place=", 15, "no place can begin with the end"),
        ("ncpus=1,place=any", 15, "there is no place any; write free, pack or scatter"),
        ("ncpus=1,place=pack:free", 20, "free is too much here"),
        ("ncpus=1,place=excl:shared", 20, "shared is too much here"),
        ("ncpus=1,place=excl:pack", 20, "pack is too much here"),
        ("ncpus=1,place=pack,place=free", 20, "place stands here again"),
        ("ncpus=1:größe=2", 11, "has no value"),
        ("ncpus=ä", 7, "must have a value here, not \"ä\""),
        ("ncpus=1,avoid=", 15, "the name of a node must be here"),
        ("ncpus=1,avoid=a:", 17, "the name of a node must be here"),
        ("ncpus=1,avoid=a,avoid=b", 17, "avoid stands here again"),
    ] {
        let error = text.parse::<Rset>().unwrap_err();
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.message.contains(words), "{text}: {error}");
        assert!(error.to_string().starts_with(&format!("column {column}: ")));
    }
}

/// Exactly as much as the limits is read; a chunk, a resource or a byte more is refused.
#[test]
fn requests_have_limits() {
    let items = |count: usize| {
        let items: Vec<String> = (0..count).map(|at| format!("r{at}=1")).collect();
        items
    };
    let chunks = |count: usize| vec!["9:ncpus=1"; count].join("+");
    let in_chunk = |count| items(count).join(":");
    let of_job = |count| format!("ncpus=1,{}", items(count).join(","));
    let nodes = |count| (0..count).map(|at| format!("n{at}")).collect::<Vec<_>>().join(":");
    let avoided = |count| format!("ncpus=1,avoid={}", nodes(count));
    let long = |bytes: usize| format!("ncpus=1:a={}", "x".repeat(bytes - "ncpus=1:a=".len()));
    for (text, more, words) in [
        (chunks(RSET_CHUNKS), chunks(RSET_CHUNKS + 1), "at most 256 chunks"),
        (in_chunk(CHUNK_ITEMS), in_chunk(CHUNK_ITEMS + 1), "a chunk has at most 64 resources"),
        (of_job(CHUNK_ITEMS), of_job(CHUNK_ITEMS + 1), "as a whole has at most 64 resources"),
        (avoided(AVOIDED_NODES), avoided(AVOIDED_NODES + 1), "avoids at most 64 nodes"),
        (long(RSET_BYTES), long(RSET_BYTES + 1), "at most 65536 bytes long"),
    ] {
        assert!(text.parse::<Rset>().is_ok(), "{words}");
        let error = more.parse::<Rset>().unwrap_err();
        assert!(error.message.contains(words), "{error}");
    }
}

#[test]
fn wrong_lists_are_refused() {
    for (text, column, words) in [
        ("", 1, "a resource must be here"),
        ("ncpus=1:ncpus=1", 9, "ncpus of the list stands here again"),
        ("rack=1:rack=a", 8, "rack of the list stands here again"),
        ("net=IB:net=IB", 8, "net of the list stands here again"),
        ("ncpus=1+ncpus=1", 8, "\"+\" can't be here"),
    ] {
        let error = parse_items(text).unwrap_err();
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.message.contains(words), "{text}: {error}");
    }
}

#[test]
fn wrong_conditions_are_refused() {
    for (text, column, words) in [
        ("", 1, "a condition can't begin with the end"),
        ("ncpus", 6, "ncpus is compared with nothing, but the end follows"),
        ("ncpus<", 7, "\"\" is no amount"),
        ("ncpus<four", 7, "\"four\" is no amount"),
        ("ncpus ~ 4", 7, "compared with nothing, but \"~\" follows"),
        ("duration<1h30", 12, "30 has no unit"),
        ("ncpus<4 duration<1h", 9, "\"d\" can't be here; join conditions with & (and) or | (or)"),
        ("ncpus<4 & ", 11, "a condition can't begin with the end"),
        ("(ncpus<4", 9, "the end stands where a ) is missing"),
        ("ncpus<4)", 8, "\")\" can't be here"),
        ("user:", 6, "user: has no name"),
        ("user alice", 6, "user is compared with nothing"),
    ] {
        let error = text.parse::<Condition>().unwrap_err();
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.message.contains(words), "{text}: {error}");
    }
    let deep = "(".repeat(100_000);
    let error = deep.parse::<Condition>().unwrap_err();
    assert!(error.message.contains("too many parentheses"), "{error}");
}
