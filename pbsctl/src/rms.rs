// SPDX-License-Identifier: GPL-2.0
//! The commands for applications that evolve, and for their resource manager.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use pbs_job::cpus_of_list;
use pbs_rms::{Kind, Limits, NodeChoice, PlacementOrder, Policy, Prices};
use pbs_rms_api::{Account, Cap, Change, Client, ClusterNodes, Held, Refusal, Session, View};
use pbs_rms_apps::node::{Cancelled, Looked, Warden};
use pbs_rms_server::{serve, Hub, Managed, Settings};
use pbs_text::{append_line, columns};
use serde::Serialize;

use crate::apps::{self, AppsOptions};
use crate::failure::Failure;
use crate::manager::{numbers, ManagerSocket};
use crate::output::{counted, write_err, Output};
use crate::quantities;

const RMS_HELP: &str = "\
Examples:
  pbsctl rms serve --cluster lab=16 --keep /var/lib/pbs/rms.kept
  pbsctl rms serve --cluster here=cpus:1-3   Manage CPUs of this machine as nodes
  pbsctl rms requests                        List sessions, their nodes and waiting requests
  pbsctl rms views 3                         Show the nodes that session 3 could get
  pbsctl rms update 3 7 --nodes 6            Change the nodes of request 7 of session 3
  pbsctl rms update 3 7 --nodes 6 --announce 5min
  pbsctl rms done 3 7                        End the request
  pbsctl rms accounts                        Show the nodes that sessions have used
  pbsctl rms accounts --by-user              Show the nodes that users have used
  pbsctl rms nodes                           List idle nodes
  varlinkctl introspect /run/pbs/rms.sock    Show the interface for applications

Applications start sessions themselves; samples/rms has an example in Python.";

#[derive(Args, Debug)]
#[command(after_help = RMS_HELP)]
pub(crate) struct RmsOptions {
    #[command(subcommand)]
    what: RmsCommand,

    #[command(flatten)]
    manager: ManagerSocket,
}

#[derive(Debug, Subcommand)]
enum RmsCommand {
    /// Manage nodes: serve the requests of applications
    ///
    /// Serves until it is killed. With --keep the next manager continues the sessions.
    Serve(ServeOptions),

    /// List the sessions and their requests
    Requests {
        /// List this session only
        #[arg(value_name = "SESSION")]
        session: Option<u64>,
    },

    /// Show the nodes that a session could get, now and later
    Views {
        /// Number of the session
        #[arg(value_name = "SESSION")]
        session: u64,
    },

    /// Change the nodes of a request, at once or after an announcement
    Update(UpdateOptions),

    /// End or withdraw a request
    Done {
        /// Number of the session
        #[arg(value_name = "SESSION")]
        session: u64,
        /// Number of the request
        #[arg(value_name = "REQUEST")]
        request: u64,
        /// Nodes that the following request does not get, such as 4,5
        #[arg(long, value_name = "NODES", value_delimiter = ',')]
        release: Vec<u32>,
    },

    /// End a session and release its nodes
    End {
        /// Number of the session
        #[arg(value_name = "SESSION")]
        session: u64,
    },

    /// Show the accounts of your sessions; operators see all
    Accounts {
        /// Show the sum for each user
        #[arg(long)]
        by_user: bool,
    },

    /// List nodes that no session has or waits for; they may be switched off
    Nodes,

    /// Run models of evolving applications
    Apps(AppsOptions),
}

#[derive(Args, Debug)]
struct ServeOptions {
    /// Cluster to manage: its name and number of nodes, such as lab=16, or the CPUs of this machine
    /// that are its nodes, such as here=cpus:1-3; may be repeated
    ///
    /// Jobs of this node's service on such CPUs are cancelled when their user no longer has the
    /// CPUs.
    #[arg(long, value_name = "NAME=NODES", required = true, value_parser = cluster)]
    cluster: Vec<Managed>,

    /// Socket of the service of this node, whose CPUs are nodes
    #[arg(long, env = "PBS_SOCKET", value_name = "PATH", default_value = pbs_node_api::SOCKET)]
    node: PathBuf,

