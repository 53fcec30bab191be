// SPDX-License-Identifier: GPL-2.0
//! Errors in site files, with their line and the correction.

use pbs_site::Site;

const NODES: &str = "[[nodes]]\nname='n%d'\ncount=2\nhas='ncpus=4:mem=8g:tesla=1:arch=linux'\n";

/// The problems as `line: message`.
fn problems(text: &str) -> Vec<String> {
    let problems = match Site::from_toml(text) {
        Ok(site) => panic!("{text}\n{site:?}"),
        Err(problems) => problems,
    };
    let told = problems.iter().map(|problem| {
        let line = problem.line.map_or("-".to_string(), |line| line.to_string());
        format!("{line}: {}", problem.message)
    });
    told.collect()
}

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let told = problems(&format!("{NODES}{text}"));
        assert!(told.iter().any(|told| told.starts_with(expected)), "{text}\n{told:#?}");
        assert_eq!(told.len(), 1, "{text}\n{told:#?}");
    }
}

/// Whatever a site says and the planner would not obey.
#[test]
fn rules_without_effect() {
    check(&[(
        "[resource.arch]\nkind='attribute'\nvalidity='until 2027-01-15'",
        "7: arch is an attribute, and only what is counted has a validity; remove validity",
    )]);
    let limited = "[resource.sw]\nscope='job'\nitems={a=1,b=1}\nvalidity='2027-01-16/'\n";
    let pools = |count| format!("{limited}{}", "[[pool]]\nresource='mem'\nfree=1\n".repeat(count));
    assert!(Site::from_toml(&format!("{NODES}{}", pools(62))).is_ok());
    check(&[(&pools(63), "195: there are 65 pools, 2 of them for the validity of resources")]);
}

#[test]
fn promises_and_costs_of_plans() {
    check(&[
        ("[optimise]\npromises=['starts']", "6: there is no promise starts; did you mean start?"),
        (
            "[optimise]\npromises=['none','none']",
            "6: promise none stands here again; write it once",
        ),
        (
            "[optimise]\npromises=[]",
            "6: promises names none of none, start and deadline; write one",
        ),
        ("[optimise]\nwait=-1", "6: wait must be a whole number from 0 to 1000000000"),
        ("[optimise]\norders=0", "6: orders must be a whole number from 1 to 1000000000"),
        ("[optimise]\nslow=1", "6: "),
        (
            "[optimise]\nrun_times='quantiles'",
            "6: there is no rule of run times quantiles; did you mean quantile?",
        ),
        ("[optimise]\nrun_times=2", "6: "),
    ]);
}

#[test]
fn names_that_are_not_there() {
    check(&[
        (
            "[[limit]]\nfor='everyone'\nresource='telsa'",
            "7: there is no resource telsa; did you mean tesla?",
        ),
        (
            "[[pool]]\nresource='q'\nfree=1",
            "6: there is no resource q; there are ncpus, mem, vmem, ompthreads, arch, tesla",
        ),
        (
            "[[pool]]\nresource='ncpus'\nfree=1\naccess='nncpus>1'",
            "8: there is no resource nncpus; did you mean ncpus?",
        ),
        ("only_if='gpus>1'", "5: there is no resource gpus"),
        ("kept={cores=1,for='gpus'}", "5: there is no resource gpus"),
        ("[priority]\nresource={gpu=1}", "6: there is no resource gpu"),
        ("[defaults]\nmme='1g'", "6: there is no resource mme; did you mean vmem?"),
        ("[[user]]\nname='a'\nforce={mme='1g'}", "7: there is no resource mme"),
        (
            "[[group]]\nname='G1'\n[[limit]]\nfor='group:G2'\nresource='mem'",
            "8: there is no group G2; did you mean G1?",
        ),
        (
            "[[group]]\nname='G1'\n[[user]]\nname='a'\ngroups=['physics']",
            "9: there is no group physics; add [[group]]",
        ),
        (
            "[[user]]\nname='alice'\n[[pool]]\nresource='mem'\nfree=1\naccess='user:alcie'",
            "10: there is no user alcie; did you mean alice?",
        ),
        (
            "[[user]]\nname='alice'\nprivileges=['reserv']",
            "7: there is no privilege reserv; did you mean reserve?",
        ),
    ]);
}

