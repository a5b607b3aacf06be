//! `troth status`.

use crate::ask;
use crate::cli::Dir;
use crate::failure::{Failure, NOT_DONE};
use crate::print::{self, note};
use crate::session;
use crate::suggest;
use crate::words::{answering, replicas};
use clap::Args;
use troth_node::Snapshot;
use troth_node::config::{Cluster, Layout};
use troth_types::ReplicaId;

#[derive(Args, Debug)]
#[command(after_help = "\
What a replica says of itself, which nobody else vouches for:
  pid         its process
  view        which turn of leading this is; primary says which replica leads it
  active      whether it works in that view, or waits for a new primary
  votes       whether its word counts, or what it waits for before it does
  executed    the last batch of requests that it executed
  stable      the last of those up to which enough replicas proved to have the same state
  pending     requests that wait to be executed
  suspicions  how often it suspected a primary
  accused     replicas of which it has proof that they broke a rule
  alarm       \"disk full\", or the batch at which its state diverged from the others'
`troth status --json` has more (docs/reference/metrics.md).

Exit code 5 where too few replicas answer to order requests: fewer than f+1 of 2f+1, or
2f+1 of 3f+1.")]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) dir: Dir,
    /// Print the replicas' answers as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The columns of the table.
pub(crate) const COLUMNS: [&str; 13] = [
    "replica",
    "address",
    "pid",
    "view",
    "primary",
    "active",
    "votes",
    "executed",
    "stable",
    "pending",
    "suspicions",
    "accused",
    "alarm",
];

pub(crate) fn run(status: &Status) -> Result<(), Failure> {
    let cluster = session::present(&Layout::new(&status.dir.dir))?;
    let answers = ask::all(&cluster);
    let text = if status.json { print::json(&json(&answers)) + "\n" } else { table(&cluster, &answers) };
    // What the exit code tells does not depend on a reader that has seen enough.
    if let Err(why) = print::output(text.as_bytes())
        && !why.message.is_empty()
    {
        return Err(why);
    }
    let reached = answers.iter().filter(|answer| answer.is_ok()).count();
    if reached < cluster.group.quorum() {
        let problem = format!(
            "{}, and {} are needed: the group cannot order requests\n  mend: `troth doctor` says what brings the others back",
            answering(reached, cluster.group.n()),
            cluster.group.quorum()
        );
        return Err(Failure::new(NOT_DONE, problem));
    }
    let silent: Vec<ReplicaId> =
        cluster.group.all().zip(&answers).filter_map(|(id, answer)| answer.is_err().then_some(id)).collect();
    if let Some(said) = missing(&cluster, &silent)
        && !status.json
    {
        note!("{}", suggest::in_dir(&said, &status.dir.dir));
    }
    Ok(())
}

/// What is said of a group that serves without these replicas, if there are any.
pub(crate) fn missing(cluster: &Cluster, silent: &[ReplicaId]) -> Option<String> {
    let does = match silent.len() {
        0 => return None,
        1 => "does",
        _ => "do",
    };
    let more = match cluster.group.f().saturating_sub(silent.len()) {
        0 => "no other that fails".to_owned(),
        more => format!("{more} more that fail{}", if more == 1 { "s" } else { "" }),
    };
    Some(format!(
        "{} {does} not answer: the group serves, and bears {more}. `troth doctor` says what brings back who has ended.",
        replicas(silent)
    ))
}

fn json(answers: &[Result<Snapshot, String>]) -> serde_json::Value {
    let replicas: Vec<_> = answers
        .iter()
        .map(|answer| match answer {
            Ok(snapshot) => serde_json::json!(snapshot),
            Err(why) => serde_json::json!({ "unreachable": why }),
        })
        .collect();
    serde_json::json!({ "replicas": replicas })
}

/// The table, ending with a line break.
pub(crate) fn table(cluster: &Cluster, answers: &[Result<Snapshot, String>]) -> String {
    let mut rows: Vec<Vec<String>> = vec![COLUMNS.iter().map(|name| (*name).to_owned()).collect()];
    for (index, answer) in answers.iter().enumerate() {
        let mut row = vec![index.to_string(), cluster.replicas[index].address.clone()];
        match answer {
            Ok(snapshot) => row.extend([
                snapshot.pid.to_string(),
                snapshot.view.to_string(),
                snapshot.primary.to_string(),
                if snapshot.active { "yes" } else { "no" }.to_owned(),
                votes(snapshot),
                snapshot.executed.to_string(),
                snapshot.stable.to_string(),
                snapshot.pending.to_string(),
                snapshot.suspicions.to_string(),
                names(&snapshot.accused),
                alarm(snapshot),
            ]),
            Err(why) => row.push(format!("unreachable: {}", print::foreign(why))),
        }
        rows.push(row);
    }
    render(&rows)
}

fn votes(snapshot: &Snapshot) -> String {
    match (snapshot.votes, &snapshot.waits_for) {
        (true, _) => "yes".to_owned(),
        (false, None) => "no".to_owned(),
        (false, Some(what)) => format!("no (waiting for {})", print::foreign(what)),
    }
}

fn alarm(snapshot: &Snapshot) -> String {
    match (snapshot.diverged, snapshot.disk_full) {
        (Some(seq), _) => format!("diverged at {seq}"),
        (None, true) => "disk full".to_owned(),
        (None, false) => "-".to_owned(),
    }
}

fn names(replicas: &[u16]) -> String {
    if replicas.is_empty() {
        return "-".to_owned();
    }
    replicas.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}

pub(crate) fn render(rows: &[Vec<String>]) -> String {
    let full = rows.iter().map(Vec::len).max().unwrap_or(0);
    // The last cell of a shorter row stands in no column.
    let width = |column: usize| {
        let has = |row: &&Vec<String>| row.len() == full || column + 1 < row.len();
        rows.iter().filter(has).map(|row| row[column].chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..full).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}", width = *width)).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}
