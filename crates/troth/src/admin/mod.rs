//! `troth admin`: changes of the group's configuration, each an ordered operation of the operator.
//!
//! Files first, then the order: whatever is interrupted may be repeated, and until the change is ordered the
//! group goes on as before.

mod arguments;
mod clients;
mod readmit;
pub(crate) mod renewal;
mod replace;
pub(crate) mod room;
mod show;

pub(crate) use arguments::{Action, Admin};

use crate::failure::{Failure, NO, NOT_DONE, UNKNOWN};
use crate::session::{Patience, Session};
use crate::suggest;
use crate::up::again;
use troth_node::config::{Cluster, Known, Layout};
use troth_types::{Change, ChangeAnswer, ComponentKey, Configuration, Member, Refused, ReplicaId, Seq, Wire};

pub(crate) fn run(arguments: &Admin) -> Result<(), Failure> {
    let layout = Layout::new(&arguments.dir.dir);
    let cluster = Cluster::load(&layout.cluster())?;
    let known = Known::load(&layout, &cluster)?;
    let renews = cluster.protocol.renews_components();
    match &arguments.action {
        Action::Readmit { .. } if renews => {}
        action if !cluster.protocol.readmits() && changes_replicas(action) => {
            return Err(no_replacements(&cluster, action));
        }
        _ => {}
    }
    let wait = Patience::asked(arguments.wait);
    let mut operator = Operator { layout, cluster, known, seen_at: Seq(0), wait, json: arguments.json };
    match &arguments.action {
        Action::Show => {
            let (at, configuration) = operator.order(&Change::Show)?;
            show::print(&operator, at, &configuration)
        }
        Action::Readmit { replica } => readmit::readmit(&mut operator, ReplicaId(*replica)),
        Action::Replace { replica, address, http, out, shared_key_from } => {
            let place = replace::Place { address, http: http.as_deref() };
            let out = Layout::new(out);
            replace::replace(&mut operator, ReplicaId(*replica), &place, &out, shared_key_from.as_deref())
        }
        Action::Rekey { replica, address, http } => {
            let place = address.as_deref().map(|address| replace::Place { address, http: http.as_deref() });
            replace::rekey(&mut operator, ReplicaId(*replica), place.as_ref())
        }
        Action::AddClient { client, out } => clients::add(&mut operator, *client, out.as_deref()),
        Action::RemoveClient { client } => clients::remove(&mut operator, *client),
    }
}

/// Whether an action gives a replica another component, host or key.
fn changes_replicas(action: &Action) -> bool {
    match action {
        Action::Readmit { .. } | Action::Replace { .. } | Action::Rekey { .. } => true,
        Action::Show | Action::AddClient { .. } | Action::RemoveClient { .. } => false,
    }
}

/// A replica without a component has no epoch that could end: nothing would make what it promised before void.
pub(crate) fn no_replacements(cluster: &Cluster, action: &Action) -> Failure {
    let again = match action {
        Action::Readmit { replica } if !cluster.group.contains(ReplicaId(*replica)) => {
            return Failure::no_such_replica(&cluster.group, "--replica", ReplicaId(*replica));
        }
        // Who wants one readmitted wants it back, which may take no more than a start.
        Action::Readmit { replica } => {
            let again = again(cluster, ReplicaId(*replica), true);
            let ends =
                "One that ends with exit code 3 has lost its log, or what it did last: leave it stopped.";
            match again.contains("starts it again") {
                true => format!("{again} {ends} T"),
                false => again + " T",
            }
        }
        _ => "t".to_owned(),
    };
    Failure::usage(format!(
        "the protocol of this group is {}, whose replicas {}, and this version changes neither their hosts nor their \
         keys\n  mend: {again}he group bears {} for good; where that is not enough, or to move it to \
         other machines: `troth backup`, then `troth restore` into a new group",
        cluster.protocol.name(),
        match (cluster.protocol.renews_components(), cluster.protocol.has_components()) {
            (true, _) => "can be given another trusted component (`troth admin readmit`) and nothing else",
            (false, true) => "cannot begin a new epoch of their trusted components yet",
            (false, false) => "have no trusted component to readmit or replace",
        },
        match cluster.group.f() {
            1 => "one replica that is gone".to_owned(),
            f => format!("{f} replicas that are gone"),
        }
    ))
}