#[test]
fn keys_and_values_that_are_wrong() {
    check(&[
        ("cores=1", "5: [[nodes]] has no key cores"),
        ("first='x'", "5: first must be a number"),
        ("[[limit]]\nfor='everyone'\nresource='mem'\nitem=1", "8: [[limit]] has no key item; did you mean items?"),
        ("[[limit]]\nresource='mem'", "5: the limit does not say for whom; add for"),
        ("[[limit]]\nfor='everyone'", "5: the limit has no resource; add resource"),
        ("[[limit]]\nfor='alice'\nresource='mem'", "6: \"alice\" is no user or group; write \"user:alice\""),
        ("[[limit]]\nfor='user:'\nresource='mem'", "6: \"\" is no name"),
        ("[[limit]]\nfor='everyone'\nresource='mem'\nitems='45'\nduration='4dd'", "9: duration, column 3: there is no number"),
        ("[[limit]]\nfor='everyone'\nresource='mem'\nitems='30/145%'", "8: items, column 4: \"145%\" is no percentage"),
        ("[[limit]]\nfor='everyone'\nresource='mem'\narea=1.5", "8: area must be a string"),
        ("[[limit]]\nfor='everyone'\nresource='*'\nitems=30", "8: a number of items needs a \
                                                               resource"),
        ("[[limit]]\nfor='everyone'\nresource='jobs'\nitems=30\narea='1h'", "9: jobs are counted only; remove area"),
        ("[[limit]]\nfor='everyone'\nresource='arch'\nitems=30", "7: arch is an attribute"),
        ("[[limit]]\nfor='everyone'\nresource='mem'\nvalidity='31.08.17-01.08.17'", "8: validity, column 1: it ends before it begins"),
        ("[[limit]]\nfor='everyone'\nresource='mem'\n[[limit]]\nfor='everyone'\nresource='mem'", "8: there is already a limit of mem for everyone with this validity"),
        ("[[pool]]\nresource='mem'", "5: the pool keeps nothing free; add free"),
        ("[[pool]]\nresource='mem'\nfree='x'", "7: free, column 1: \"x\" is no amount"),
        ("[[pool]]\nresource='mem'\nfree=1\naccess='ncpus<4 and x'", "8: access, column 9: \"a\" can't be here"),
        ("[[pool]]\nresource='mem'\nfree=1\nshare=1", "8: share must be true or false"),
        ("[[pool]]\nname='p'\nresource='mem'\nfree=1\n[[pool]]\nname='p'\nresource='mem'\nfree=1", "10: there is a pool p already"),
        ("[defaults]\nmem='lots'", "6: mem, column 1: mem is counted, and lots is no number"),
        ("[defaults]\ntesla='one'", "6: tesla is counted; write a number"),
        ("[defaults]\nmem='1g:ncpus=2'", "6: mem, column 1: there must be one value"),
        ("[priority]\nsla=1.5", "6: sla must be a whole number from -1000000000"),
        ("[priority]\nurgent=1", "6: [priority] has no key urgent"),
        ("[[user]]\nname='a'\n[[user]]\nname='a'", "8: there is a user a already"),
        ("[[user]]\nname='a b'", "6: \"a b\" is no name"),
        ("[[user]]\nprivileges=[]", "5: user has no name; add name"),
        ("[[user]]\nname='a'\ngroups='G1'", "7: groups must be a list of names"),
        ("[[user]]\nname='a'\ngroups=['G','G']", "7: group G stands here again"),
    ]);
}

#[test]
fn nodes_that_are_wrong() {
    check(&[
        ("kept={cores=5,for='tesla'}", "5: 5 cores are kept of 4; keep at least 1 and at most 4"),
        ("kept={cores=0,for='tesla'}", "5: 0 cores are kept of 4"),
        ("kept={cores=1,for='vmem'}", "5: cores are kept for vmem, which these nodes do not have"),
        ("kept={cores=1}", "5: kept needs a number of cores and a resource"),
        ("only_if='user:alice'", "5: only_if can test what chunks need, not their users"),
        ("only_if='mem>=66'\nprio='x'", "6: prio must be a whole number"),
        ("switch='leaf%d'", "5: a number in switch and per_switch belong together"),
        ("switch='leaf'\nper_switch=2", "5: a number in switch and per_switch belong together"),
        ("per_switch=2", "1: these nodes have no switch"),
        ("[[nodes]]\nname='n2'\nhas='ncpus=1'", "5: there is a node n2 already"),
        ("[[nodes]]\nname='m'\ncount=2\nhas='ncpus=1'", "5: 2 nodes can't have one name; write %d"),
        ("[[nodes]]\nname='m%s'\nhas='ncpus=1'", "6: \"m%s\" is no name"),
        ("[[nodes]]\nhas='ncpus=1'", "5: these nodes have no name"),
        ("[[nodes]]\nname='m'", "5: these nodes have nothing; add has"),
        ("[[nodes]]\nname='m'\nhas='mem=1g'", "7: these nodes have no cores"),
        (
            "[[nodes]]\nname='m'\nhas='ncpus=1:mem=x'",
            "7: has, column 13: mem is counted, and x is no number",
        ),
        (
            "[[nodes]]\nname='m'\nhas='ncpus=1:tesla=two'",
            "7: tesla is a number and a word at line 4",
        ),
        ("[[nodes]]\nname='m'\nhas='ncpus=1:ompthreads=2'", "7: ompthreads is passed to programs"),
        ("[[nodes]]\nname='m'\nhas='ncpus=1:jobs=2'", "7: no resource can be called jobs"),
        ("[[nodes]]\nname='m'\ncount=0\nhas='ncpus=1'", "7: count must be between"),
        ("[[nodes]]\nname='m%d'\ncount=99999999\nhas='ncpus=1'", "7: count must be between"),
        (
            "[[nodes]]\nname='m%d'\ncount=3\nhas='ncpus=1:x=16000000000000000000'",
            "-: all nodes together have too much x",
        ),
    ]);
}