    /// Store the sessions in FILE, and continue those that it has
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,

    /// Shortest time from one scheduling pass to the next
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantities::ns)]
    interval: u64,

    /// Time in which an application must release preemptible nodes that its view no longer has
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = quantities::ns)]
    grace: u64,

    /// Time after which an unmonitored session ends
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = quantities::ns)]
    absence: u64,

    /// Order in which requests are placed
    #[arg(long, value_enum, default_value = "connection")]
    order: OrderName,

    /// Order in which nodes are allocated
    #[arg(long, value_enum, default_value = "lowest")]
    nodes: NodesName,

    /// Give each session an equal part of the preemptible nodes, without parts that others leave
    #[arg(long)]
    strict: bool,

    /// Most nodes of a cluster that a user may have in all sessions together; preemptible ones
    /// do not count
    #[arg(long, value_name = "N")]
    most_nodes: Option<u64>,

    /// Most concurrent sessions of a user, each with an equal part of the preemptible nodes;
    /// operators may have more
    #[arg(long, value_name = "N", default_value_t = 64)]
    most_sessions: usize,

    /// Longest time for which a request, or several one after the other, may keep nodes that are
    /// not preemptible; operators may keep them longer
    #[arg(long, value_name = "TIME", value_parser = quantities::ns)]
    longest: Option<u64>,

    /// Price of a node for an hour, such as preemptible=0.5; may be repeated for other types
    #[arg(long, value_name = "TYPE=UNITS", value_parser = price)]
    price: Vec<(Kind, u64)>,
}

/// Order in which requests are placed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OrderName {
    /// Requests of the session that connected first
    Connection,
    /// Requests that were submitted first
    Request,
}

/// Order in which nodes are allocated.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum NodesName {
    /// Nodes with the lowest numbers
    Lowest,
    /// Neighbouring nodes
    Contiguous,
}

#[derive(Args, Debug)]
struct UpdateOptions {
    /// Number of the session
    #[arg(value_name = "SESSION")]
    session: u64,
    /// Number of the request
    #[arg(value_name = "REQUEST")]
    request: u64,
    /// New number of nodes
    #[arg(long, value_name = "N")]
    nodes: u64,
    /// New duration; by default until it is done
    #[arg(long, value_name = "TIME", value_parser = quantities::ns)]
    duration: Option<u64>,
    /// Time for which it keeps its present nodes first
    #[arg(long, value_name = "TIME", value_parser = quantities::ns)]
    announce: Option<u64>,
    /// Nodes to release, as many as it will have fewer, such as 4,5
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    release: Vec<u32>,
}

/// Greatest number of nodes of a cluster: a request for all gets the number of each.
const MOST_NODES: u32 = 1_000_000;

fn cluster(text: &str) -> Result<Managed, String> {
    let wrong = || {
        format!(
            "write NAME=NODES, such as lab=16, with at most {MOST_NODES} nodes, or NAME=cpus:LIST, \
             such as here=cpus:1-3"
        )
    };
    let (name, nodes) = text.split_once('=').ok_or_else(wrong)?;
    let (nodes, cpus) = match nodes.strip_prefix("cpus:") {
        None => (nodes.parse().ok(), None),
        Some(list) => {
            let mut cpus = cpus_of_list(list).ok_or_else(wrong)?;
            cpus.sort_unstable();
            cpus.dedup();
            (u32::try_from(cpus.len()).ok(), Some(cpus))
        }
    };
    let nodes = nodes.filter(|nodes| (1..=MOST_NODES).contains(nodes) && !name.is_empty());
    Ok(Managed { name: name.into(), nodes: nodes.ok_or_else(wrong)?, cpus })
}

