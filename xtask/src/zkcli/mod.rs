//! `zkcli`: ZooKeeper's own command line against ZooKeeper and against Troth, with what both say compared.

pub mod compare;
pub mod servers;

#[cfg(test)]
mod tests;

use crate::cli::{Arguments, Command, Opt, Report};
use crate::{peers, workspace};
use compare::{Block, blocks, difference, events};
use serde_json::json;
use servers::Servers;
use std::io::Write;
use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::time::{Duration, Instant};

/// The command.
pub const COMMAND: Command = Command {
    name: "zkcli",
    words: "",
    summary: "have ZooKeeper's own command line say the same to ZooKeeper and to Troth",
    details: "
Starts three servers of Apache ZooKeeper 3.9.5 and a local Troth group with a gateway, has ZooKeeperMain carry out a script of
every command that it has against both (xtask/src/zkcli/script.txt), and compares what it prints: it holds where that is equal
but for identifiers and times, and what describes the servers. Watch events, which a thread of their own prints, are
compared by session, everything else by command without regard to the order of its lines. Needs a JDK and `mvn`; what is fetched stays below target/peers.",
    options: &[Opt { name: "--show", value: "", help: "print what both said to every command, equal or not" }],
    run,
};

const SCRIPT: &str = include_str!("script.txt");
/// What is asked for between two commands, so that it is seen where the output of one ends.
const MARK: &str = "/troth-mark";
/// What one session of the script may take.
const SESSION: Duration = Duration::from_secs(120);

/// One session of the script: its name and its commands.
struct Session {
    name: &'static str,
    commands: Vec<&'static str>,
}

fn script() -> Vec<Session> {
    let mut sessions: Vec<Session> = Vec::new();
    for line in SCRIPT.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match (line.strip_prefix("- "), sessions.last_mut()) {
            (Some(name), _) => sessions.push(Session { name, commands: Vec::new() }),
            (None, Some(session)) => session.commands.push(line),
            (None, None) => unreachable!("the script begins with a session"),
        }
    }
    sessions
}

fn run(arguments: &Arguments) -> Result<Report, String> {
    let root = workspace::root();
    let products = workspace::target(&root).join("peers");
    std::fs::create_dir_all(&products).map_err(|why| format!("{}: {why}", products.display()))?;
    let classes = peers::zookeeper(&root, &products)?;
    println!("building troth");
    let troth = servers::built(&root)?;
    let started = [Servers::zookeeper(&classes)?, Servers::troth(&troth)?];
    for one in &started {
        one.wait()?;
        mark(&classes, &one.address)?;
    }
    let (mut compared, mut unequal) = (0, Vec::new());
    for session in script() {
        println!("session '{}'", session.name);
        let mut told = Vec::new();
        for one in &started {
            told.push(blocks(&said(&classes, &one.address, &session.commands)?, &session.commands)?);
        }
        let [theirs, ours] = told.as_mut_slice() else { unreachable!("there are two") };
        compared += 1;
        if let Some(how) = difference(&events(theirs), &events(ours)) {
            println!("watch events of session '{}'\n{how}", session.name);
            unequal.push(format!("{}: its watch events", session.name));
        }
        for ((command, theirs), ours) in session.commands.iter().zip(theirs.iter()).zip(ours.iter()) {
            compared += 1;
            if arguments.flag("--show") {
                print(command, theirs, ours);
            }
            if let Some(how) = difference(theirs, ours) {
                println!("{command}\n{how}");
                unequal.push(format!("{}: {command}", session.name));
            }
        }
    }
    let summary = format!(
        "{} of {compared} comparisons of what ZooKeeperMain prints are equal with Troth and with ZooKeeper 3.9.5, but for identifiers and times",
        compared - unequal.len()
    );
    let json = json!({ "summary": summary, "compared": compared, "unequal": unequal });
    Ok(Report { ok: unequal.is_empty() && compared > 100, summary, json })
}

/// Makes what is asked for between two commands. Servers that have no leader yet do not answer.
pub fn mark(classes: &Path, address: &str) -> Result<(), String> {
    let give_up = Instant::now() + SESSION;
    loop {
        let told = said(classes, address, &[&format!("create {MARK} ======")])?;
        if told.contains(&format!("Created {MARK}")) {
            return Ok(());
        }
        if Instant::now() > give_up {
            return Err(format!("{address} makes no node:\n{told}"));
        }
    }
}

fn print(command: &str, theirs: &Block, ours: &Block) {
    println!("> {command}");
    for (who, block) in [("ZooKeeper", theirs), ("Troth", ours)] {
        for line in block {
            println!("  {who:<10} {line}");
        }
    }
}

/// What the command line prints for these commands in one session, on either stream.
pub fn said(classes: &Path, address: &str, commands: &[&str]) -> Result<String, String> {
    let mut program = Program::new("java");
    program.arg("-cp").arg(format!("{0}/classes:{0}/lib/*", classes.display()));
    // What it logs is none of what it says.
    program.args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-Dzookeeper.client.secure=false"]);
    // Commands that fail end nothing, and both streams come in the order in which they were written.
    program.args(["org.apache.zookeeper.ZooKeeperMain", "-server", address, "-timeout", "30000"]);
    let (mut reads, writes) = std::io::pipe().map_err(|why| why.to_string())?;
    let errors = writes.try_clone().map_err(|why| why.to_string())?;
    program.stdin(Stdio::piped()).stdout(writes).stderr(errors);
    let mut child = program.spawn().map_err(|why| format!("java does not start: {why}"))?;
    // The other ends of the pipe are the child's alone then.
    drop(program);
    let mut words = String::new();
    for command in commands {
        words += &format!("{command}\nget {MARK}\n");
    }
    let mut stdin = child.stdin.take().expect("it is piped");
    let wrote = stdin.write_all(words.as_bytes()).and_then(|()| stdin.write_all(b"quit\n"));
    drop(stdin);
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        std::io::Read::read_to_end(&mut reads, &mut said).map(|_| String::from_utf8_lossy(&said).into_owned())
    });
    let give_up = Instant::now() + SESSION;
    while child.try_wait().map_err(|why| why.to_string())?.is_none() {
        if Instant::now() > give_up {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("a session is not done after {} s", SESSION.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // One that was told to quit before all was read has ended.
    drop(wrote);
    reader.join().map_err(|_| "the reader of its output ended".to_string())?.map_err(|why| why.to_string())
}
