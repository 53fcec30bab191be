// SPDX-License-Identifier: GPL-2.0
//! Files of a site as operators can write them.

use std::collections::BTreeSet;

use pbs_resources::{Item, Rset, Value};
use pbs_site::{
    Kind, Mapping, Privilege, Refused, ReservedCores, Scope, Share, Site, Validity, Whom,
};

const GIB: u64 = 1 << 30;
const HOUR_S: u64 = 3600;
const DAY_S: u64 = 24 * HOUR_S;

const NODES: &str = "[[nodes]]\nname = 'n%d'\ncount = 10\nhas = 'ncpus=16:mem=64g:tesla=1'\n";

/// Reads a site, and checks that writing and reading it again yields the same site.
fn read(text: &str) -> Site {
    let site = Site::from_toml(text).unwrap_or_else(|problems| panic!("{problems:?}"));
    let written = site.to_toml();
    let again =
        Site::from_toml(&written).unwrap_or_else(|problems| panic!("{problems:?}\n{written}"));
    assert_eq!(again, site, "{written}");
    assert_eq!(again.to_toml(), written);
    site
}

fn with_nodes(text: &str) -> Site {
    read(&format!("{text}\n{NODES}"))
}

fn below_nodes(text: &str) -> Site {
    read(&format!("{NODES}\n{text}"))
}

#[test]
fn resources_are_custom() {
    let site = read(
        "[resource.rack]\nkind = 'attribute'\n\
         [[nodes]]\nname = 'a'\nhas = 'ncpus=4:fpga=2:rack=8:arch=linux'\n\
         [[nodes]]\nname = 'b'\nhas = 'ncpus=4:rack=b7'\n",
    );
    let names: Vec<_> = site.resources.iter().map(|resource| resource.name.as_str()).collect();
    assert_eq!(names, ["ncpus", "mem", "vmem", "ompthreads", "arch", "fpga", "rack"]);
    let kind = |name| site.resource(name).unwrap().kind;
    assert_eq!(kind("ncpus"), Kind::Consumable);
    assert_eq!(kind("fpga"), Kind::Consumable);
    assert_eq!(kind("arch"), Kind::Attribute);
    assert_eq!(kind("rack"), Kind::Attribute);
    assert_eq!(kind("ompthreads"), Kind::Attribute);
    assert_eq!((site.most("fpga", None), site.most("rack", None)), (2, 0));
}

#[test]
fn nodes_may_differ() {
    let site = read(
        "[[nodes]]\nname = 'cpu%02d'\ncount = 3\nhas = 'ncpus=16:mem=64g'\n\
         [[nodes]]\nname = 'gpu%d'\ncount = 2\nfirst = 9\nhas = 'ncpus=8:mem=128g:tesla=2'\n\
         kept = { cores = 2, for = 'tesla' }\n\
         [[nodes]]\nname = 'login'\nhas = 'ncpus=2'\n",
    );
    let names: Vec<_> = site.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["cpu01", "cpu02", "cpu03", "gpu9", "gpu10", "login"]);
    assert_eq!(site.nodes[3].amount("tesla"), 2);
    assert_eq!(site.nodes[0].amount("tesla"), 0);
    let resource = "tesla".to_string();
    assert_eq!(site.nodes[4].kept, Some(ReservedCores { cores: 2, resource }));
    assert_eq!(site.most("ncpus", None), 3 * 16 + 2 * 8 + 2);
    assert_eq!(site.most("mem", None), (3 * 64 + 2 * 128) * GIB);
    // Nodes that are alike are written together.
    assert_eq!(site.to_toml().matches("[[nodes]]").count(), 3);
}

#[test]
fn resources_may_be_job_wide() {
    let site = with_nodes(
        "[resource.sw]\nscope = 'job'\nitems = { g03 = 4, matlab = 2 }\n\
         [resource.disk]\nscope = 'job'\namount = '100t'\n",
    );
    let sw = site.resource("sw").unwrap();
    assert_eq!((sw.scope, sw.kind, sw.items["g03"]), (Scope::Job, Kind::Consumable, 4));
    assert_eq!(site.most("sw", Some("matlab")), 2);
    assert_eq!(site.most("sw", Some("ansys")), 0);
    assert_eq!(site.most("disk", None), 100 << 40);
}