fn price(text: &str) -> Result<(Kind, u64), String> {
    let wrong = "write TYPE=UNITS, such as preemptible=0.5; the types are pre-allocation, \
                 non-preemptible and preemptible";
    let (name, units) = text.split_once('=').ok_or(wrong)?;
    let kinds = [Kind::PreAllocation, Kind::NonPreemptible, Kind::Preemptible];
    let kind = kinds.into_iter().find(|kind| kind.name() == name);
    let units = units.parse::<f64>().ok();
    let units = units.filter(|units| (0.0..=1e9).contains(units)).ok_or(wrong)?;
    Ok((kind.ok_or(wrong)?, (units * 1e6).round() as u64))
}

#[derive(Serialize)]
struct Sessions {
    sessions: Vec<Session>,
}

#[derive(Serialize)]
struct Seen {
    views: Vec<View>,
}

#[derive(Serialize)]
struct Accounts {
    accounts: Vec<Account>,
}

/// Accounts of a user's sessions.
#[derive(Serialize)]
struct User {
    uid: u32,
    sessions: u64,
    pre_allocated_node_s: u64,
    idle_node_s: u64,
    non_preemptible_node_s: u64,
    preemptible_node_s: u64,
    overstayed_node_s: u64,
    wasted_node_s: u64,
    cost_micro: u64,
}

#[derive(Serialize)]
struct Users {
    users: Vec<User>,
}

#[derive(Serialize)]
struct AllNodes {
    clusters: Vec<ClusterNodes>,
}

#[derive(Serialize)]
struct Changed {
    session: u64,
    request: Option<u64>,
    until: Option<u64>,
}

fn failed(failure: impl fmt::Display) -> Failure {
    Failure::Failed(failure.to_string())
}

fn connect(socket: &Path) -> Result<Client, Failure> {
    Client::connect_to(socket).map_err(|error| {
        let socket = socket.display();
        Failure::Failed(format!(
            "{socket}: {error}; start a resource manager with pbsctl rms serve"
        ))
    })
}

