//! What a mixed group goes through.

use super::group::{Group, N};
use super::load::Written;
use serde_json::{Value, json};
use std::path::Path;

/// Writes of a step: above the 64 batches of a checkpoint's interval even where some share a batch.
const SOME: usize = 160;
/// Writes that leave a replica a whole window (256 batches) behind.
const MANY: usize = 500;

/// Runs a group whose replica `odd` is of the old build through all steps; what was seen.
pub fn run(new: &Path, old: &Path, odd: usize) -> Result<Value, String> {
    let mut group = Group::start(new, old, odd)?;
    let mut written = Written::default();
    let mut stable = 0;

    written.write(&group, "load", SOME)?;
    stable = together(&group, "after the first load", stable)?;
    spoken(&group)?;
    println!("  load and a common checkpoint at batch {stable}");

    let view = change_view(&mut group, &mut written)?;
    written.write(&group, "new-view", SOME)?;
    stable = together(&group, "after the view change", stable)?;
    println!("  view {view}, load in it, and a common checkpoint at batch {stable}");

    let transfers = fall_behind(&group, &mut written)?;
    stable = together(&group, "after a transfer", stable)?;
    println!("  the old replica stood still, caught up by {transfers} transfer(s), checkpoint at {stable}");

    // Not the old one: it kept nothing, so it may not start again.
    let other = (odd + 1) % N;
    group.kill(other);
    written.write(&group, "without", SOME)?;
    group.launch(other)?;
    written.write(&group, "again", SOME)?;
    stable = together(&group, "after a restart", stable)?;
    println!(
        "  replica {other} of today's was killed, missed writes and started again, checkpoint at {stable}"
    );

    let keys = written.check(&group)?;
    let accused =
        group.status().iter().any(|replica| replica["accused"].as_array().is_none_or(|all| !all.is_empty()));
    if accused {
        return Err(format!("a replica accuses another: {}", Value::Array(group.status())));
    }
    println!("  every acknowledged write is there ({keys} keys), and nobody is accused");
    Ok(json!({ "old_replica": odd, "view": view, "stable": stable, "transfers": transfers, "keys": keys }))
}

fn number(replica: &Value, field: &str) -> u64 {
    replica[field].as_u64().unwrap_or(0)
}

/// Waits until all have executed the same and share a stable checkpoint above an earlier one; its number.
fn together(group: &Group, when: &str, above: u64) -> Result<u64, String> {
    let mut stable = 0;
    group.until(&format!("all share a checkpoint above {above} {when}"), |status| {
        stable = number(&status[0], "stable");
        let same = |field| status.iter().all(|replica| number(replica, field) == number(&status[0], field));
        stable > above && same("stable") && same("executed") && status.iter().all(|one| one["active"] == true)
    })?;
    // The others make a checkpoint stable without a replica whose state differs, and it only says so.
    match group.error() {
        Some(line) => Err(format!("{when}: {line}")),
        None => Ok(stable),
    }
}

/// Whether today's replicas know what the old one speaks, and take it for no error.
fn spoken(group: &Group) -> Result<(), String> {
    for (id, replica) in group.status().iter().enumerate().filter(|(id, _)| *id != group.odd) {
        let version = number(&replica["versions"], &group.odd.to_string());
        let unknown = number(&replica["counters"], "unknown");
        let malformed = number(&replica["counters"], "malformed");
        // A build of today's in the old one's place says its newest version.
        if version == 0 || unknown + malformed > 0 {
            return Err(format!(
                "replica {id} speaks version {version} with the old one and has {unknown} unknown and {malformed} malformed messages"
            ));
        }
    }
    Ok(())
}

/// Takes the primary away until the others have a new one; the view in which all work then.
fn change_view(group: &mut Group, written: &mut Written) -> Result<u64, String> {
    let old_is_primary = group.odd == 0;
    if old_is_primary {
        // Killed, it could not come back: it kept nothing.
        group.signal(0, "STOP")?;
    } else {
        group.kill(0);
    }
    // Only with the other two, so the old one's votes count where it is one of them.
    written.write(group, "change", SOME)?;
    if old_is_primary {
        group.signal(0, "CONT")?;
    } else {
        group.launch(0)?;
    }
    let mut view = 0;
    group.until("all work in one later view", |status| {
        view = number(&status[0], "view");
        view > 0 && status.iter().all(|one| number(one, "view") == view && one["active"] == true)
    })?;
    Ok(view)
}

/// Stops the old replica while the others go a whole window further; how many transfers it then took.
fn fall_behind(group: &Group, written: &mut Written) -> Result<u64, String> {
    let of_old = |field: &str| number(&group.status()[group.odd]["counters"], field);
    let before = of_old("transfers");
    group.signal(group.odd, "STOP")?;
    let result = written.write(group, "behind", MANY);
    group.signal(group.odd, "CONT")?;
    result?;
    group.until("the old replica has fetched the state", |status| {
        number(&status[group.odd]["counters"], "transfers") > before
    })?;
    Ok(of_old("transfers") - before)
}
