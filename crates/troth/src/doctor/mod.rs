//! `troth doctor`: what this machine lacks of what a replica needs, and what to do about it.
//!
//! A finding is `ok`, `warn` (it works, and less is promised or it is slower than it could be) or `fail` (it
//! will not work, or something that the promises rest on is not so). Nothing is changed but for one file that is written and
//! removed again to measure the disk.

pub(crate) mod clocks;
pub(crate) mod cluster;
pub(crate) mod disk;
mod files;
pub(crate) mod isolation;
pub(crate) mod kernel;

use crate::cli::Dir;
use crate::failure::{Failure, NO};
use crate::print;
use crate::suggest;
use clap::Args;
use std::fmt;
use troth_node::config::{Cluster, ConfigError, Known, Layout};
use troth_types::ReplicaId;

#[derive(Args, Debug)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) dir: Dir,
    /// Print the findings as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Ok,
    Warn,
    Fail,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        })
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) subject: &'static str,
    pub(crate) state: State,
    pub(crate) said: String,
    /// What to do; nothing where all is well.
    pub(crate) mend: String,
}

impl Finding {
    pub(crate) fn ok(subject: &'static str, said: impl Into<String>) -> Self {
        Self { subject, state: State::Ok, said: said.into(), mend: String::new() }
    }

    pub(crate) fn warn(subject: &'static str, said: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { subject, state: State::Warn, said: said.into(), mend: mend.into() }
    }

    pub(crate) fn fail(subject: &'static str, said: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { subject, state: State::Fail, said: said.into(), mend: mend.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<4}  {:<12}  {}", self.state, self.subject, print::foreign(&self.said))?;
        if self.mend.is_empty() { Ok(()) } else { write!(f, "; mend: {}", self.mend) }
    }
}

pub(crate) fn run(doctor: &Doctor) -> Result<(), Failure> {
    let layout = Layout::new(&doctor.dir.dir);
    let cluster = Cluster::load(&layout.cluster());
    let home = cluster.as_ref().map(|cluster| cluster.trusted_home).unwrap_or_default();
    let mut findings = kernel::look(home);
    findings.extend(clocks::own());
    match cluster {
        Err(why) => findings.push(unusable(why)),
        Ok(cluster) => {
            let here = here(&layout, &cluster);
            findings.extend(files::look(&layout, &cluster, &here));
            findings.extend(isolation::look(&layout, &cluster, &here));
            findings.extend(disk::look(&layout, &cluster, &here));
            // Who is to be reached are those who have their places now.
            match Known::load(&layout, &cluster) {
                Ok(known) => findings.extend(cluster::look(&layout, &known.present(&cluster), &here)),
                Err(why) => {
                    findings.push(unusable(why));
                    findings.extend(cluster::look(&layout, &cluster, &here));
                }
            }
        }
    }
    for finding in &mut findings {
        finding.said = suggest::in_dir(&finding.said, &doctor.dir.dir);
        finding.mend = suggest::in_dir(&finding.mend, &doctor.dir.dir);
    }
    tell(&findings, doctor.json)?;
    let failed = findings.iter().filter(|finding| finding.state == State::Fail).count();
    if failed > 0 {
        return Err(Failure::new(NO, if doctor.json { String::new() } else { format!("{failed} failed") }));
    }
    Ok(())
}

/// A file that says nothing as it is.
fn unusable(why: ConfigError) -> Finding {
    Finding::fail("cluster", why.said(), why.mend)
}

/// The replicas whose directories are on this machine.
fn here(layout: &Layout, cluster: &Cluster) -> Vec<ReplicaId> {
    cluster.group.all().filter(|id| layout.replica(*id).is_dir()).collect()
}

fn tell(findings: &[Finding], json: bool) -> Result<(), Failure> {
    let text = if json {
        let checks: Vec<_> = findings
            .iter()
            .map(|finding| {
                serde_json::json!({
                    "subject": finding.subject,
                    "state": finding.state.to_string(),
                    "said": finding.said,
                    "mend": finding.mend,
                })
            })
            .collect();
        let ok = findings.iter().all(|finding| finding.state != State::Fail);
        print::json(&serde_json::json!({ "ok": ok, "checks": checks })) + "\n"
    } else {
        findings.iter().map(|finding| format!("{finding}\n")).collect()
    };
    // What the exit code tells does not depend on a reader that has seen enough.
    match print::output(text.as_bytes()) {
        Err(why) if !why.message.is_empty() => Err(why),
        _ => Ok(()),
    }
}

/// A small file of the kernel's or the system's as text.
fn text(path: &str) -> Option<String> {
    use std::io::Read;
    const MOST: u64 = 1 << 16;
    let mut bytes = Vec::new();
    std::fs::File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut bytes)).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}