/// Who orders changes, and what is known of the group.
struct Operator {
    layout: Layout,
    /// As the group began.
    cluster: Cluster,
    /// As it is now.
    known: Known,
    /// The batch as of which that is.
    seen_at: Seq,
    wait: Patience,
    json: bool,
}

impl Operator {
    /// Has a change ordered, remembers the configuration that enough replicas answer, and gives it with the batch.
    fn order(&mut self, change: &Change) -> Result<(Seq, Configuration), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|why| Failure::system("cannot start", &why))?;
        let present = self.known.present(&self.cluster);
        let answer = runtime.block_on(async {
            let session = Session::open_operator(&self.layout, &present, self.wait).await?;
            let answer = session.client.execute(change.to_wire()).await;
            session.client.clone().close().await;
            answer.map_err(|why| {
                let mut failure = Failure::from(why);
                if failure.code == UNKNOWN {
                    failure.message += "\n  mend: repeat the command; it goes on from what it finds";
                }
                failure
            })
        })?;
        match ChangeAnswer::from_wire(&answer) {
            Ok(ChangeAnswer::Done(at, configuration)) => {
                self.seen_at = at;
                self.known.configuration = configuration.clone().into();
                self.known.save(&self.layout, &self.cluster)?;
                Ok((at, configuration))
            }
            Ok(ChangeAnswer::Refused(why)) => {
                Err(Failure::new(NO, format!("the group refuses: {}", crate::print::foreign(&why))))
            }
            Err(why) => {
                let problem =
                    format!("the group answers what is no configuration ({why}); is it of this version?");
                Err(Failure::new(NOT_DONE, problem))
            }
        }
    }

    /// The present configuration's word on a replica that shall have another component, before anything is
    /// touched for its sake: a replica that is refused must still be able to go on as it is. Where only too few
    /// batches were ordered since others were admitted, has them ordered.
    fn admissible(&mut self, replica: ReplicaId) -> Result<Member, Failure> {
        let member = self.member(replica)?;
        match self.would_admit(replica, &member) {
            Ok(()) => return Ok(member),
            Err(Refused::TooMany { until }) => room::make(self, replica, until)?,
            Err(why) => return Err(untouched(&why)),
        }
        let member = self.member(replica)?;
        self.would_admit(replica, &member).map_err(|why| untouched(&why))?;
        Ok(member)
    }

    /// The change that gives a replica another component, on the host that it has, in the configuration that is known here.
    fn admission(&self, replica: ReplicaId, epoch: u64, component: ComponentKey) -> Change {
        match self.cluster.protocol.renews_components() {
            true => {
                let shown = self.known.configuration.digest();
                Change::Renew { replica, epoch, component, shown }
            }
            false => Change::Admit { replica, epoch, component, host: None },
        }
    }

    /// Has a replica given another component, on the host that it has.
    fn admit(
        &mut self,
        replica: ReplicaId,
        epoch: u64,
        component: ComponentKey,
    ) -> Result<(Seq, Configuration), Failure> {
        if self.cluster.protocol.renews_components() {
            return renewal::renew(&mut |change| self.order(change), replica, epoch, component);
        }
        self.order(&Change::Admit { replica, epoch, component, host: None })
    }

    /// What the group would say to another component of a replica now.
    fn would_admit(&self, replica: ReplicaId, member: &Member) -> Result<(), Refused> {
        let (settling, faults) = (self.cluster.settling(), self.cluster.group.f());
        let admission = member.admission();
        let epoch = admission.epoch.saturating_add(1);
        let change = self.admission(replica, epoch, admission.component);
        (*self.known.configuration).clone().apply(&change, self.seen_at, settling, faults)
    }

    /// The present configuration's word on a replica.
    fn member(&mut self, replica: ReplicaId) -> Result<Member, Failure> {
        let (_, configuration) = self.order(&Change::Show)?;
        let none = || Failure::no_such_replica(&self.cluster.group, "--replica", replica);
        configuration.member(replica).cloned().ok_or_else(none)
    }

    /// Tells what was done and what to do next, or shows the configuration where that was asked for.
    fn tell(&self, at: Seq, configuration: &Configuration, words: &[String]) -> Result<(), Failure> {
        if self.json {
            return show::print(self, at, configuration);
        }
        for line in words {
            crate::print::say!("{}", suggest::in_dir(line, self.layout.root()));
        }
        Ok(())
    }
}

fn untouched(why: &Refused) -> Failure {
    Failure::new(NO, format!("the group refuses: {why}; nothing was touched"))
}
