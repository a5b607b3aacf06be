//! The operator, who brings replicas back whose machine was lost or is not trusted any more.

use super::client::Sending;
use crate::Options;
use std::collections::VecDeque;
use std::sync::Arc;
use troth_auth::Signer;
use troth_client::{ClientCore, Config, Output, Proven, Ticket, Timing};
use troth_types::{
    Change, ChangeAnswer, ComponentKey, Configuration, Group, Limits, OPERATOR, ReplicaId, Seq, Time,
    ToClient, Wire,
};

/// Virtual microseconds until a refused change is tried again.
const PATIENCE: u64 = 100_000;

/// Virtual microseconds that the operator waits for the outcome of a renewal where another replica waits, too: then he turns to
/// that one, whatever may come of what he has signed.
const GIVES_UP_AFTER: u64 = 150_000;

/// What was submitted for the sake of an admission.
struct UnderWay {
    ticket: Ticket,
    wanted: (ReplicaId, u64),
    change: Change,
    since: u64,
}

impl UnderWay {
    /// Whether a configuration is named in what the operator has signed.
    fn is_renewal(&self) -> bool {
        matches!(self.change, Change::Renew { .. })
    }
}

/// The operator.
pub struct Operator {
    core: ClientCore,
    /// The replicas that shall go on with components of these epochs.
    waiting: VecDeque<(ReplicaId, u64)>,
    /// Whether they keep their logs: then each admission is announced, and names the configuration that the answer shows.
    renews: bool,
    /// The admission that is under way, and not before when it is tried again.
    under_way: Option<UnderWay>,
    not_before: u64,
    /// When it wants to be woken, as scheduled.
    pub wake_at: Option<u64>,
}

impl Operator {
    /// An operator with nothing to do.
    #[must_use]
    pub fn new(
        options: &Options,
        group: Group,
        limits: Limits,
        signer: Arc<dyn Signer>,
        history: Option<Proven>,
        renews: bool,
    ) -> Self {
        let timing = Timing {
            resend_first: options.resend_first,
            resend_longest: 400_000,
            full_wait: 3_000,
            read_wait: 10_000,
            deadline: u64::MAX / 4,
            unavailable_after: u64::MAX / 2,
        };
        let config = Config { limits, timing, history, ..Config::new(group, OPERATOR) };
        Self {
            core: ClientCore::new(config, signer),
            waiting: VecDeque::new(),
            renews,
            under_way: None,
            not_before: 0,
            wake_at: None,
        }
    }

    /// Wants a replica to go on with a component of this epoch.
    pub fn admit(&mut self, replica: ReplicaId, epoch: u64) {
        self.waiting.push_back((replica, epoch));
    }

    /// A replica's message arrives.
    pub fn hear(&mut self, now: u64, from: ReplicaId, message: ToClient) {
        self.core.on_message(Time(now), from, message);
    }

    /// Goes on with what it wants; returns when it wants to be woken.
    pub fn settle(&mut self, now: u64, send: &mut Vec<Sending>) -> Option<u64> {
        self.core.on_timer(Time(now));
        self.give_up(now);
        loop {
            if self.under_way.is_none()
                && now >= self.not_before
                && let Some((replica, epoch)) = self.waiting.pop_front()
            {
                let component = ComponentKey::Group;
                let change = match self.renews {
                    true => Change::Announce { replica },
                    false => Change::Admit { replica, epoch, component, host: None },
                };
                self.submit(now, (replica, epoch), change);
            }
            let Some(output) = self.core.poll() else { break };
            match output {
                Output::Send { to, message } => send.push(Sending { to, message }),
                Output::Event(_) => {}
                Output::Done { ticket, result, .. } => {
                    // Others were given up.
                    let Some(UnderWay { wanted, change: asked, .. }) =
                        self.under_way.take_if(|under_way| under_way.ticket == ticket)
                    else {
                        continue;
                    };
                    let answer =
                        result.ok().and_then(|results| ChangeAnswer::from_wire(results.first()?).ok());
                    match (asked, answer) {
                        (Change::Announce { .. }, Some(ChangeAnswer::Done(at, shown))) => {
                            self.go_on(now, wanted, at, &shown)
                        }
                        (_, Some(ChangeAnswer::Done(..))) => {}
                        _ => self.try_again(now, wanted),
                    }
                }
            }
        }
        let again = (!self.waiting.is_empty() && self.under_way.is_none()).then_some(self.not_before);
        let gives_up = self.under_way.as_ref().filter(|_| !self.waiting.is_empty());
        let gives_up = gives_up.filter(|under_way| under_way.is_renewal());
        let gives_up = gives_up.map(|under_way| under_way.since + GIVES_UP_AFTER);
        [self.core.next_wake().map(|time| time.0), again, gives_up].into_iter().flatten().min()
    }

    /// Turns to another replica where the outcome of a renewal does not come. What was signed stays on its way.
    fn give_up(&mut self, now: u64) {
        let others_wait = !self.waiting.is_empty();
        let given_up = self.under_way.take_if(|under_way| {
            others_wait && under_way.is_renewal() && now >= under_way.since + GIVES_UP_AFTER
        });
        if let Some(given_up) = given_up {
            self.waiting.push_back(given_up.wanted);
        }
    }

    fn submit(&mut self, now: u64, wanted: (ReplicaId, u64), change: Change) {
        let ticket = self.core.submit(Time(now), vec![change.to_wire()]);
        let ticket = ticket.expect("the queue has room for one after those that were given up");
        self.under_way = Some(UnderWay { ticket, wanted, change, since: now });
    }

    fn try_again(&mut self, now: u64, wanted: (ReplicaId, u64)) {
        self.waiting.push_front(wanted);
        self.not_before = now + PATIENCE;
    }

    /// The group has executed an announcement: the admission follows where all those before are in force, and where none that
    /// was given up has done it already.
    fn go_on(&mut self, now: u64, wanted: (ReplicaId, u64), at: Seq, shown: &Configuration) {
        let (replica, epoch) = wanted;
        if shown.member(replica).is_some_and(|member| member.admission().epoch >= epoch) {
            return;
        }
        if shown.members().iter().any(|member| member.admission().at >= at) {
            return self.try_again(now, wanted);
        }
        let component = ComponentKey::Group;
        self.submit(now, wanted, Change::Renew { replica, epoch, component, shown: shown.digest() });
    }
}
