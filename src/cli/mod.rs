//! The words a person types. Arguments, environment, standard output and exit codes are touched here and
//! nowhere else. Exit codes: 0 good, 1 the thing asked for failed, 2 usage or configuration.

mod admin;
mod append;
mod bench;
mod chaos;
mod client_options;
mod cluster;
mod configuration;
mod consume;
mod inspect;
mod local_cluster;
mod output;
mod process_time;
mod produce;
mod read;
mod running_node;
mod server;
mod settings;
mod simulate;
mod standalone;
mod stream_options;

use clap::{Args, Parser, Subcommand};

use crate::telemetry::logs::{self, LogFormat};

/// The thing asked for was done.
pub const GOOD: u8 = 0;
/// It was not.
pub const FAILED: u8 = 1;
/// The arguments or the configuration are wrong; nothing was tried.
pub const USAGE: u8 = 2;

/// A distributed log and message broker that speaks Pulsar's protocol.
///
/// Examples:
///   seawall standalone
///   seawall produce my-topic -m hello -n 10
///   seawall consume my-topic -s my-sub -n 10 -p Earliest
#[derive(Debug, Parser)]
#[command(name = "seawall", version, verbatim_doc_comment, disable_help_subcommand = true)]
struct Arguments {
    #[command(flatten)]
    logs: LogOptions,
    #[command(subcommand)]
    command: Command,
}

/// Where logs go is the same for every command.
#[derive(Debug, Args)]
struct LogOptions {
    /// What to log to standard error, for example info,seawall::broker=debug.
    #[arg(
        id = "log_filter",
        long = "log",
        env = "SEAWALL_LOG",
        default_value = "warn",
        global = true
    )]
    filter: String,
    /// How.
    #[arg(
        id = "log_format",
        long = "log-format",
        env = "SEAWALL_LOG_FORMAT",
        default_value = "text",
        global = true
    )]
    format: LogFormatName,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LogFormatName {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a whole node in one process: metadata, storage and broker.
    Standalone(standalone::StandaloneCommand),
    /// Run a node of a cluster with the roles it is given.
    Server(server::ServerCommand),
    /// Run a cluster of processes on this machine.
    Cluster(cluster::ClusterCommand),
    /// Look at a cluster and change it.
    Admin(admin::AdminCommand),
    /// Publish messages.
    Produce(produce::ProduceCommand),
    /// Receive, print and acknowledge messages.
    Consume(consume::ConsumeCommand),
    /// Append records to a stream, by number and fencing token.
    Append(append::AppendCommand),
    /// Print a stream's records by number.
    Read(read::ReadCommand),
    /// Measure against a floor in the same run.
    Bench(bench::BenchCommand),
    /// The floor server of `bench`.
    #[command(hide = true)]
    BenchFloorServer(bench::FloorServerCommand),
    /// Look into data files without changing them.
    Inspect(inspect::InspectCommand),
    /// Hurt a real cluster on this machine and check what it promised.
    Chaos(chaos::ChaosCommand),
    /// The simulator: try to break it, from a seed.
    Sim(Box<simulate::SimulateCommand>),
    /// Check or show the configuration.
    Config(configuration::ConfigCommand),
}

