//! Room for one more replica that settles: as many as may fail were admitted lately, and another one is admitted
//! from a later batch on. A group that nobody uses does not get there by itself once they vote, so operations
//! are ordered for it that change nothing.

use super::Operator;
use crate::ask;
use crate::failure::{Failure, NO};
use crate::print::{self, note};
use crate::session::Session;
use std::time::{Duration, Instant};
use troth_node::config::hex;
use troth_types::{Change, ChangeAnswer, Configuration, Refused, ReplicaId, Seq, Wire};

/// Between two lines that tell how far it is.
const TELL: Duration = Duration::from_secs(1);

/// Has the group reach the batch from which on `wanted` may be admitted.
///
/// # Errors
/// The group's refusal, with nothing touched: where one that was admitted lately does not vote, as the batches
/// would only end its grace and another admission all progress; and where it takes longer than may be waited.
pub(super) fn make(operator: &mut Operator, wanted: ReplicaId, until: Seq) -> Result<(), Failure> {
    let settling = operator.cluster.settling();
    for replica in awaited(&operator.known.configuration, wanted, operator.seen_at, until, settling) {
        if let Err(why) = votes(operator, replica) {
            return Err(refusal(
                until,
                &format!(
                    "replica {0} was admitted lately, and {why}; see that it runs and votes (`troth status`), and repeat this",
                    replica.0
                ),
            ));
        }
    }
    note!(
        "Replicas that were admitted lately vote; the next may be admitted from batch {} on, and the group is at {}. Orders \
         operations that change nothing until then.",
        until.0,
        operator.seen_at.0
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::system("cannot start", &why))?;
    operator.seen_at = runtime.block_on(bring_on(operator, until))?;
    Ok(())
}

/// The replicas beside `wanted` whose admission is in the way until that batch.
pub(crate) fn awaited(
    configuration: &Configuration,
    wanted: ReplicaId,
    now: Seq,
    until: Seq,
    settling: u64,
) -> Vec<ReplicaId> {
    let settles = |at: Seq| Seq(at.0.saturating_add(settling));
    let members = (0..).map(ReplicaId).zip(configuration.members());
    members
        .filter(|(replica, member)| {
            let at = member.admission().at;
            *replica != wanted && at > Seq(0) && settles(at) > now && settles(at) <= until
        })
        .map(|(replica, _)| replica)
        .collect()
}

/// Whether a replica says that it votes with the component that the group has admitted; else what it does.
fn votes(operator: &Operator, replica: ReplicaId) -> Result<(), String> {
    let present = operator.known.present(&operator.cluster);
    let Some(http) = &present.replica(replica).http else {
        return Err("it has no http address known here by which to see whether it votes".to_owned());
    };
    let says = ask::one(http)
        .map_err(|why| format!("does not say at {http} whether it votes ({})", print::foreign(&why)))?;
    let admitted = operator.known.configuration.member(replica).map(|member| member.admission().epoch);
    if says.group != hex::encode(&operator.cluster.group.id().0) || says.replica != replica.0 {
        return Err(format!("somebody else answers at {http}"));
    }
    if Some(says.epoch) != admitted {
        return Err(format!("runs with a component of epoch {}, which does not count", says.epoch));
    }
    if !says.votes {
        return Err("does not vote yet".to_owned());
    }
    Ok(())
}

/// Orders one after the other, so that each is a batch of its own. Gives the number reached.
async fn bring_on(operator: &Operator, until: Seq) -> Result<Seq, Failure> {
    let give_up = Instant::now() + operator.wait.answer;
    let present = operator.known.present(&operator.cluster);
    let session = Session::open_operator(&operator.layout, &present, operator.wait).await?;
    let (mut reached, mut told) = (operator.seen_at, Instant::now());
    let nothing = Change::Show.to_wire();
    while reached < until {
        let left = give_up.saturating_duration_since(Instant::now());
        let Ok(answer) = tokio::time::timeout(left, session.client.execute(nothing.clone())).await else {
            let waited = operator.wait.answer.as_secs();
            let why = format!(
                "after {waited} s the group is at {}; repeat this, or wait longer (--wait)",
                reached.0
            );
            return Err(refusal(until, &why));
        };
        if let Ok(ChangeAnswer::Done(at, _)) = ChangeAnswer::from_wire(&answer?) {
            reached = at;
        }
        if told.elapsed() >= TELL {
            told = Instant::now();
            note!("batch {} of {}", reached.0, until.0);
        }
    }
    session.client.clone().close().await;
    Ok(reached)
}

fn refusal(until: Seq, why: &str) -> Failure {
    let refused = Refused::TooMany { until };
    Failure::new(NO, format!("the group refuses: {refused}; nothing was touched\n  mend: {why}"))
}
