// SPDX-License-Identifier: GPL-2.0
//! Requests as Keller's users can write them (3).

use pbs_resources::{
    parse_items, Arrangement, Chunk, Condition, Facts, Item, Op, Rset, Sharing, Value,
};

fn item(resource: &str, value: Value) -> Item {
    Item { resource: resource.into(), value }
}

fn amount(resource: &str, amount: u64) -> Item {
    item(resource, Value::Amount(amount))
}

fn word(resource: &str, word: &str) -> Item {
    item(resource, Value::Word(word.into()))
}

fn read(text: &str) -> Rset {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

const GIB: u64 = 1 << 30;

#[test]
fn the_example_of_requests_is_read() {
    let first = read("rset=8:ncpus=2:mem=10g:rack=8");
    let items = vec![amount("ncpus", 2), amount("mem", 10 * GIB), amount("rack", 8)];
    assert_eq!(first.chunks, [Chunk { count: 8, items }]);
    assert_eq!((first.total("ncpus"), first.total("mem")), (16, 80 * GIB));

    let second = read("rset=ncpus=27:vmem=20g:arch=linux+4:acc=fpga");
    assert_eq!(second.chunks.len(), 2);
    assert_eq!(second.chunks[0].count, 1);
    assert_eq!(second.chunks[0].items[2], word("arch", "linux"));
    let items = vec![word("acc", "fpga")];
    assert_eq!(second.chunks[1], Chunk { count: 4, items });

    let third = read("rset=5:ncpus=16:mem=12g:net=IB+ncpus=1:mem=4g,sw=g03,place=scatter:excl");
    assert_eq!(third.chunks.len(), 2);
    assert_eq!(third.job_wide, [word("sw", "g03")]);
    assert_eq!(third.place.arrangement, Arrangement::Scatter);
    assert_eq!(third.place.sharing, Some(Sharing::Exclusive));
    assert_eq!([third.chunks[0].count, third.chunks[1].count], [5, 1]);
    assert_eq!(third.total("ncpus"), 81);
}

#[test]
fn a_written_request_is_read_as_the_same() {
    for (text, canonical) in [
        ("8:ncpus=2:mem=10g:rack=8", "rset=8:ncpus=2:mem=10g:rack=8"),
        ("rset=1:ncpus=1", "rset=ncpus=1"),
        (" rset=ncpus=1 + 2:ncpus=2 , sw=g03 ", "rset=ncpus=1+2:ncpus=2,sw=g03"),
        ("ncpus=1:mem=1024m", "rset=ncpus=1:mem=1g"),
        ("ncpus=1:mem=1GB", "rset=ncpus=1:mem=1g"),
        ("ncpus=1:mem=1000000", "rset=ncpus=1:mem=1000000"),
        ("ncpus=1,place=free", "rset=ncpus=1"),
        ("ncpus=1,place=:excl", "rset=ncpus=1,place=free:excl"),
        ("10:ncpus=12, place=free:excl", "rset=10:ncpus=12,place=free:excl"),
        ("ncpus=1,place=pack,disk=1t", "rset=ncpus=1,disk=1t,place=pack"),
        ("1:gtx1080=1,place=:excl", "rset=gtx1080=1,place=free:excl"),
        ("2:2x4=grid", "rset=2:2x4=grid"),
        ("ncpus=1,avoid=n02:n01:n02", "rset=ncpus=1,avoid=n01:n02"),
        ("ncpus=1,avoid=n.1,place=pack,sw=a", "rset=ncpus=1,sw=a,place=pack,avoid=n.1"),
    ] {
        let rset = read(text);
        assert_eq!(rset.to_string(), canonical, "{text}");
        assert_eq!(read(canonical), rset, "{text}");
    }
}

#[test]
fn chunks_are_multiplied_and_mixed() {
    let rset = read("2:ncpus=4+4:ncpus=3+ncpus=1");
    let counts: Vec<_> = rset.chunks.iter().map(|chunk| chunk.count).collect();
    assert_eq!(counts, [2, 4, 1]);
    assert_eq!(rset.total("ncpus"), 21);
    assert_eq!(rset.total("mem"), 0);
}

#[test]
fn places_are_read() {
    for (text, arrangement, sharing) in [
        ("free", Arrangement::Free, None),
        ("pack", Arrangement::Pack, None),
        ("scatter", Arrangement::Scatter, None),
        ("free:excl", Arrangement::Free, Some(Sharing::Exclusive)),
        ("scatter:shared", Arrangement::Scatter, Some(Sharing::Shared)),
        (":shared", Arrangement::Free, Some(Sharing::Shared)),
        ("excl", Arrangement::Free, Some(Sharing::Exclusive)),
        ("pack:exclusive", Arrangement::Pack, Some(Sharing::Exclusive)),
    ] {
        let rset = read(&format!("ncpus=1,place={text}"));
        assert_eq!((rset.place.arrangement, rset.place.sharing), (arrangement, sharing), "{text}");
    }
}

#[test]
fn resources_have_any_name() {
    let rset = read("fpga=2:arch=linux:net=IB,matlab=5,disk=10t");
    assert_eq!(rset.chunks[0].items.len(), 3);
    assert_eq!(rset.job_wide, [amount("matlab", 5), amount("disk", 10 << 40)]);
    let items = parse_items(" ncpus=16:net=IB:net=Ethernet ").unwrap();
    assert_eq!(items, [amount("ncpus", 16), word("net", "IB"), word("net", "Ethernet")]);
}

/// Amounts that a request asks for.
struct RequestedAmounts(&'static [(&'static str, u64)]);