#[test]
fn attributes_have_words() {
    let site = read("[[nodes]]\nname = 'n'\nhas = 'ncpus=1:net=IB:net=Ethernet:arch=linux'\n");
    let words = site.nodes[0].has.iter().filter(|item| item.resource == "net");
    assert_eq!(words.count(), 2);
    assert_eq!(site.resource("net").unwrap().kind, Kind::Attribute);
    let asks = |text: &str| site.accept(&text.parse().unwrap(), "u", "g").is_ok();
    assert!(asks("ncpus=1:net=IB") && asks("ncpus=1:net=Ethernet"));
    assert!(!asks("ncpus=1:net=ATM"));
    assert!(!asks("ncpus=1:net=no"));
}

/// Scripts for other sites say `smp=f` and `tesla=0`.
#[test]
fn none_of_a_resource_is_there_where_it_is_not() {
    let nodes = "[[nodes]]\nname = 'n'\nhas = 'ncpus=2:smp=t'\n\
                 [[nodes]]\nname = 'm'\nhas = 'ncpus=1'\n[resource.rack]\nkind = 'attribute'\n";
    let site = read(nodes);
    let accepted = |text: &str| {
        let rset = site.accept(&text.parse().unwrap(), "u", "g");
        rset.map(|rset| rset.to_string())
    };
    let all = "ncpus=1:fat=f:tesla=0:smp=False:rack=0,licence=no";
    assert_eq!(accepted(all).unwrap(), "rset=ncpus=1:smp=False:rack=0");
    let rset = all.parse().unwrap();
    let unknown: Vec<_> = site.unknown_none(&rset).iter().map(ToString::to_string).collect();
    assert_eq!(unknown, ["fat=f", "tesla=0", "licence=no"]);
    // A node that has it does not.
    assert!(accepted("ncpus=2:smp=f").is_err());
    assert!(accepted("ncpus=1:fat=t").is_err() && accepted("ncpus=1:tesla=1").is_err());
    assert!(accepted("2:tesla=0").is_err());
}

#[test]
fn times_of_the_site_are_read_and_have_defaults() {
    let site = with_nodes(
        "name = 'OCuLUS'\nmin_dist = '5s'\ndefault_duration = '30m'\nmax_extension = '12.5%'\n\
         allocate_timeout = '5m'\nrelease_timeout = 90\ntime_zone = 'Europe/Berlin'\n",
    );
    assert_eq!(site.name, "OCuLUS");
    assert_eq!((site.min_dist_s, site.default_duration_s), (5, 1800));
    assert_eq!((site.allocate_timeout_s, site.release_timeout_s), (300, 90));
    assert_eq!(site.max_extension_permille, 125);
    assert_eq!(site.time_zone.iana_name(), Some("Europe/Berlin"));
    // On the night to 25 October the clock goes back.
    let seven_s = pbs_site::parse_time_s("2026-10-24T18:00", &site.time_zone).unwrap();
    let next = |text| pbs_site::next_time_s(text, seven_s, &site.time_zone);
    assert_eq!(next("18:00"), Some(seven_s));
    assert_eq!(next("06:00:30"), Some(seven_s + 13 * 3_600 + 30));
    assert_eq!((next("24:00"), next("2026-10-25"), next("now")), (None, None, None));
    let site = with_nodes("");
    assert_eq!((site.min_dist_s, site.default_duration_s), (1, 3600));
    assert_eq!(site.max_extension_permille, 100);
    assert_eq!((site.keep_ended_s, site.keep_ended_requests), (365 * 86_400, 100_000));
    let few = with_nodes("keep_ended = '30d'\nkeep_ended_requests = 100\n");
    let again = Site::from_toml(&few.to_toml()).unwrap();
    assert_eq!((again.keep_ended_s, again.keep_ended_requests), (30 * 86_400, 100));
    for zone in ["+01:00", "CET-1CEST,M3.5.0,M10.5.0/3", "UTC"] {
        with_nodes(&format!("time_zone = '{zone}'"));
    }
}

