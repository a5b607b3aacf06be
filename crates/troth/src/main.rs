//! The troth command.
#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)] // They panic; see print.rs.
#![expect(clippy::disallowed_methods, reason = "a command measures time and waits for processes")]

mod admin;
mod ask;
mod backup;
mod cli;
#[cfg(feature = "demo-adversary")]
mod demo;
mod doctor;
mod failure;
#[cfg(feature = "faults")]
mod faulty_store;
mod gateway;
mod how_to_start;
mod import;
mod init;
mod kv;
mod mistakes;
mod places;
mod print;
mod processes;
mod reach;
mod replica;
mod restore;
mod session;
mod status;
mod suggest;
#[cfg(test)]
mod tests;
mod trusted;
mod trusted_start;
mod up;
mod up_place;
mod users;
mod words;

use cli::Command;
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// The state is millions of small values: see the workspace table.
#[global_allocator]
static ALLOCATOR: troth_allocator::Jemalloc = troth_allocator::Jemalloc;

/// Warnings of all, and the few lines that tell a replica's life.
const DEFAULT_LOG: &str = "warn,troth=info,troth_node=info";

fn main() -> ExitCode {
    let cli = mistakes::parse();
    let wanted = cli.log.as_deref().unwrap_or(DEFAULT_LOG);
    let filter = match EnvFilter::try_new(wanted) {
        Ok(filter) => filter,
        Err(why) => return failure::Failure::usage(format!("--log {wanted}: {why}")).report(),
    };
    let colour = std::io::stderr().is_terminal();
    // A line that cannot be written is lost. Reporting that on standard error would panic, mostly for
    // the same reason, and a full disk under the logs would stop all replicas of a machine at once.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colour)
        .with_writer(std::io::stderr)
        .log_internal_errors(false)
        .init();
    let done = match &cli.command {
        Command::Init(arguments) => init::run(arguments),
        Command::Replica(arguments) => replica::run(arguments, cli.log.as_deref()),
        Command::Trusted(arguments) => trusted::run(arguments),
        Command::Up(arguments) => up::run(arguments),
        Command::Kv(arguments) => kv::run(arguments),
        Command::Gateway(arguments) => gateway::run(arguments),
        Command::Import(arguments) => import::run(arguments),
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Backup(arguments) => backup::run(arguments),
        Command::Restore(arguments) => restore::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Admin(arguments) => admin::run(arguments),
        #[cfg(feature = "demo-adversary")]
        Command::Demo(arguments) => demo::run(arguments),
        #[cfg(not(feature = "demo-adversary"))]
        Command::Demo(_) => Err(failure::Failure::usage(
            "this build has no replicas that lie, as it should be for one that serves; `make demo` builds one that has, target/demo/troth, \
             and shows it with minbft; then `target/demo/troth demo --protocol a2m-pbft-e`, for example, works, too",
        )),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.in_dir(cli.command.dir()).report(),
    }
}
