// SPDX-License-Identifier: GPL-2.0
//! From a declaration to verdicts, with commands that only print.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Duration;

use pbs_reproduce::{
    document, measure, mutate_all, mutated_text, page, run, summary, table, Change, Claims, Figure,
    Mutated, Options, Reproduction, Verdict,
};
use serde_json::{json, Value};

fn claims(text: &str) -> Claims {
    Claims::from_toml(text).unwrap_or_else(|why| panic!("{why}"))
}

/// Options with an output folder that no other call has: tests run beside each other.
fn options(name: &str) -> Options {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let folder = format!("pbs-reproduce-{name}-{}-{call}", std::process::id());
    let out = std::env::temp_dir().join(folder);
    Options {
        top: PathBuf::from("."),
        out,
        full: false,
        untimed: false,
        has: Vec::new(),
        jobs: 2,
        timeout: Duration::from_secs(30),
    }
}

fn tried(name: &str, text: &str) -> Reproduction {
    let options = options(name);
    let tried = run(&claims(text), &options, &|_| ()).unwrap();
    std::fs::remove_dir_all(&options.out).unwrap();
    tried
}

/// A claim whose command prints `output`, and one figure of it, the rest of which is `figure`.
fn one(output: &str, figure: &str) -> Verdict {
    let text = format!(
        "[[claim]]\nid = \"L1\"\nsection = \"1\"\nsays = \"x\"\ncommand = '''echo '{output}' '''\n\
         [[claim.figure]]\nname = \"x\"\nmeasured = \"/x\"\n{figure}\n"
    );
    tried("one", &text).claims.remove(0).verdict
}