#[test]
fn resources_that_are_wrong() {
    check(&[
        ("[resource.sw]\nscope='job'", "5: sw needs one amount"),
        ("[resource.sw]\nscope='job'\namount=1\nitems={a=1}", "5: sw needs one amount"),
        ("[resource.sw]\nscope='job'\nkind='attribute'\namount=1", "5: sw is of no node"),
        ("[resource.sw]\namount=1", "5: sw is a resource of nodes"),
        ("[resource.sw]\nscope='jobs'\namount=1", "6: there is no scope jobs; did you mean job?"),
        ("[resource.sw]\nscope='job'\nitems={}", "7: sw has no items"),
        ("[resource.sw]\nscope='job'\nitems={3=1}", "7: \"3\" can't be the name of an item"),
        ("[resource.sw]\nscope='job'\nitems={a='x'}", "7: a, column 1: \"x\" is no amount"),
        ("[resource.ncpus]\nkind='attribute'", "6: ncpus is built in; remove kind"),
        ("[resource.area]", "5: no resource can be called area"),
        ("[resource.avoid]", "5: no resource can be called avoid"),
        ("[resource.arch]", "4: arch is counted; write a number, or kind"),
        ("[resource.tesla]\nscope='job'\namount=1", "4: tesla is a resource of no node"),
        ("[resource.x]\nvalidity='soon'", "6: validity, column 1: \"soon\" is no date"),
        (
            "[resource.sw]\nscope='job'\nitems={g=1}\n[[pool]]\nresource='sw'\nfree=1",
            "9: sw is asked for by word; write one of sw=g",
        ),
        (
            "[resource.sw]\nscope='job'\namount=1\n[[pool]]\nresource='sw=g'\nfree=1",
            "9: sw is counted as a whole",
        ),
        (
            "[[limit]]\nfor='everyone'\nresource='ncpus'\nsoft='70%'",
            "8: soft permits more items than a limit of items",
        ),
        (
            "[[limit]]\nfor='everyone'\nresource='jobs'\nitems=3\nsoft='70%'",
            "9: soft permits more items than a limit of items",
        ),
    ]);
}

#[test]
fn values_at_the_top_that_are_wrong() {
    for (text, expected) in [
        ("min_dist='0s'", "1: min_dist must be between 1s and"),
        ("default_duration='never'", "1: default_duration, column 1: there is no number"),
        ("max_extension='101%'", "1: max_extension is \"101%\"; write a percentage"),
        ("keep_ended='0s'", "1: keep_ended must be between 1s and"),
        ("keep_ended_requests=99", "1: keep_ended_requests is 99; write a number from 100 on"),
        ("planning_threads=65", "1: planning_threads is 65; write a number from 1 to 64"),
        ("threads_per_core=0", "1: threads_per_core is 0; write a number from 1 to 64"),
        (
            "time_zone='UTC+1'",
            "1: the time zone \"UTC+1\" is -01:00 in POSIX, whose signs are the other way round; \
             write \"+01:00\"",
        ),
        ("time_zone='gmt-05:30'", "1: the time zone \"gmt-05:30\" is +05:30 in POSIX"),
        (
            "time_zone='CET+1'",
            "1: the time zone \"CET+1\" is -01:00 in POSIX, whose signs are the other way round; \
             write \"+01:00\" if that is meant",
        ),
        ("time_zone='CET+1CEST'", "1: the time zone \"CET+1CEST\" is -01:00 in POSIX"),
        ("time_zone='Mars/Base'", "1: there is no time zone \"Mars/Base\""),
        ("node=[]", "1: the site has no key node; did you mean nodes?"),
        ("mapping='nearest'", "1: mapping is \"nearest\"; write cheapest, switches or busy"),
        ("watchdog='0s'", "1: watchdog must be between 1s and"),
        ("name=1", "1: name must be a string"),
        ("nodes=1", "1: nodes must be a list of tables"),
        ("resource=1", "1: resource must be a table"),
        ("name='x'", "-: the site has no node; add [[nodes]]"),
        ("name=", "1: this is no TOML"),
    ] {
        let told = problems(text);
        assert!(told[0].starts_with(expected), "{text}\n{told:#?}");
    }
}

#[test]
fn all_problems_are_told_in_the_order_of_lines() {
    let told = problems(
        "min_dist='x'\n[[nodes]]\nname='n'\nhas='ncpus=1'\n[[limit]]\nfor='everyone'\n\
         resource='gpus'\nitems='x'\n[[pool]]\nresource='gpus'\nfree=1\n",
    );
    let lines: Vec<_> = told.iter().map(|told| told.split(':').next().unwrap()).collect();
    assert_eq!(lines, ["1", "7", "8", "10"], "{told:#?}");
}