#[test]
fn cores_of_a_chunk_are_rounded_up_to_whole_ones() {
    let site = with_nodes("threads_per_core = 2\n");
    let accepted = |text: &str| {
        let rset = site.accept(&text.parse().unwrap(), "u", "g");
        rset.map(|rset| rset.to_string())
    };
    assert_eq!(accepted("3:ncpus=1").unwrap(), "rset=3:ncpus=2");
    assert_eq!(accepted("ncpus=4").unwrap(), "rset=ncpus=4");
    let again = Site::from_toml(&site.to_toml()).unwrap();
    assert_eq!(again.threads_per_core, 2);
    assert_eq!(with_nodes("").threads_per_core, 1);
}

#[test]
fn nodes_have_switches() {
    let site = read(
        "[[nodes]]\nname = 'n%d'\ncount = 5\nhas = 'ncpus=1'\nswitch = 'leaf%d'\nper_switch = 2\n\
         [[nodes]]\nname = 'm'\nhas = 'ncpus=1'\nswitch = 'spine'\n",
    );
    let switches: Vec<_> = site.nodes.iter().map(|node| node.switch.as_deref().unwrap()).collect();
    assert_eq!(switches, ["leaf1", "leaf1", "leaf2", "leaf2", "leaf3", "spine"]);
}

#[test]
fn nodes_have_a_priority() {
    let site = read("[[nodes]]\nname = 'n'\nprio = -1\nhas = 'ncpus=1'\n");
    assert_eq!(site.nodes[0].prio, -1);
}

#[test]
fn any_entry_has_a_validity() {
    let site = below_nodes(
        "[resource.tesla]\nvalidity = 'until 31.08.17'\n\
         [resource.ncpus]\nvalidity = '01.08.17-'\n\
         [[user]]\nname = 'alice'\nvalidity = '01.08.17-31.08.17'\n\
         [[group]]\nname = 'G1'\nvalidity = 'until 31.12.17'\n\
         [[limit]]\nfor = 'user:alice'\nresource = 'ncpus'\nitems = 1\nvalidity = '-31.08.17'\n\
         [[pool]]\nresource = 'ncpus'\nfree = 1\nvalidity = 'cron 0 7 * * 1,5 +4h'\n",
    );
    let end = 1_504_224_000;
    assert_eq!(site.resource("tesla").unwrap().validity, Validity::Until(end));
    assert_eq!(site.user("alice").unwrap().validity, Validity::Between(end - 31 * DAY_S..end));
    assert_eq!(site.limits[0].validity, Validity::Until(end));
    assert!(matches!(site.pools[0].validity, Validity::Cron(_)));
    assert!(matches!(site.resource("ncpus").unwrap().validity, Validity::Between(_)));
}

/// Keller's example 1 (3).
#[test]
fn the_example_of_limits_is_read() {
    let site = below_nodes(
        "[resource.x]\n\
         [[limit]]\nfor = 'group:G1'\nresource = '*'\nitems = 'unlimited'\nduration = '7d'\n\
         area = 'none'\nvalidity = 'always'\n\
         [[limit]]\nfor = 'group:G1'\nresource = 'ncpus'\nitems = 640\nduration = '4d3h'\n\
         validity = '01.08.17-31.08.17'\n\
         [[limit]]\nfor = 'group:G1'\nresource = 'tesla'\narea = '500h'\n\
         [[limit]]\nfor = 'group:G1'\nresource = 'arrayjobs'\nitems = '1000'\n\
         [[limit]]\nfor = 'everyone'\nresource = 'jobs'\nitems = 5000\nduration = 'none'\n",
    );
    let [all, cores, tesla, arrays, jobs] = &site.limits[..] else {
        panic!("{:?}", site.limits);
    };
    assert_eq!(all.whom, Whom::Group("G1".into()));
    assert_eq!((all.items, all.duration_s, all.area_s), (None, Some(7 * DAY_S), None));
    let least = |least| Share { least: Some(least), permille: None };
    assert_eq!((cores.items, cores.duration_s), (Some(least(640)), Some(99 * HOUR_S)));
    // The last day is one of them: a request of four days from 20.08.17 on is within it.
    let august = 1_501_545_600..1_504_224_000;
    assert_eq!(cores.validity, Validity::Between(august));
    assert_eq!((tesla.items, tesla.area_s), (None, Some(500 * HOUR_S)));
    assert_eq!((arrays.resource.as_str(), arrays.items), ("arrayjobs", Some(least(1000))));
    assert_eq!((&jobs.whom, jobs.items), (&Whom::Everyone, Some(least(5000))));
}