/// Parses the process's arguments and performs the command; the answer is the exit code.
pub fn run() -> u8 {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are not mistakes and go to standard output.
            let code = if error.use_stderr() { USAGE } else { GOOD };
            // Nobody is left to tell when standard output is gone.
            let _ = error.print();
            return code;
        }
    };
    let format = match arguments.logs.format {
        LogFormatName::Text => LogFormat::Text,
        LogFormatName::Json => LogFormat::Json,
    };
    if let Err(error) = logs::start(&arguments.logs.filter, format) {
        output::complain(&error);
        return USAGE;
    }
    match arguments.command {
        Command::Standalone(command) => standalone::standalone(&command),
        Command::Server(command) => server::server(&command),
        Command::Cluster(command) => cluster::cluster(&command),
        Command::Admin(command) => admin::admin(&command),
        Command::Produce(command) => produce::produce(&command),
        Command::Consume(command) => consume::consume(&command),
        Command::Append(command) => append::append(&command),
        Command::Read(command) => read::read(&command),
        Command::Bench(command) => bench::bench(&command),
        Command::BenchFloorServer(command) => bench::serve_floor(&command),
        Command::Inspect(command) => inspect::inspect(&command),
        Command::Chaos(command) => chaos::chaos(&command),
        Command::Sim(command) => simulate::simulate(*command),
        Command::Config(command) => configuration::configuration(&command),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_table_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn usual_command_lines_are_understood() {
        for line in [
            "seawall standalone --data /x --pulsar-port 0 --http-port 0 --grpc-port 0 --listen 127.0.0.1",
            "seawall server --config seawall.toml",
            "seawall server --roles metadata,bookie --metadata a:1,b:2 --rpc-advertised c:3 --rpc-port 0",
            "seawall cluster local --nodes 3 --data /x",
            "seawall chaos --nodes 3 --for 10m --seed 7 --dir /x --faults kill,disk-loss -o json",
            "seawall admin bookies list -o json",
            "seawall admin --admin-url http://b:8080 bookies drain 0123456789abcdef --force",
            "seawall admin topics list public/default",
            "seawall admin topics unload t",
            "seawall admin brokers list",
            "seawall admin metadata members",
            "seawall admin metadata add 4 d:7000 --learner",
            "seawall config show seawall.toml -o json",
            "seawall bench --scenario W1,C4 --rounds 1 -o json",
            "seawall --log debug config check seawall.toml",
            "seawall config show",
            "seawall inspect journal data",
            "seawall inspect entry-log data/ledgers/x -o json",
            "seawall append t -m a -m b --expect 7 --token 3 -k key -p a=b -o json",
            "seawall read t --from 7 -n 3 --grpc a:1,b:2",
            "seawall read t --tail --follow --content-only",
            "seawall produce t -m a,b -n 3 -k key -p a=b -p c=d -r 10 --compression lz4",
            "seawall produce t -f a.bin -f b.bin --url pulsar://other:6650 -o json",
            "seawall sim run --seeds 0..3 --topology swarm --profile storm --jobs 2 --twice",
            "seawall sim run --for 10m --first 7 --junit a.xml --summary b.json",
            "seawall sim replay 42 --topology cluster --profile clock --mutant S8",
            "seawall sim mutants --hunts 5 --seeds 0..100 --only S8,B16 --profile crash",
            "seawall sim mutants --catalogue",
            "seawall sim shrink 42 --topology cluster --profile storm --mutant S8 --budget 5m --jobs 2",
            r#"seawall sim replay 42 --cuts {"strikes":[3,7],"storm_ms":400}"#,
            "seawall sim one 42 --topology standalone --profile swarm",
            "seawall consume t -s sub -n 0 -t key_shared -p earliest --timeout 5s --no-ack",
        ] {
            assert!(Arguments::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
        for line in [
            "seawall",
            "seawall standalone --pulsar-port 70000",
            "seawall server --roles king",
            "seawall cluster local --nodes 0",
            "seawall chaos --nodes 1",
            "seawall bench -o xml",
            "seawall sim run --for 10m --seeds 0..3",
            "seawall sim run --first 7",
            "seawall sim run --first 7 --seeds 0..3",
            "seawall sim run --jobs 0",
            "seawall sim run --for banana",
            "seawall sim shrink 42 --jobs 0",
            "seawall sim replay 42 --profile clock --clock monotonic:drift:99999999999",
            "seawall sim run --profile hail",
            "seawall sim mutants --hunts 0",
            "seawall sim shrink",
            r#"seawall sim replay 42 --cuts {"storms":1}"#,
            "seawall sim replay --topology cluster",
            "seawall read t --from 7 --tail",
            "seawall produce t -p no-equals-sign",
            "seawall consume t",
            "seawall consume t -s sub -t Some",
        ] {
            assert!(Arguments::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