pub(crate) fn rms(out: Output, options: &RmsOptions) -> Result<ExitCode, Failure> {
    let socket = &options.manager.socket;
    match &options.what {
        RmsCommand::Apps(options) => return apps::apps(out.named("apps"), options),
        RmsCommand::Serve(serving) => serve_at(socket, serving)?,
        RmsCommand::Requests { session } => {
            let mut client = connect(socket)?;
            let sessions = of_number(client.sessions().map_err(failed)?, *session)?;
            let names = cluster_names(&mut client)?;
            let all = Sessions { sessions };
            out.named("rms-requests").print(&all, || requests_text(&all.sessions, &names))?;
        }
        RmsCommand::Views { session } => {
            let mut client = connect(socket)?;
            let views = client.views(*session).map_err(failed)?;
            let names = cluster_names(&mut client)?;
            let seen = Seen { views };
            out.named("rms-views").print(&seen, || views_text(&seen.views, &names))?;
        }
        RmsCommand::Update(wanted) => {
            let update = Change {
                request: wanted.request,
                nodes: wanted.nodes,
                duration_ns: wanted.duration,
                announce_ns: wanted.announce,
                released: Some(wanted.release.clone()),
            };
            let made = connect(socket)?.update(wanted.session, &update).map_err(failed)?;
            let changed =
                Changed { session: wanted.session, request: Some(made.request), until: made.until };
            out.print(&changed, || {
                let until = made.until.map_or(String::new(), |until| {
                    format!("; request {until} keeps its nodes until then")
                });
                format!("request {} replaces request {}{until}\n", made.request, wanted.request)
            })?;
        }
        RmsCommand::Done { session, request, release } => {
            let done = connect(socket)?.done(*session, *request, release);
            done.map_err(failed)?;
            let text = || format!("request {request} is done\n");
            changed(out, *session, Some(*request), text)?;
        }
        RmsCommand::End { session } => {
            connect(socket)?.disconnect(*session).map_err(failed)?;
            changed(out, *session, None, || format!("session {session} has ended\n"))?;
        }
        RmsCommand::Nodes => {
            let clusters = connect(socket)?.nodes().map_err(failed)?;
            let all = AllNodes { clusters };
            out.named("rms-nodes").print(&all, || nodes_text(&all.clusters))?;
        }
        RmsCommand::Accounts { by_user: true } => {
            let accounts = connect(socket)?.accounts().map_err(failed)?;
            let users = by_user(&accounts);
            let all = Users { users };
            out.named("rms-users").print(&all, || users_text(&all.users))?;
        }
        RmsCommand::Accounts { by_user: false } => {
            let accounts = connect(socket)?.accounts().map_err(failed)?;
            let all = Accounts { accounts };
            out.named("rms-accounts").print(&all, || accounts_text(&all.accounts))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the names of the clusters, in the order of their indices.
fn cluster_names(client: &mut Client) -> Result<Vec<String>, Failure> {
    let clusters = client.nodes().map_err(failed)?;
    Ok(clusters.into_iter().map(|cluster| cluster.name).collect())
}

/// Returns the session of that number, or all.
fn of_number(mut sessions: Vec<Session>, number: Option<u64>) -> Result<Vec<Session>, Failure> {
    let Some(number) = number else {
        return Ok(sessions);
    };
    sessions.retain(|session| session.session == number);
    if sessions.is_empty() {
        return Err(failed(Refusal::NoSuchSession { session: number }));
    }
    Ok(sessions)
}

fn changed(
    out: Output,
    session: u64,
    request: Option<u64>,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    let changed = Changed { session, request, until: None };
    out.print(&changed, text)
}

/// Refuses clusters of which two have the same name, or a CPU.
fn check_clusters(clusters: &[Managed]) -> Result<(), Failure> {
    let option = |cluster: &Managed| match &cluster.cpus {
        Some(cpus) => format!("--cluster {}=cpus:{}", cluster.name, numbers(cpus)),
        None => format!("--cluster {}={}", cluster.name, cluster.nodes),
    };
    let mut of_cpu = BTreeMap::new();
    for (place, cluster) in clusters.iter().enumerate() {
        if let Some(other) = clusters[..place].iter().find(|other| other.name == cluster.name) {
            return Err(Failure::Usage(format!(
                "{} and {} have one name; write another one for either",
                option(other),
                option(cluster)
            )));
        }
        for cpu in cluster.cpus.iter().flatten() {
            if let Some(other) = of_cpu.insert(cpu, cluster) {
                return Err(Failure::Usage(format!(
                    "CPU {cpu} is in both {} and {}; leave it out of one",
                    option(other),
                    option(cluster)
                )));
            }
        }
    }
    Ok(())
}

fn serve_at(socket: &Path, options: &ServeOptions) -> Result<(), Failure> {
    check_clusters(&options.cluster)?;
    let price = |kind| {
        let prices = options.price.iter().rev().find(|price| price.0 == kind);
        prices.map_or(0, |price| price.1)
    };
    let settings = Settings {
        clusters: options.cluster.clone(),
        policy: Policy {
            interval_ns: options.interval,
            release_grace_ns: options.grace,
            is_strict: options.strict,
            order: match options.order {
                OrderName::Connection => PlacementOrder::Connection,
                OrderName::Request => PlacementOrder::Request,
            },
            choice: match options.nodes {
                NodesName::Lowest => NodeChoice::Lowest,
                NodesName::Contiguous => NodeChoice::Contiguous,
            },
            limits: Limits { nodes: options.most_nodes.unwrap_or(u64::MAX), ..Limits::default() },
            prices: Prices {
                pre_allocation: price(Kind::PreAllocation),
                non_preemptible: price(Kind::NonPreemptible),
                preemptible: price(Kind::Preemptible),
            },
        },
        absence_grace_ns: options.absence,
        most_sessions: options.most_sessions,
        longest_ns: options.longest.unwrap_or(u64::MAX),
    };
    // Where one serves already, its file is not to be touched.
    let listener = pbs_socket::listen(socket).map_err(|error| Failure::file(socket, &error))?;
    let hub = Hub::open(settings, options.keep.as_deref());
    let hub = hub.map_err(|error| Failure::Failed(error.to_string()))?;
    let sessions = counted(hub.session_count() as u64, "session", "sessions");
    write_err(&format!("listening on {}, {sessions}\n", socket.display()));
    watch_over(socket, options);
    serve(listener, hub).map_err(|error| Failure::file(socket, &error))
}

/// Interval at which the owners of jobs and of CPUs are compared.
const WATCH: Duration = Duration::from_millis(500);

/// Cancels jobs on CPUs that their users do not have any more, if nodes are CPUs.
fn watch_over(socket: &Path, options: &ServeOptions) {
    let cpus = options.cluster.iter().map(|cluster| cluster.cpus.clone());
    let cpus: Vec<Vec<u32>> = cpus.map(Option::unwrap_or_default).collect();
    if cpus.iter().all(Vec::is_empty) {
        return;
    }
    let warden = Warden::new(socket, &options.node, cpus);
    thread::spawn(move || {
        let mut told = None;
        loop {
            thread::sleep(WATCH);
            let trouble = match warden.look() {
                Ok(Looked { cancelled, trouble }) => {
                    for Cancelled { number, uid, cpu } in cancelled {
                        write_err(&format!(
                            "job {number} of user {uid} is cancelled: the user does not have CPU \
                             {cpu} any more\n"
                        ));
                    }
                    trouble
                }
                Err(why) => Some(format!("the CPUs are not monitored: {why}")),
            };
            // It is tried again and again, and reported once.
            if let Some(why) = trouble.as_ref().filter(|_| trouble != told) {
                write_err(&format!("{why}\n"));
            }
            told = trouble;
        }
    });
}

fn seconds(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

fn requests_text(sessions: &[Session], clusters: &[String]) -> String {
    if sessions.is_empty() {
        return "no sessions\n".into();
    }
    let titles =
        ["session", "name", "request", "cluster", "type", "wants", "for", "state", "nodes"];
    let mut rows = vec![titles.map(String::from).to_vec()];
    for session in sessions {
        let first = [session.session.to_string(), session.name.clone()];
        if session.requests.is_empty() {
            let none = ["-", "-", "-", "-", "-", "idle", "-"].map(String::from);
            rows.push([first.to_vec(), none.to_vec()].concat());
        }
        for request in &session.requests {
            rows.push([first.to_vec(), request_row(request, clusters)].concat());
        }
    }
    if clusters.len() < 2 {
        // All are of the only one.
        rows.iter_mut().for_each(|row| drop(row.remove(3)));
    }
    let mut text = columns(&rows, 9);
    for session in sessions.iter().filter(|session| !session.is_monitored) {
        append_line!(
            text,
            "Nothing monitors session {}: it is disconnected unless its application returns.",
            session.session
        );
    }
    text
}

/// Returns the name of a cluster, or its index if it has none.
fn cluster_name(clusters: &[String], cluster: u64) -> String {
    let name = usize::try_from(cluster).ok().and_then(|cluster| clusters.get(cluster));
    name.cloned().unwrap_or_else(|| cluster.to_string())
}

fn request_row(request: &Held, clusters: &[String]) -> Vec<String> {
    let state = match (request.started_unix_ns, request.scheduled_unix_ns) {
        (Some(_), _) => "runs",
        (None, Some(_)) => "planned",
        (None, None) => "waits",
    };
    vec![
        request.request.to_string(),
        cluster_name(clusters, request.cluster),
        request.kind.clone(),
        request.nodes.to_string(),
        request.duration_ns.map_or_else(|| "ever".into(), seconds),
        state.into(),
        numbers(&request.held),
    ]
}

fn views_text(views: &[View], clusters: &[String]) -> String {
    let titles = ["cluster", "from now", "non-preemptible", "preemptible"];
    let mut rows = vec![titles.map(String::from).to_vec()];
    for view in views {
        let both = [&view.non_preemptible, &view.preemptible].map(steps);
        let mut times: Vec<u64> = both.iter().flatten().map(|step| step.0).collect();
        times.sort_unstable();
        times.dedup();
        for from_ns in times {
            let at = |steps: &[(u64, u64)]| {
                let before = steps.iter().take_while(|step| step.0 <= from_ns);
                before.last().map_or(0, |step| step.1).to_string()
            };
            let name = cluster_name(clusters, view.cluster);
            let cells = [name, seconds(from_ns), at(&both[0]), at(&both[1])];
            rows.push(cells.to_vec());
        }
    }
    columns(&rows, 1)
}

/// From when on, after the begin, how many.
fn steps(cap: &Cap) -> Vec<(u64, u64)> {
    let mut from_ns = 0_u64;
    let steps = cap.steps.iter().map(|step| {
        let begin_ns = from_ns;
        from_ns = from_ns.saturating_add(step.duration_ns.unwrap_or(u64::MAX));
        (begin_ns, step.nodes)
    });
    steps.collect()
}

fn nodes_text(clusters: &[ClusterNodes]) -> String {
    let titles = ["cluster", "nodes", "idle", "numbers"];
    let mut rows = vec![titles.map(String::from).to_vec()];
    for cluster in clusters {
        let cells = [
            cluster.name.clone(),
            cluster.nodes.to_string(),
            cluster.idle.len().to_string(),
            numbers(&cluster.idle),
        ];
        rows.push(cells.to_vec());
    }
    columns(&rows, 4)
}

/// Adds up the accounts of each user, in the order of their numbers.
fn by_user(accounts: &[Account]) -> Vec<User> {
    let mut users: BTreeMap<u32, User> = BTreeMap::new();
    for account in accounts {
        let uid = account.uid;
        let user = users.entry(uid).or_insert(User {
            uid,
            sessions: 0,
            pre_allocated_node_s: 0,
            idle_node_s: 0,
            non_preemptible_node_s: 0,
            preemptible_node_s: 0,
            overstayed_node_s: 0,
            wasted_node_s: 0,
            cost_micro: 0,
        });
        let all = [
            (&mut user.sessions, 1),
            (&mut user.pre_allocated_node_s, account.pre_allocated_node_s),
            (&mut user.idle_node_s, account.idle_node_s),
            (&mut user.non_preemptible_node_s, account.non_preemptible_node_s),
            (&mut user.preemptible_node_s, account.preemptible_node_s),
            (&mut user.overstayed_node_s, account.overstayed_node_s),
            (&mut user.wasted_node_s, account.wasted_node_s),
            (&mut user.cost_micro, account.cost_micro),
        ];
        for (sum, more) in all {
            *sum = sum.saturating_add(more);
        }
    }
    users.into_values().collect()
}

/// Node seconds by type, as they stand in a table.
const NODE_S: [&str; 7] =
    ["pre-allocated", "idle", "non-preemptible", "preemptible", "overstayed", "wasted", "cost"];

/// A table of node seconds, each row with something in front, of which the first columns are
/// words.
fn node_s_text(titles: &[&str], words: usize, rows: Vec<(Vec<String>, [u64; 6], u64)>) -> String {
    let title = titles.iter().chain(&NODE_S).map(ToString::to_string);
    let mut table = vec![title.collect::<Vec<String>>()];
    table.extend(rows.into_iter().map(|(mut row, node_s, cost_micro)| {
        row.extend(node_s.map(|seconds| seconds.to_string()));
        row.push(format!("{:.2}", cost_micro as f64 / 1e6));
        row
    }));
    format!("node seconds\n{}", columns(&table, words))
}

fn users_text(users: &[User]) -> String {
    let rows = users.iter().map(|user| {
        let node_s = [
            user.pre_allocated_node_s,
            user.idle_node_s,
            user.non_preemptible_node_s,
            user.preemptible_node_s,
            user.overstayed_node_s,
            user.wasted_node_s,
        ];
        let first = [u64::from(user.uid), user.sessions].map(|number| number.to_string());
        (first.to_vec(), node_s, user.cost_micro)
    });
    node_s_text(&["user", "sessions"], 0, rows.collect())
}

fn accounts_text(accounts: &[Account]) -> String {
    let rows = accounts.iter().map(|account| {
        let over = if account.is_over { "yes" } else { "no" };
        let node_s = [
            account.pre_allocated_node_s,
            account.idle_node_s,
            account.non_preemptible_node_s,
            account.preemptible_node_s,
            account.overstayed_node_s,
            account.wasted_node_s,
        ];
        let first = [
            account.session.to_string(),
            account.name.clone(),
            account.uid.to_string(),
            over.into(),
        ];
        (first.to_vec(), node_s, account.cost_micro)
    });
    node_s_text(&["session", "name", "user", "over"], 4, rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_nothing_monitors_is_marked() {
        let session =
            |session, is_monitored| Session { session, is_monitored, ..Session::default() };
        let text = requests_text(&[session(3, true), session(4, false)], &[]);
        let marks: Vec<&str> = text.lines().filter(|line| line.contains("monitors")).collect();
        assert_eq!(marks.len(), 1, "{text}");
        assert!(marks[0].contains("session 4"), "{text}");
    }

    #[test]
    fn clusters_share_neither_cpus_nor_names() {
        let check = |texts: &[&str]| {
            let clusters = texts.iter().map(|text| cluster(text).expect("it is right"));
            match check_clusters(&clusters.collect::<Vec<_>>()) {
                Err(Failure::Usage(why)) => why,
                other => format!("{other:?}"),
            }
        };
        assert_eq!(check(&["a=cpus:0-1", "b=cpus:2-3", "c=4"]), "Ok(())");
        assert_eq!(
            check(&["a=cpus:0-2", "c=4", "b=cpus:2-3"]),
            "CPU 2 is in both --cluster a=cpus:0-2 and --cluster b=cpus:2-3; leave it out of one"
        );
        assert_eq!(
            check(&["a=4", "a=cpus:1"]),
            "--cluster a=4 and --cluster a=cpus:1 have one name; write another one for either"
        );
    }

    #[test]
    fn a_session_that_is_not_there_is_no_empty_list() {
        let session = Session { session: 3, ..Session::default() };
        let of = |number| of_number(vec![session.clone()], number);
        assert_eq!(of(Some(3)).map(|found| found.len()).ok(), Some(1));
        assert_eq!(of(None).map(|found| found.len()).ok(), Some(1));
        let Err(Failure::Failed(why)) = of(Some(99)) else {
            panic!("there is no such session");
        };
        assert!(why.contains("there is no session 99"), "{why}");
    }

    #[test]
    fn clusters_have_names_where_there_are_several() {
        let held = Held { request: 5, cluster: 1, kind: "preemptible".into(), ..Held::default() };
        let session = Session { session: 3, requests: vec![held], ..Session::default() };
        let names = ["lab", "hall"].map(String::from);
        let text = requests_text(std::slice::from_ref(&session), &names);
        assert!(text.contains("cluster") && text.contains("hall"), "{text}");
        let text = requests_text(&[session], &names[..1]);
        assert!(!text.contains("cluster"), "{text}");
        let cap =
            Cap { from_unix_ns: 0, steps: vec![pbs_rms_api::Step { duration_ns: None, nodes: 2 }] };
        let view = View { cluster: 1, non_preemptible: cap.clone(), preemptible: cap };
        let text = views_text(&[view], &names);
        assert!(text.lines().last().is_some_and(|line| line.starts_with("hall")), "{text}");
    }

    #[test]
    fn sessions_of_a_user_add_up() {
        let account = |session, uid, node_s, cost_micro| Account {
            session,
            uid,
            non_preemptible_node_s: node_s,
            wasted_node_s: 1,
            cost_micro,
            ..Account::default()
        };
        let all = [account(1, 7, 100, 2_500_000), account(2, 5, 30, 1), account(3, 7, 11, 500_000)];
        let users = by_user(&all);
        let of = |user: &User| {
            let cost = user.cost_micro;
            (user.uid, user.sessions, user.non_preemptible_node_s, cost)
        };
        let found: Vec<_> = users.iter().map(of).collect();
        assert_eq!(found, [(5, 1, 30, 1), (7, 2, 111, 3_000_000)]);
        assert_eq!(users[1].wasted_node_s, 2);
        assert!(users_text(&users).contains("3.00"));
    }
}
