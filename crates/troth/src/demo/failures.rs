//! The steps in which a replica falls into the wrong hands, is replaced, and everything loses its power.

use super::model::wrong;
use super::stage::Stage;
use super::steps::{KEYS, alone, compare, describe, is_result, kill_primary, overwrite, read_all};
use crate::failure::{Failure, NOT_DONE};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use troth_kv::Answer;
use troth_types::{ReplicaId, ReplyBody, Wire};

/// How long a replica may take to catch up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(50);

/// Starts the killed replica again as an adversary, and works beside it.
pub(crate) async fn come_back_lying(stage: &mut Stage) -> Result<String, Failure> {
    let liar =
        stage.gone().ok_or_else(|| Failure::new(NOT_DONE, "no replica is down, so none can come back"))?;
    stage.restart(liar, true)?;
    let honest = stage.correct()[0];
    stage
        .until("the others hear the replica that came back", |now| {
            now.iter().all(|snapshot| snapshot.peers.contains(&liar.0))
        })
        .await?;
    overwrite(stage, "under the liar's eyes").await?;
    read_all(stage, stage.model.keys()).await?;
    let key = "key/0007";
    let truth = stage.model.get(key).cloned().ok_or_else(|| wrong(format!("{key} was never written")))?;
    let expected = Answer::Value { version: truth.0, value: truth.1 }.to_wire();
    // Where answers prove histories, a read without a nonce has none.
    let manners = if stage.cluster.shared_history().is_none() {
        let said = once_it_answers(stage, honest, key).await?;
        stage
            .model
            .check(is_result(&said, &expected), || format!("replica {} alone says {said:?}", honest.0))?;
        "tells the truth"
    } else {
        let silent = alone(stage, honest, key).await.is_err();
        stage.model.check(silent, || format!("replica {} answers a read alone", honest.0))?;
        "says that it takes more than one"
    };
    let lie = once_it_answers(stage, liar, key).await?;
    if is_result(&lie, &expected) {
        return Err(Failure::new(NOT_DONE, "the liar told the truth, so this shows nothing"));
    }
    Ok(format!(
        "{KEYS} writes and all reads right. Asked alone for {key}, replica {} {manners} and replica {} answers {}",
        honest.0,
        liar.0,
        describe(&lie)
    ))
}

/// What a replica alone says, once it has caught up with what it missed; before, it answers no reads.
async fn once_it_answers(stage: &Stage, replica: ReplicaId, key: &str) -> Result<ReplyBody, Failure> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match alone(stage, replica, key).await {
            Err(_) if Instant::now() < give_up => tokio::time::sleep(LOOK).await,
            answer => return answer,
        }
    }
}

/// Has the liar's component replaced, starts a fresh replica, and lets it take another one's place.
pub(crate) async fn replace_the_liar(stage: &mut Stage) -> Result<String, Failure> {
    let liar = stage.liar.ok_or_else(|| Failure::new(NOT_DONE, "nobody lies, so nobody is replaced"))?;
    stage.kill(liar)?;
    let began = Instant::now();
    readmit(stage, liar).await?;
    stage.restart(liar, false)?;
    stage
        .until("the fresh replica votes", |now| now.iter().all(|snapshot| snapshot.votes && snapshot.active))
        .await?;
    let took = began.elapsed().as_secs_f64();
    let seen = kill_primary(stage).await?;
    let killed = stage.gone().ok_or_else(|| Failure::new(NOT_DONE, "no replica was killed"))?;
    stage.restart(killed, false)?;
    stage
        .until("the killed replica has caught up", |now| {
            now.iter().all(|snapshot| snapshot.peers.len() == 2 && snapshot.active)
        })
        .await?;
    Ok(format!("replica {} votes again {took:.1} s after its removal. Then {seen}", liar.0))
}

/// `troth admin readmit`, as an operator would type it.
async fn readmit(stage: &Stage, replica: ReplicaId) -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(|why| Failure::system("cannot find this program", &why))?;
    let mut command = Command::new(program);
    command.args(["admin", "readmit", "--replica", &replica.0.to_string(), "--dir"]).arg(stage.layout.root());
    command.stdin(Stdio::null());
    let ended = tokio::task::spawn_blocking(move || command.output())
        .await
        .map_err(|_| Failure::new(NOT_DONE, "the operator's command was dropped"))?
        .map_err(|why| Failure::system("cannot run `troth admin readmit`", &why))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(Failure::new(NOT_DONE, format!("`troth admin readmit` failed:\n{}", said.trim_end())))
}

/// Kills everything, starts it again and compares the whole store.
pub(crate) async fn lose_power(stage: &mut Stage) -> Result<String, Failure> {
    let took = stage.power_off_and_on().await?;
    let seen = compare(stage).await?;
    Ok(format!("all served again {took:.1} s after the start. {seen}"))
}