#[test]
fn the_greater_of_number_and_percentage_counts() {
    let share = |text: &str| text.parse::<Share>().unwrap();
    let of = |text: &str| [100, 50, 20, 0].map(|available| share(text).of(available));
    assert_eq!(of("30/45%"), [45, 30, 20, 0]);
    assert_eq!(of("30"), [30, 30, 20, 0]);
    assert_eq!(of("45%"), [45, 22, 9, 0]);
    assert_eq!(of("12.5%"), [12, 6, 2, 0]);
    assert_eq!(of("0/100%"), [100, 50, 20, 0]);
    assert_eq!(share("100%").of(u64::MAX), u64::MAX);
    for text in ["30", "10g", "45%", "12.5%", "30/45%", "0%"] {
        assert_eq!(share(text).to_string(), text);
    }
    for (text, column) in [
        ("", 1),
        ("/45%", 1),
        ("30/", 4),
        ("30/45", 4),
        ("101%", 1),
        ("4.55%", 1),
        ("x", 1),
        ("-1%", 1),
        ("%", 1),
    ] {
        let error = text.parse::<Share>().unwrap_err();
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.message.contains("write 30, 45%, or 30/45%"), "{text}: {error}");
    }
}

#[test]
fn privileges_belong_to_users_and_groups() {
    let site = below_nodes(
        "[[group]]\nname = 'ops'\nprivileges = ['operator', 'reserve']\n\
         [[group]]\nname = 'students'\nprivileges = []\npriority = -5\n\
         [[user]]\nname = 'alice'\ngroups = ['ops', 'students']\n",
    );
    let ops = &site.group("ops").unwrap().privileges;
    assert_eq!(*ops, BTreeSet::from([Privilege::Operator, Privilege::Reserve]));
    assert!(site.group("students").unwrap().privileges.is_empty());
    assert_eq!(site.group("students").unwrap().priority, -5);
    let alice = site.user("alice").unwrap();
    assert_eq!(alice.privileges, Privilege::ordinary());
    assert!(!alice.privileges.contains(&Privilege::Operator));
    assert_eq!(alice.groups, ["ops", "students"]);
}

/// Only groups that the site lists for a user give the user privileges.
#[test]
fn to_name_a_group_gives_no_privileges() {
    let site = below_nodes(
        "[[group]]\nname = 'ops'\nprivileges = ['operator', 'reserve']\n\
         [[group]]\nname = 'students'\nprivileges = []\n\
         [[user]]\nname = 'alice'\ngroups = ['ops', 'students']\nprivileges = []\n\
         [[user]]\nname = 'bob'\nprivileges = []\n",
    );
    let may = |user, group, privilege| site.may(user, group, privilege);
    assert!(may("alice", "students", Privilege::Reserve));
    assert!(may("alice", "students", Privilege::Operator));
    // The site lets bob use any group's account, and no more.
    assert!(!may("bob", "ops", Privilege::Reserve) && !may("bob", "ops", Privilege::Operator));
    // Who is not listed has no more than the group, and is no operator.
    assert!(may("carol", "ops", Privilege::Reserve) && !may("carol", "ops", Privilege::Operator));
    assert!(!may("carol", "students", Privilege::Reserve));
    assert!(may("carol", "others", Privilege::Reserve));
}