fn refuted(verdict: Verdict) -> String {
    match verdict {
        Verdict::Refuted { because } => because,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_verdict_follows_from_the_figures() {
    let x = r#"{"x": 105}"#;
    assert_eq!(one(x, "published = 105"), Verdict::Reproduced);
    assert_eq!(one(x, "published = 100\nwithin = 0.1"), Verdict::Within { share: 0.05 });
    assert_eq!(
        refuted(one(x, "published = 100\nwithin = 0.04\nunit = \"ticks\"")),
        "x is 105 ticks, not 100"
    );
    assert_eq!(refuted(one(x, "published = 100")), "x is 105, not 100");
    assert_eq!(one(x, "at_most = 105\nat_least = 105"), Verdict::Reproduced);
    assert_eq!(refuted(one(x, "less_than = 105")), "x is 105, not less than 105");
    assert_eq!(refuted(one(x, "more_than = 105")), "x is 105, not more than 105");
    assert_eq!(
        refuted(one(x, "published = 7\nbecause = \"{measured}, where {published} stands\"")),
        "105, where 7 stands"
    );
    assert_eq!(one(r#"{"x": "late"}"#, "published = \"late\""), Verdict::Reproduced);
    assert_eq!(refuted(one(r#"{"x": false}"#, "published = true")), "x is no, not yes");
    assert_eq!(one(x, "scale = 0.01\npublished = 1.05"), Verdict::Reproduced);
    // What is no number can't be less than one.
    assert!(refuted(one(r#"{"x": null}"#, "less_than = 3")).starts_with("x is null"));
}

#[test]
fn a_figure_is_held_against_another() {
    let text = r#"
[[claim]]
id = "L1"
section = "1"
says = "b is less than a"
command = "echo '{\"a\": 3, \"b\": 4}'"
[[claim.figure]]
name = "a"
measured = "/a"
[[claim.figure]]
name = "b"
measured = "/b"
less_than = "a"
"#;
    let verdict = tried("another", text).claims.remove(0).verdict;
    assert_eq!(refuted(verdict), "b is 4, not less than a (3)");
}

#[test]
fn figures_are_found() {
    let output = json!({
        "rows": [{"of": "a/b", "n": 1, "x": [1.0, 4.0]}, {"of": "c", "n": 2, "x": [7.0]}],
        "a/b": "slash",
    });
    let found = |way: &str, over: &str| -> Result<Value, String> {
        let text = format!("name = \"x\"\nmeasured = \"{way}\"\n{over}");
        let figure: Figure = toml::from_str(&text).unwrap();
        measure(&output, &figure)
    };
    assert_eq!(found("/rows/1/n", ""), Ok(json!(2)));
    assert_eq!(found("/rows/#", ""), Ok(json!(2)));
    assert_eq!(found("/rows/[of=a/b]/n", ""), Ok(json!(1)));
    assert_eq!(found("/rows/[n=2]/of", ""), Ok(json!("c")));
    assert_eq!(found("/a~1b", ""), Ok(json!("slash")));
    assert_eq!(found("/rows/*/x/*", "over = \"max\""), Ok(json!(7.0)));
    assert_eq!(found("/rows/*/x/*", "over = \"min\""), Ok(json!(1.0)));
    assert_eq!(found("/rows/*/x/*", "over = \"sum\""), Ok(json!(12.0)));
    assert_eq!(found("/rows/*/x/*", "over = \"mean\""), Ok(json!(4.0)));
    assert_eq!(found("/rows/*/n", "over = \"median\""), Ok(json!(1.5)));
    for (way, over, why) in [
        ("/rows/2", "", "/rows/2: it is not there"),
        ("/rows/[n=3]/of", "", "/rows/[n=3]: none is so"),
        ("/rows/[n]/of", "", "it is [key=value]"),
        ("/rows/*/n", "", "say over which"),
        ("/rows/*/of", "over = \"min\"", "is no number"),
        ("rows", "", "it begins with a slash"),
        ("/a~1b/#", "", "there is no array"),
        ("/a~1b", "scale = 2.0", "can't be scaled"),
    ] {
        let said = found(way, over).unwrap_err();
        assert!(said.contains(why), "{way}: {said}");
    }
}

#[test]
fn a_bad_declaration_is_refused_with_all_that_is_wrong() {
    let text = r#"
[[claim]]
id = "X1"
section = "1"
says = "x"
command = "true"

[[claim]]
id = "L1"
section = "1"
says = "x"

[[claim]]
id = "L1"
section = "1"
says = "x"
needs = "a dog"
cannot = "y"
command = "true"
[[claim.figure]]
name = "a"
measured = "/a"
at_most = "b"
within = 0.1
"#;
    let said = Claims::from_toml(text).unwrap_err();
    for why in [
        "claim X1: its id begins with",
        "claim X1: no figure of it says whether it holds",
        "claim L1: it has neither a command nor a reason",
        "claim L1: there are two of that id",
        "claim L1: what it needs is one of vm, slurm",
        "yet says that it can't be tried",
        "'a' is compared with 'b', which it has not",
        "'a' is within a share of no published number",
    ] {
        assert!(said.contains(why), "{why}:\n{said}");
    }
    let unknown = "[[claim]]\nid = \"L1\"\nsection = \"1\"\nsays = \"x\"\nverdict = \"fine\"\n";
    assert!(Claims::from_toml(unknown).unwrap_err().contains("verdict"));
}

const SEVERAL: &str = r#"
[[claim]]
id = "P1"
section = "1"
says = "a command runs once"
command = "echo x >>$OUT/../count; echo '{\"n\": 1}'"
[[claim.figure]]
name = "n"
measured = "/n"
published = 1

[[claim]]
id = "L2"
section = "2"
says = "the same command"
command = "echo x >>$OUT/../count; echo '{\"n\": 1}'"
[[claim.figure]]
name = "n"
measured = "/n"
published = 2

[[claim]]
id = "L3"
section = "3"
says = "it fails"
command = "echo '{}'; echo why >&2; false"
[[claim.figure]]
name = "n"
measured = "/n"
published = 2

[[claim]]
id = "L4"
section = "4"
says = "it needs a machine"
needs = "vm"
command = "echo '{}'"
[[claim.figure]]
name = "n"
measured = "/n"
published = 2

[[claim]]
id = "L5"
section = "5"
says = "it is long"
set = "full"
command = "echo '{}'"
[[claim.figure]]
name = "n"
measured = "/n"
published = 2

[[claim]]
id = "L6"
section = "6"
says = "nobody can"
cannot = "it says no number"

[[claim]]
id = "L7"
section = "7"
says = "it prints a picture"
command = "echo '<svg xmlns=\"http://www.w3.org/2000/svg\"/>' >$OUT/a.svg; echo '[]'"
picture = "a.svg"
drawn = "a <picture>"
[[claim.figure]]
name = "n"
measured = "/#"
at_most = 0
"#;

#[test]
fn each_command_runs_once_and_each_claim_has_a_verdict() {
    let options = options("several");
    let seen = Mutex::new(Vec::new());
    let claims = claims(SEVERAL);
    let tried = run(&claims, &options, &|it| {
        seen.lock().unwrap().push(it.ids.join(" "));
    })
    .unwrap();
    let count = std::fs::read_to_string(options.out.join("count")).unwrap();
    assert_eq!(count, "x\n");
    let mut seen = seen.into_inner().unwrap();
    seen.sort();
    assert_eq!(seen, ["L2 P1", "L3", "L7"]);
    let verdicts: Vec<_> =
        tried.claims.iter().map(|row| (row.id.as_str(), row.verdict.to_string())).collect();
    let expected = [
        ("L2", "refuted because n is 1, not 2"),
        ("L3", "failed: exit status: 1: why"),
        ("L4", "not tried: it needs the virtual machine: make kernel user"),
        ("L5", "not tried: it takes long; FULL=1 make reproduce tries it"),
        ("L6", "can't be tried because it says no number"),
        ("L7", "reproduced"),
        ("P1", "reproduced"),
    ];
    let said: Vec<_> = verdicts.iter().map(|(id, it)| (*id, it.as_str())).collect();
    assert_eq!(said, expected);
    assert!(tried.has_failed());
    assert_eq!(
        summary(&tried),
        "7 claims: 2 reproduced, 1 refuted, 1 can't be tried, 2 not tried, 1 failed"
    );
    let printed = table(&tried);
    assert_eq!(printed.lines().count(), 8, "{printed}");

    // What is written is what is read.
    let text = serde_json::to_string(&tried).unwrap();
    assert_eq!(Reproduction::from_json(&text).unwrap(), tried);
    assert!(Reproduction::from_json(&text.replace("pbs.reproduction", "other")).is_err());

    let html = page(&tried, &options.out);
    for part in ["id=\"L7\"", "data:image/svg+xml,%3Csvg", "a &lt;picture&gt;", "✗ refuted"] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<picture>"));
    let text = document(&claims, &tried);
    for row in &claims.claims {
        assert!(text.contains(&format!("``{}``", row.id)), "{}", row.id);
    }
    let long = text.lines().find(|line| line.chars().count() >= 100);
    assert_eq!(long, None);
    std::fs::remove_dir_all(&options.out).unwrap();
}

#[test]
fn claims_of_one_command_have_filters_of_their_own() {
    let claim = |id: &str, filter: &str| {
        format!(
            "[[claim]]\nid = \"{id}\"\nsection = \"1\"\nsays = \"x\"\n\
             command = \"echo x >>$OUT/../filters; echo '[1, 2, 4]'\"\nfilter = \"{filter}\"\n\
             [[claim.figure]]\nname = \"n\"\nmeasured = \"/n\"\npublished = 7\n"
        )
    };
    let text = claim("L1", "{n: add}") + &claim("L2", "{n: .[2]}") + &claim("L3", "{n: (");
    let options = options("filters");
    let tried = run(&claims(&text), &options, &|_| ()).unwrap();
    let count = std::fs::read_to_string(options.out.join("filters")).unwrap();
    assert_eq!(count, "x\n");
    std::fs::remove_dir_all(&options.out).unwrap();
    let rows = tried.claims.iter();
    let said: Vec<_> = rows.map(|row| row.verdict.to_string()).collect();
    assert_eq!(said[..2], ["reproduced", "refuted because n is 4, not 7"]);
    assert!(said[2].starts_with("failed: its filter: jq"), "{}", said[2]);
    let none = text.replace("command = ", "cannot = ").replace("[[claim.figure]]", "[[figure]]");
    let none = none.split("[[figure]]").next().unwrap();
    let said = Claims::from_toml(none).unwrap_err();
    assert!(said.contains("it has a filter, but no command"), "{said}");
}

#[test]
fn another_verdict_is_told() {
    let several = claims(SEVERAL);
    let before = tried("before", SEVERAL);
    assert!(before.others(&before, &several).is_empty());
    let after = tried("after", &SEVERAL.replace("published = 1\n", "published = 3\n"));
    let others = after.others(&before, &several);
    assert_eq!(others, ["P1: was reproduced, is refuted because n is 1, not 3"]);
    // A claim that is not declared any more can't have vanished unseen.
    let fewer = Claims {
        claims: several.claims.iter().filter(|claim| claim.id != "P1").cloned().collect(),
    };
    assert_eq!(before.others(&before, &fewer), ["P1: was reproduced, is not declared"]);
}

/// A claim whose command prints a number, and one figure of it; `more`: further keys of the claim.
fn printing(number: u32, more: &str, figure: &str) -> String {
    format!(
        "[[claim]]\nid = \"L1\"\nsection = \"1\"\nsays = \"x\"\n{more}command = \"echo {number}\"\n\
         filter = \"{{x: .}}\"\n[[claim.figure]]\nname = \"x\"\nmeasured = \"/x\"\n{figure}\n"
    )
}

/// A figure may move within its bounds. If it is one of virtual time, that is told.
#[test]
fn another_figure_is_told() {
    let before = tried("figure-before", &printing(3, "", "at_most = 9"));
    let after = tried("figure-after", &printing(4, "", "at_most = 9"));
    let declared = claims(&printing(3, "", "at_most = 9"));
    assert_eq!(after.others(&before, &declared), ["L1: x was 3, is 4"]);
    let timed = claims(&printing(3, "alone = true\n", "at_most = 9"));
    assert!(after.others(&before, &timed).is_empty());
}

/// A cost far below a reported one reproduces nothing, one far above refutes, and one that is
/// near is within a tolerance.
#[test]
fn a_cost_that_is_far_below_is_better() {
    let cost = "about = 100\nbetter = \"less\"";
    let said = |value: &str| one(&format!("{{\"x\": {value}}}"), cost);
    assert_eq!(said("20"), Verdict::Better { factor: 5.0 });
    assert_eq!(said("90"), Verdict::Within { share: 0.1 });
    assert_eq!(said("120"), Verdict::Within { share: 0.2 });
    assert_eq!(refuted(said("200")), "x is 200, not about 100");
    let rate = "about = 500\nbetter = \"more\"";
    assert_eq!(one(r#"{"x": 1000}"#, rate), Verdict::Better { factor: 2.0 });
    assert_eq!(refuted(one(r#"{"x": 100}"#, rate)), "x is 100, not about 500");
    let odd = Claims::from_toml(&printing(3, "", "about = 3")).unwrap_err();
    assert!(odd.contains("has either published, or about and better"), "{odd}");
}

#[test]
fn what_was_made_from_the_figures_reproduces_nothing() {
    let by = "by_construction = true\n";
    let said = |name: &str, text: &str| tried(name, text).claims.remove(0).verdict;
    let agrees = printing(3, by, "published = 3");
    assert_eq!(said("construction", &agrees), Verdict::ByConstruction);
    let differs = printing(3, by, "published = 4");
    assert_eq!(refuted(said("construction-not", &differs)), "x is 3, not 4");
    // The same figures under another declaration, without another run.
    let before = tried("judged", &printing(3, "", "published = 3"));
    assert_eq!(before.claims[0].verdict, Verdict::Reproduced);
    assert_eq!(before.judged(&claims(&agrees)).claims[0].verdict, Verdict::ByConstruction);
}

#[test]
fn what_is_not_tried_stands_as_it_was() {
    let text = SEVERAL.replace("set = \"full\"\n", "");
    let before = tried("whole", &text);
    let ids: Vec<_> = before.claims.iter().map(|row| row.id.clone()).collect();
    let mut now = tried("part", SEVERAL);
    now.claims.retain(|row| row.id != "L3");
    let both = now.clone().onto(before.clone(), &ids);
    let verdict = |of: &Reproduction, id: &str| {
        let row = of.claims.iter().find(|row| row.id == id);
        row.map(|row| row.verdict.clone())
    };
    assert_eq!(both.claims.len(), before.claims.len());
    for (id, from) in [("L5", &before), ("L3", &before), ("L2", &now), ("L4", &before)] {
        assert_eq!(verdict(&both, id), verdict(from, id), "{id}");
    }
    // The command of L4 was run for L5, so it has a verdict there.
    assert!(!matches!(verdict(&both, "L4"), Some(Verdict::NotTried { .. })));
    // What is not declared any more is left out.
    let fewer = now.onto(before, &ids[..2]);
    assert_eq!(fewer.claims.len(), 2);
}

#[test]
fn claims_are_selected_by_their_ids() {
    let selected = |names: &[&str]| {
        let text = SEVERAL.replace("\"L3\"", "\"L2.1\"");
        let mut claims = claims(&text);
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        claims.select(&names)?;
        let ids = claims.claims.into_iter().map(|claim| claim.id);
        Ok::<_, String>(ids.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(selected(&["P"]).unwrap(), "P1");
    assert_eq!(selected(&["L2"]).unwrap(), "L2");
    assert_eq!(selected(&["L2."]).unwrap(), "L2.1");
    assert_eq!(selected(&["L7", "P1"]).unwrap(), "L7 P1");
    assert_eq!(selected(&[]).unwrap().split(' ').count(), 7);
    assert!(selected(&["Q"]).unwrap_err().contains("no claim begins with 'Q'"));
}

#[test]
fn who_takes_too_long_is_ended_with_its_children() {
    let text = "[[claim]]\nid = \"L1\"\nsection = \"1\"\nsays = \"x\"\n\
                command = 'sleep 1000 & echo $! >$OUT/pid; wait'\n\
                [[claim.figure]]\nname = \"x\"\nmeasured = \"/x\"\npublished = 1\n";
    let mut options = options("long");
    options.timeout = Duration::from_millis(300);
    let tried = run(&claims(text), &options, &|_| ()).unwrap();
    let verdict = tried.claims[0].verdict.to_string();
    assert_eq!(verdict, "failed: it took more than 0.3 s");
    let pid = std::fs::read_to_string(options.out.join("L1/pid")).unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    // Gone, or a zombie that nobody has waited for yet.  A killed process ends once it gets a CPU.
    let is_gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    let waits = (0..1000).take_while(|_| !is_gone());
    waits.for_each(|_| std::thread::sleep(Duration::from_millis(10)));
    assert!(is_gone());
    std::fs::remove_dir_all(&options.out).unwrap();
}

/// A claim with the figures `a` and `b`, and their values.
fn mutated(figures: &str, measured: &Value) -> Mutated {
    let text = format!(
        "[[claim]]\nid = \"L1\"\nsection = \"1\"\nsays = \"x\"\ncommand = '''echo '{measured}' '''\n\
         {figures}"
    );
    let name = format!("{figures}{measured}").replace(|c: char| !c.is_ascii_alphanumeric(), "");
    let results = tried(&name, &text);
    mutate_all(&claims(&text), &results).remove(0)
}

#[test]
fn a_claim_that_nothing_refutes_is_listed() {
    let exact = "[[claim.figure]]\nname = \"a\"\nmeasured = \"/a\"\npublished = 7\n";
    assert!(mutated(exact, &json!({"a": 7})).is_turned());
    let wide = "[[claim.figure]]\nname = \"a\"\nmeasured = \"/a\"\nat_most = 1000\n";
    let wide = mutated(wide, &json!({"a": 7}));
    assert!(!wide.is_turned() && wide.firm == ["a"], "{wide:?}");
    let text = mutated_text(&[wide]);
    assert!(text.contains("L1: NO MUTATION TURNS IT") && text.contains("0 of 1"), "{text}");
    let declared = "mutation = { figure = \"a\", factor = 500, fault = \"all are searched\" }\n\
                    [[claim.figure]]\nname = \"a\"\nmeasured = \"/a\"\nat_most = 1000\n";
    assert!(mutated(declared, &json!({"a": 7})).is_turned());
}

#[test]
fn a_comparison_the_other_way_round_is_noticed() {
    let figures = "[[claim.figure]]\nname = \"a\"\nmeasured = \"/a\"\nmore_than = \"b\"\n\
                   [[claim.figure]]\nname = \"b\"\nmeasured = \"/b\"\n";
    let row = mutated(figures, &json!({"a": 100, "b": 10}));
    let changes: Vec<&Change> = row.turning.iter().map(|(mutation, _)| &mutation.change).collect();
    assert!(changes.contains(&&Change::Exchanged("b".into())), "{changes:?}");
    assert!(!changes.contains(&&Change::Times(1.5)), "{changes:?}");
}

#[test]
fn a_cost_of_nothing_is_no_better_cost() {
    let about = "about = 100\nbetter = \"less\"";
    assert!(matches!(one(r#"{"x": 10}"#, about), Verdict::Better { .. }));
    assert!(matches!(one(r#"{"x": 0}"#, about), Verdict::Refuted { .. }));
}

#[test]
fn each_positive_verdict_of_the_document_can_turn() {
    let top = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let claims = Claims::read(&top.join("studies/pbs-reproduce/claims.toml")).unwrap();
    let text = std::fs::read_to_string(top.join("Documentation/reproduction.json")).unwrap();
    let rows = mutate_all(&claims, &Reproduction::from_json(&text).unwrap());
    assert!(rows.len() > 100, "only {} rows", rows.len());
    let firm = rows.iter().filter(|row| !row.is_turned()).map(|row| row.id.as_str());
    assert_eq!(firm.collect::<Vec<_>>(), [""; 0], "no mutation turns them");
}

#[test]
fn older_measurements_are_marked() {
    let text = "[[claim]]\nid = \"L1\"\nsection = \"1\"\nsays = \"x\"\ncommand = \"echo '{\\\"x\\\":1}'\"\n\
                [[claim.figure]]\nname = \"x\"\nmeasured = \"/x\"\npublished = 1\n";
    let mut results = tried("commits", text);
    let page = |results: &Reproduction| document(&claims(text), results);
    results.commit = Some("new".into());
    results.claims[0].commit = Some("new".into());
    assert!(page(&results).contains("at commit new"));
    assert!(!page(&results).contains("Measured earlier"));
    results.claims[0].commit = Some("old".into());
    assert!(page(&results).contains("*Measured earlier:* at commit old."));
    results.claims[0].commit = None;
    assert!(page(&results).contains("*Measured earlier:* before commits were recorded."));
}

#[test]
fn few_draws_decide_nothing() {
    let row = |draws: u64, bound: &str| {
        let output = json!({"a": 75, "b": 50, "n": draws});
        let figure = |name: &str, rest: &str| {
            format!(
                "[[claim.figure]]\nname = \"{name}\"\nunit = \"percent\"\nmeasured = \"/{name}\"\n\
                 draws = \"/n\"\n{rest}\n"
            )
        };
        let text = format!(
            "[[claim]]\nid = \"L1\"\nsection = \"1\"\nsays = \"x\"\ncommand = '''echo '{output}' '''\n\
             {}{}",
            figure("a", bound),
            figure("b", "")
        );
        tried(&format!("draws{draws}"), &text).claims.remove(0)
    };
    const OTHER: &str = "more_than = \"b\"";
    let few = row(12, OTHER);
    assert!(matches!(few.verdict, Verdict::Undecided { .. }), "{:?}", few.verdict);
    let [low, high] = few.figures[0].interval.unwrap();
    assert!(low < 50.0 && high > 90.0, "{low} {high}");
    assert_eq!(row(200, OTHER).verdict, Verdict::Reproduced);
    assert!(matches!(row(0, OTHER).verdict, Verdict::Failed { .. }));
    let few = row(12, "more_than = 50");
    assert!(matches!(few.verdict, Verdict::Undecided { .. }), "{:?}", few.verdict);
    assert_eq!(row(200, "more_than = 50").verdict, Verdict::Reproduced);
}
