//! Running other programs within a time limit, with what they print kept.

use crate::cli::Report;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Lines of output kept per run; enough for every test result of the workspace.
const KEPT_LINES: usize = 20_000;
/// How long after the end of a program its pipes are still read: a grandchild may hold them open.
const GRACE: Duration = Duration::from_secs(2);
/// How often a long run says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Exit(i32),
    /// By a signal.
    Signal(i32),
    /// It was killed with all its children when its time was over.
    TimedOut,
}

impl Ending {
    /// Whether the program ended well.
    pub fn good(self) -> bool {
        self == Self::Exit(0)
    }

    /// For people.
    pub fn describe(self) -> String {
        match self {
            Self::Exit(code) => format!("exit {code}"),
            Self::Signal(signal) => format!("signal {signal}"),
            Self::TimedOut => "over its time limit".to_string(),
        }
    }
}

/// A finished run.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub ending: Ending,
    /// How long it took.
    pub seconds: f64,
    /// The last lines on standard output.
    pub stdout: Vec<String>,
    /// The last lines on either stream, in the order of arrival.
    pub all: Vec<String>,
}

impl Ran {
    /// The last line on standard output that is not empty.
    pub fn last_line(&self) -> &str {
        self.stdout.iter().rev().map(|line| line.trim()).find(|line| !line.is_empty()).unwrap_or("")
    }

    /// The last `count` lines of everything.
    pub fn tail(&self, count: usize) -> String {
        self.all[self.all.len().saturating_sub(count)..].join("\n")
    }

    /// The last line on standard output as a JSON object, if it is one.
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_str(self.last_line()).ok().filter(serde_json::Value::is_object)
    }
}

/// Runs a program to its end or to the limit. `alive` is called every half minute with the time so
/// far and the newest line.
pub fn run(
    command: &mut Command,
    limit: Duration,
    alive: &mut dyn FnMut(Duration, &str),
) -> Result<Ran, String> {
    run_heard(command, limit, alive, &mut |_| {})
}

/// As [`run`]; `hear` is called with every line on standard output as it comes.
fn run_heard(
    command: &mut Command,
    limit: Duration,
    alive: &mut dyn FnMut(Duration, &str),
    hear: &mut dyn FnMut(&str),
) -> Result<Ran, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|why| format!("'{name}' does not start: {why}"))?;
    let (send, lines) = mpsc::channel();
    read_lines(child.stdout.take().expect("it is piped"), true, send.clone());
    read_lines(child.stderr.take().expect("it is piped"), false, send);
    let (mut stdout, mut all) = (VecDeque::new(), VecDeque::new());
    let mut ended: Option<(Ending, Instant)> = None;
    let mut last_beat = started;
    loop {
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok((is_stdout, line)) => {
                if is_stdout {
                    hear(&line);
                    keep(&mut stdout, line.clone());
                }
                keep(&mut all, line);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                if ended.is_none() {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
        if let Some((ending, at)) = ended {
            let drained = matches!(
                lines.try_recv().map(|(is_stdout, line)| {
                    if is_stdout {
                        hear(&line);
                        keep(&mut stdout, line.clone());
                    }
                    keep(&mut all, line);
                }),
                Err(mpsc::TryRecvError::Disconnected)
            );
            if drained || at.elapsed() > GRACE {
                let seconds = at.duration_since(started).as_secs_f64();
                return Ok(Ran { ending, seconds, stdout: stdout.into(), all: all.into() });
            }
            continue;
        }
        if let Some(status) = child.try_wait().map_err(|why| format!("'{name}': {why}"))? {
            let ending = match (status.code(), status.signal()) {
                (Some(code), _) => Ending::Exit(code),
                (None, signal) => Ending::Signal(signal.unwrap_or(0)),
            };
            ended = Some((ending, Instant::now()));
        } else if started.elapsed() > limit {
            end_with_children(&mut child);
            ended = Some((Ending::TimedOut, Instant::now()));
        } else if last_beat.elapsed() > HEARTBEAT {
            last_beat = Instant::now();
            alive(started.elapsed(), all.back().map_or("", String::as_str));
        }
    }
}

/// Runs a program, lets its lines be seen as they come, and makes of the last one, which is a JSON object, the
/// report: `summary` in it is the last line for people, `ok` whether what the program checks holds.
pub fn report(command: &mut Command, limit: Duration) -> Result<Report, String> {
    let ran = run_heard(command, limit, &mut |_, _| {}, &mut |line| {
        // The result on the last line is for the report, which has the summary too.
        if !line.starts_with('{') {
            println!("{line}");
        }
    })?;
    let Some(json) = ran.json() else {
        return Err(format!("no result ({}):\n{}", ran.ending.describe(), ran.tail(20)));
    };
    let summary = json["summary"].as_str().unwrap_or_default().to_string();
    Ok(Report { ok: ran.ending.good() && json["ok"] == true, summary, json })
}

/// Runs a program whose output is short and returns its standard output, or an error with what it
/// said.
pub fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output =
        command.stdin(Stdio::null()).output().map_err(|why| format!("'{name}' does not start: {why}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("'{name}' failed ({}): {}", output.status, crate::cli::shorten(&said, 2000)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn keep(lines: &mut VecDeque<String>, line: String) {
    if lines.len() == KEPT_LINES {
        lines.pop_front();
    }
    lines.push_back(line);
}

fn read_lines(from: impl Read + Send + 'static, is_stdout: bool, to: mpsc::Sender<(bool, String)>) {
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut bytes = Vec::new();
        while from.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
            let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_string();
            if to.send((is_stdout, line)).is_err() {
                return;
            }
            bytes.clear();
        }
    });
}

/// Ends a program and everything it started. The children stay in our process group, so that Ctrl-C
/// in a terminal reaches them too; hence they are found through `/proc`.
fn end_with_children(child: &mut Child) {
    let family = descendants(child.id());
    let _ = child.kill();
    let ids: Vec<String> = family.iter().map(u32::to_string).collect();
    if !ids.is_empty() {
        let _ = Command::new("kill").arg("-KILL").args(ids).stderr(Stdio::null()).status();
    }
    let _ = child.wait();
}

/// The ids of all processes below `root`.
fn descendants(root: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for id in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // The name in parentheses may hold anything; the parent is the second field after it.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parents.extend(parent.map(|parent: u32| (id, parent)));
    }
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
        next += 1;
    }
    found.split_off(1)
}