#[test]
fn default_and_force_values_apply_in_order() {
    let site = with_nodes(
        "defaults = { mem = '2g', sw = 'g03', ncpus = 1 }\nforce = { os = 'linux' }\n\
         [resource.sw]\nscope = 'job'\nitems = { g03 = 4, g16 = 1 }\n\
         [[nodes]]\nname = 'm'\nhas = 'ncpus=16:mem=64g:os=linux:net=IB'\n\
         [[group]]\nname = 'G1'\ndefaults = { mem = '4g' }\nforce = { net = 'IB' }\n\
         [[user]]\nname = 'alice'\ndefaults = { mem = '8g' }\nforce = { sw = 'g16' }\n",
    );
    let accepted = |text: &str, user, group| {
        let rset: Rset = text.parse().unwrap();
        site.accept(&rset, user, group).unwrap().to_string()
    };
    assert_eq!(
        accepted("2:ncpus=4+vmem=0", "bob", "G2"),
        "rset=2:ncpus=4:mem=2g:os=linux+vmem=0:mem=2g:ncpus=1:os=linux,sw=g03"
    );
    assert_eq!(accepted("ncpus=4", "bob", "G1"), "rset=ncpus=4:mem=4g:os=linux:net=IB,sw=g03");
    assert_eq!(
        accepted("ncpus=4:mem=1g,sw=g03,place=pack", "alice", "G2"),
        "rset=ncpus=4:mem=1g:os=linux,sw=g16,place=pack"
    );
}

/// Keller's three examples of free pools (3).
#[test]
fn the_examples_of_pools_are_read() {
    let site = below_nodes(
        "[[pool]]\nname = 'small'\nresource = 'ncpus'\nfree = '10/20%'\n\
         access = 'ncpus<4 & duration<1h'\nshare = true\n\
         [[pool]]\nresource = 'tesla'\nfree = '100%'\n\
         access = 'group:G1 | group:G2 | user:alice | duration<=2h'\n\
         [[pool]]\nname = 'maintenance'\nresource = 'tesla'\nfree = '100%'\n\
         validity = 'cron 0 8 * */2 1 +10h'\n",
    );
    let [small, second, maintenance] = &site.pools[..] else {
        panic!("{:?}", site.pools);
    };
    assert_eq!((small.name.as_str(), small.free.of(40), small.share), ("small", 10, true));
    assert_eq!(small.access.to_string(), "ncpus<4 & duration<1h");
    assert_eq!((second.name.as_str(), second.share), ("pool-2", false));
    assert_eq!(second.access.to_string(), "group:G1 | group:G2 | user:alice | duration<=2h");
    // Nobody may, as nobody is named.
    assert_eq!(maintenance.access.to_string(), "never");
}

#[test]
fn unknown_and_excessive_values_are_refused() {
    let site = with_nodes("[resource.sw]\nscope = 'job'\nitems = { g03 = 4, g99 = 0 }\n");
    let refused = |text: &str| {
        let rset: Rset = text.parse().unwrap();
        site.accept(&rset, "alice", "G1").unwrap_err()
    };
    for (text, words) in [
        ("ncpus=1:telsa=1", "the site has no resource telsa; did you mean tesla?"),
        ("ncpus=1,zzz=1", "the site has no resource zzz; ask for others"),
        ("11:ncpus=16", "176 ncpus are asked for, and there are 160; ask for less"),
        ("ncpus=17", "no node has ncpus=17, even if nothing else runs on it"),
        ("ncpus=1:mem=65g", "no node has ncpus=1:mem=65g"),
        ("ncpus=1:vmem=1g", "1g vmem are asked for, and there are 0"),
        ("ncpus=1:sw=g03", "sw is a resource of no node; write it behind the chunks"),
        ("ncpus=1,tesla=1", "tesla is a resource of nodes; write it into a chunk"),
        ("ncpus=1,sw=g04", "sw is asked for by word; write one of sw=g03, sw=g99"),
        ("ncpus=1,sw=1", "sw is asked for by word; write one of sw=g03, sw=g99"),
        ("ncpus=1,sw=g99", "1 sw=g99 are asked for, and there are 0"),
        ("tesla=one", "tesla is counted; write a number"),
    ] {
        let refused = refused(text);
        assert!(refused.to_string().contains(words), "{text}: {refused}");
    }
    let too_much = Refused::TooMuch { resource: "tesla".into(), asked: 11, most: 10 };
    assert_eq!(refused("11:tesla=1"), too_much);
    let all: Rset = "10:ncpus=16:mem=64g:tesla=1:ompthreads=99,sw=g03".parse().unwrap();
    assert_eq!(site.accept(&all, "alice", "G1"), Ok(all));
}

