//! `seawall chaos`: the simulator's workloads and checkers against a cluster of real processes that is hurt for a
//! while and then has to come back.
#![allow(
    clippy::disallowed_methods,
    reason = "hurts processes and files from outside; no part of a node runs here"
)]

mod checks;
mod fault_plan;
mod files;
mod nemesis;
mod proxy;
mod stage;
mod verdict;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use toml::{Table, Value};

use super::local_cluster::{
    ClusterError, HOST, Layout, LocalCluster, NodeLayout, Reach, WorkFolder,
};
use super::output::{OutputFormat, OutputOption, complain, progress, say, say_json};
use super::{FAILED, GOOD, USAGE};
use crate::runtime::real::{self, ProcessSignals};
use crate::simulator::clients::{Clients, Outcome, Stage, TICK};
use crate::simulator::history::SharedHistory;
use crate::simulator::plan::{Plan, Topology};
use fault_plan::{FaultKind, PlannedFault};
use nemesis::Nemesis;
use proxy::Links;
use stage::RealStage;
use verdict::Verdict;

/// Longest wait until everything is published, read and delivered again.
const LIVENESS_LIMIT: Duration = Duration::from_secs(180);
/// Clients that read and change metadata itself.
const REGISTER_CLIENTS: u32 = 3;
/// Time between two publishes, at most: here time is real, and there is less of it.
const INTERVAL_MOST: Duration = Duration::from_millis(30);
/// Entries of a ledger, at least. A new one needs as many bookies as a local cluster has: with few entries to a
/// ledger a storm would see nothing but refusals.
const ENTRIES_LEAST: u64 = 200;
/// The faults, one a line, in the run's folder.
const PLAN_FILE: &str = "plan.jsonl";

/// Hurt a real cluster on this machine while clients work, let it come back, and check what it promised.
///
/// Kills, stops, pauses, cuts and delays connections, damages files of one node; writes the plan of faults, the
/// history and the verdict to files. Exit code 1 when a promise was broken; the folder is kept then.
///
/// Examples:
///   seawall chaos --nodes 3 --for 10m
///   seawall chaos --seed 7 --dir /tmp/run --faults kill,pause
///   seawall chaos --plan /tmp/run/plan.jsonl --seed 7
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ChaosCommand {
    /// How many nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=9))]
    nodes: u8,
    /// How long the cluster is hurt.
    #[arg(long = "for", default_value = "1m", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// What workloads, settings and faults are drawn from; by default any.
    #[arg(long)]
    seed: Option<u64>,
    /// Folder of everything; without it a temporary one, kept only when a promise was broken.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Kinds of faults; default: all but disk-loss.
    #[arg(long, value_enum, value_delimiter = ',')]
    faults: Vec<FaultKind>,
    /// Mean time between two faults.
    #[arg(long, default_value = "3s", value_parser = humantime::parse_duration)]
    fault_interval: Duration,
    /// Do what this plan says instead of drawing one.
    #[arg(long)]
    plan: Option<PathBuf>,
    #[command(flatten)]
    output: OutputOption,
}

/// Performs the command.
pub(super) fn chaos(command: &ChaosCommand) -> u8 {
    let planned = match command.plan.as_deref().map(read_plan).transpose() {
        Ok(planned) => planned,
        Err(reason) => {
            complain(&reason);
            return USAGE;
        }
    };
    match real::run(|| Box::pin(run(command, planned))) {
        Ok(Ok(verdict)) => {
            let is_told = match command.output.format {
                OutputFormat::Json => say_json(&verdict),
                OutputFormat::Table => say(&verdict),
            };
            if is_told && verdict.is_good() { GOOD } else { FAILED }
        }
        Ok(Err(error)) => {
            complain(&error);
            FAILED
        }
        Err(error) => {
            complain(&error);
            FAILED
        }
    }
}

fn read_plan(path: &Path) -> Result<Vec<PlannedFault>, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let parse = |(number, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| format!("{}:{}: {error}", path.display(), number + 1))
    };
    text.lines().enumerate().map(parse).collect()
}