impl Facts for RequestedAmounts {
    fn amount(&self, name: &str) -> Option<u64> {
        let found = self.0.iter().find(|(asked, _)| *asked == name);
        found.map(|(_, amount)| *amount)
    }

    fn is_user(&self, name: &str) -> bool {
        name == "alice"
    }

    fn is_group(&self, name: &str) -> bool {
        name == "G1"
    }
}

fn condition(text: &str) -> Condition {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn conditions_of_pools_are_read() {
    let small = condition("ncpus<4 & duration<1h");
    let compare =
        |name: &str, amount| Condition::Compare { name: name.into(), op: Op::Less, amount };
    assert_eq!(small, Condition::All(vec![compare("ncpus", 4), compare("duration", 3600)]));
    assert!(small.holds(&RequestedAmounts(&[("ncpus", 3), ("duration", 3599)])));
    assert!(!small.holds(&RequestedAmounts(&[("ncpus", 4), ("duration", 3599)])));
    assert!(!small.holds(&RequestedAmounts(&[("ncpus", 3), ("duration", 3600)])));

    let gate = condition("vmem>=80g | mem>=66g | ncpus>=17 | duration<=12h");
    assert!(gate.holds(&RequestedAmounts(&[("vmem", 80 << 30), ("mem", 0), ("duration", 86_400)])));
    assert!(!gate.holds(&RequestedAmounts(&[
        ("vmem", 1),
        ("mem", 1),
        ("ncpus", 16),
        ("duration", 43_201)
    ])));
    assert!(gate.holds(&RequestedAmounts(&[("duration", 43_200)])));

    let who = condition("group:G1 | user:bob | duration<=2h");
    assert!(who.holds(&RequestedAmounts(&[])));
    assert!(!condition("user:bob | group:G2").holds(&RequestedAmounts(&[])));
    assert!(condition("user:alice").holds(&RequestedAmounts(&[])));
}

#[test]
fn and_binds_tighter_than_or() {
    let facts = RequestedAmounts(&[("a", 1), ("b", 0)]);
    assert!(condition("a=1 | b=1 & b=2").holds(&facts));
    assert!(!condition("(a=1 | b=1) & b=2").holds(&facts));
    assert!(condition("always").holds(&facts));
    assert!(!condition("never").holds(&facts));
    // Nothing is known of it.
    assert!(!condition("c=0 | c!=0").holds(&facts));
    for (text, holds) in [
        ("a<1", false),
        ("a<=1", true),
        ("a=1", true),
        ("a==1", true),
        ("a!=1", false),
        ("a>=1", true),
        ("a>1", false),
        ("a != 2 && b < 1", true),
        ("b>0||a>0", true),
    ] {
        assert_eq!(condition(text).holds(&facts), holds, "{text}");
    }
}

#[test]
fn conditions_are_written_as_they_are_read() {
    for (text, canonical) in [
        ("((a<1))", "a<1"),
        ("a<1|(b<2|c<3)", "a<1 | b<2 | c<3"),
        ("(a<1&b<2)|c<3", "a<1 & b<2 | c<3"),
        ("a<1&(b<2|c<3)", "a<1 & (b<2 | c<3)"),
        ("mem>=65536m&duration<90", "mem>=64g & duration<1m30s"),
        ("area<=1024h", "area<=42d16h"),
        ("never | always & user:alice", "never | always & user:alice"),
        ("always|(never|a=1)", "always | never | a=1"),
    ] {
        let read = condition(text);
        assert_eq!(read.to_string(), canonical, "{text}");
        assert_eq!(condition(canonical), read, "{text}");
    }
}