#[test]
fn sites_choose_policies() {
    let text = "planning_horizon = '4w'\nplanning_threads = 3\n\
                watchdog = '5m'\nmapping = 'switches'\n\
                [[nodes]]\nname = 'n'\nhas = 'ncpus=4'\n\
                [[limit]]\nfor = 'everyone'\nresource = 'ncpus'\nitems = 2\nsoft = '70%'\n";
    let site = read(text);
    assert_eq!(site.planning_horizon_s, Some(28 * 86_400));
    assert_eq!((site.planning_threads, site.watchdog_s), (3, Some(300)));
    assert_eq!(site.mapping, Mapping::Switches);
    assert_eq!(site.limits[0].soft_permille, Some(700));
    let plain = read("[[nodes]]\nname = 'n'\nhas = 'ncpus=4'\n");
    assert_eq!((plain.planning_horizon_s, plain.watchdog_s), (None, None));
    assert_eq!((plain.planning_threads, plain.mapping), (1, Mapping::Cheapest));
}

#[test]
fn gates_are_read() {
    let text = "vmem>=80g | mem>=66g | ncpus>=17 | duration<=12h";
    let site = read(&format!(
        "[[nodes]]\nname = 'smp%d'\ncount = 4\nhas = 'ncpus=32:mem=1t:arch=linux'\nprio = 0\n\
         only_if = '{text}'\n"
    ));
    assert_eq!(site.nodes[3].only_if.as_ref().unwrap().to_string(), text);
    let mem = Item { resource: "mem".into(), value: Value::Amount(1 << 40) };
    assert_eq!(site.nodes[0].has[1], mem);
}

#[test]
fn priorities_are_made_of_weights() {
    let site = with_nodes(
        "[priority]\ndeadline = 50\nsla = 70\nbest_effort = -1\nper_node = 2\n\
         resource = { tesla = 10 }\n",
    );
    let weights = &site.weights;
    assert_eq!((weights.deadline, weights.sla, weights.best_effort), (50, 70, -1));
    assert_eq!((weights.per_node, weights.resources["tesla"]), (2, 10));
    assert_eq!(weights.fixed_start, 0);
}

/// The sites of Keller's measurements (6).
#[test]
fn sites_are_as_large_as_kellers() {
    let oculus = Site::oculus();
    assert_eq!(oculus.nodes.len(), 616);
    assert_eq!(oculus.most("ncpus", None), 9_920);
    assert_eq!((oculus.most("tesla", None), oculus.most("mic", None)), (32, 8));
    let sizes: BTreeSet<_> = oculus.nodes.iter().map(|node| node.amount("mem") / GIB).collect();
    assert_eq!(sizes, BTreeSet::from([64, 256, 1024]));
    assert_eq!((oculus.users.len(), oculus.groups.len()), (200, 70));
    let arminius = Site::arminius();
    assert_eq!(arminius.nodes.len(), 62);
    assert_eq!(arminius.most("ncpus", None), 660);
    for site in [oculus, arminius] {
        let text = site.to_toml();
        assert_eq!(Site::from_toml(&text).as_ref(), Ok(&site), "{text}");
    }
}