/// Runs on the main thread: with the thread that starts them the nodes die.
async fn run(
    command: &ChaosCommand,
    planned: Option<Vec<PlannedFault>>,
) -> Result<Verdict, ClusterError> {
    let mut signals = ProcessSignals::take().map_err(ClusterError::io("signals"))?;
    let runtime = real::runtime();
    let seed = command.seed.unwrap_or_else(|| runtime.random.next() >> 32);
    let nodes = usize::from(command.nodes);
    let mut folder = WorkFolder::open(command.dir.as_deref(), "chaos")?;
    let kinds = if command.faults.is_empty() { FaultKind::USUAL } else { &command.faults };
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let faults = planned.unwrap_or_else(|| {
        let (length, pause) = (millis(command.duration), millis(command.fault_interval).max(4));
        fault_plan::draw(seed, nodes, kinds, length, pause)
    });
    let plan_file = folder.path().join(PLAN_FILE);
    write_plan(&plan_file, &faults).map_err(ClusterError::io(PLAN_FILE))?;

    let mut plan = Plan::draw(seed, Topology::Cluster);
    plan.liveness_limit = LIVENESS_LIMIT;
    plan.register_clients = REGISTER_CLIENTS;
    plan.publish_interval = plan.publish_interval.min(INTERVAL_MOST);
    let layout = Layout::of_folder(folder.path(), nodes)?;
    if layout.nodes.iter().any(|node| node.folder.exists()) {
        return Err(ClusterError::Used { path: folder.path().to_owned() });
    }
    let links = Links::new(nodes);
    let mut reach = Vec::new();
    for node in &layout.nodes {
        let start = |target| proxy::start_proxy(&runtime, &links, HOST, node.number, target);
        reach.push(Reach {
            rpc: start(node.rpc_address()).await.map_err(ClusterError::io("a proxy"))?,
            pulsar: start(node.pulsar_address()).await.map_err(ClusterError::io("a proxy"))?,
        });
    }
    layout.write(|node: &NodeLayout| reach[node.number - 1].clone(), &settings(&plan))?;
    let mut cluster = LocalCluster::launch(&runtime, &layout)?;
    for node in &mut cluster.nodes {
        links.runs_as(node.layout.number, node.id().unwrap_or(0));
    }
    cluster.ready().await?;

    let brokers: Vec<&str> = reach.iter().map(|reach| reach.pulsar.as_str()).collect();
    let nemesis = Nemesis::new(Arc::clone(&links), nodes);
    let metadata = layout.metadata_nodes().map(|node| reach[node.number - 1].rpc.clone()).collect();
    let stage = RealStage::new(&runtime, cluster, nemesis, brokers.join(","), metadata);
    let history = SharedHistory::default();
    let mut clients = Clients::new(stage, Arc::new(plan), history.clone());
    let mut outcome = Outcome::default();
    match clients.set_up().await {
        Err(detail) => outcome.fail("P6", "set_up", detail),
        Ok(()) => {
            clients.start_workloads();
            clients.start_register_clients();
            storm(&mut clients, faults, command.duration, &mut signals).await;
            checks::come_back_and_check(&mut clients, &layout, &reach, &mut outcome).await;
        }
    }
    clients.stop_all();
    let took = clients.stage.now();
    for words in clients.stage.cluster.stop().await {
        outcome.fail("P6", "stop", words);
    }
    let verdict = Verdict::new(seed, nodes, took, &outcome, &clients, folder.path());
    verdict.write(&history).map_err(ClusterError::io("the verdict"))?;
    if !verdict.is_good() {
        folder.keep();
    }
    Ok(verdict)
}

/// Hurts the cluster while clients work; a signal ends it early.
async fn storm(
    clients: &mut Clients<RealStage>,
    faults: Vec<PlannedFault>,
    duration: Duration,
    signals: &mut ProcessSignals,
) {
    let began = clients.stage.now();
    let bar = progress(duration.as_secs(), "seconds of chaos");
    clients.stage.nemesis.begin(faults, began);
    while clients.stage.now() < began + duration {
        tokio::select! {
            biased;
            () = signals.stop_asked() => break,
            () = clients.supervise(TICK) => {}
        }
        bar.set_position((clients.stage.now() - began).as_secs());
    }
    bar.finish_and_clear();
    clients.stage.heal();
}

fn write_plan(path: &Path, faults: &[PlannedFault]) -> std::io::Result<()> {
    let mut text = String::new();
    for fault in faults {
        text.push_str(&serde_json::to_string(fault)?);
        text.push('\n');
    }
    std::fs::write(path, text)
}

/// Settings that make rare things frequent, as in the simulator.
fn settings(plan: &Plan) -> Table {
    const MIB: i64 = 1024 * 1024;
    let number = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let time = |time: Duration| Value::String(humantime::format_duration(time).to_string());
    let seconds = |seconds: u64| time(Duration::from_secs(seconds));
    let sections = [
        ("pulsar", vec![("message_bytes_max", Value::Integer(64 * 1024))]),
        (
            "bookie",
            vec![
                ("journal_file_bytes", Value::Integer(MIB)),
                ("journal_group_bytes", Value::Integer(64 * 1024)),
                ("journal_queue_bytes", Value::Integer(4 * MIB)),
                ("write_cache_bytes", Value::Integer(MIB)),
                ("read_cache_bytes", Value::Integer(256 * 1024)),
                ("checkpoint_interval", time(plan.checkpoint_interval)),
                ("entry_log_bytes", Value::Integer(2 * MIB)),
                ("free_space_low_bytes", Value::Integer(MIB)),
                ("garbage_interval", seconds(5)),
                ("scrub_bytes_per_second", Value::Integer(256 * 1024)),
            ],
        ),
        (
            "broker",
            vec![
                ("ledger_entries_max", number(plan.ledger_entries_max.max(ENTRIES_LEAST))),
                ("tail_cache_bytes", number(plan.tail_cache_bytes as u64)),
                ("trim_interval", seconds(3)),
                ("session_time_to_live", seconds(3)),
                ("shedding_interval", seconds(5)),
            ],
        ),
        (
            "repair",
            vec![
                ("lost_bookie_grace", time(plan.lost_bookie_grace)),
                ("open_tail_grace", time(plan.open_tail_grace)),
                ("audit_interval", seconds(3)),
                ("check_interval", seconds(10)),
                ("check_samples", Value::Integer(0)),
                ("replicator_interval", seconds(2)),
            ],
        ),
    ];
    let sections = sections.into_iter().map(|(section, keys)| {
        let keys = keys.into_iter().map(|(key, value)| (key.to_owned(), value));
        (section.to_owned(), Value::Table(keys.collect()))
    });
    sections.collect()
}
