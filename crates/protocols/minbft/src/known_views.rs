//! The starts of views that this replica knows to be valid, and those that it needs to know: what a
//! commitment in somebody's log refers to.
//!
//! A NEW-VIEW is valid because it follows from its VIEW-CHANGEs, and these may refer to the start of an
//! earlier view, and so on. The chain ends at a view that f+1 replicas committed to: one of them is
//! correct and judged it. So what is kept stays bounded by the views that nobody could agree on.

use crate::Config;
use crate::evidence::evidence;
use crate::message::{AcceptNewView, Body, Certified};
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_blocks::Voters;
use troth_core::rule;
use troth_types::{Configuration, Group, ReplicaId, View};

/// The most NEW-VIEWs that are held while what they rest on is fetched: each may be as large as a message can be.
const MOST_WAITING: usize = 32;
/// The most starts that are asked for. One may rest on a long chain of others, which are judged from the lowest.
const MOST_ASKED: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    message: Arc<Certified>,
    rests_on: Option<View>,
    accepts: BTreeMap<ReplicaId, Arc<Certified>>,
}

/// A NEW-VIEW that was asked for, as far as it is here.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Asked {
    message: Option<Arc<Certified>>,
    /// The earlier view whose start the message needs to be judged.
    needs: Option<View>,
    accepts: BTreeMap<ReplicaId, Arc<Certified>>,
}

/// Known and wanted starts of views.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct KnownViews {
    held: BTreeMap<View, Held>,
    asked: BTreeMap<View, Asked>,
}

/// The highest earlier view, above 0, in which the VIEW-CHANGEs of a NEW-VIEW show a commitment.
pub(crate) fn rests_on(
    group: &Group,
    configuration: &Configuration,
    config: &Config,
    message: &Certified,
) -> Option<View> {
    let changes = &message.new_view()?.changes;
    let views = changes.iter().filter_map(|change| evidence(group, configuration, config, change).ok()?.view);
    views.max().filter(|view| *view > View(0))
}

impl KnownViews {
    /// The valid NEW-VIEW of a view.
    pub(crate) fn get(&self, view: View) -> Option<&Arc<Certified>> {
        self.held.get(&view).map(|held| &held.message)
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Certified>> {
        self.held.values().map(|held| &held.message)
    }

    /// Keeps a valid NEW-VIEW.
    pub(crate) fn hold(&mut self, view: View, message: Arc<Certified>, rests_on: Option<View>) {
        let mut accepts = self.asked.remove(&view).map(|asked| asked.accepts).unwrap_or_default();
        // One that accepted another NEW-VIEW says nothing of this one (V16).
        accepts.retain(|_, accept| {
            matches!(&accept.body, Body::AcceptNewView(accept) if accept.new_view == message.digest)
        });
        self.held.entry(view).or_insert(Held { message, rests_on, accepts });
    }

    /// Keeps a replica's commitment to a NEW-VIEW that is held; says whether it is news.
    pub(crate) fn accept(&mut self, message: &Arc<Certified>) -> bool {
        let Body::AcceptNewView(AcceptNewView { view, new_view }) = &message.body else { return false };
        let Some(held) = self.held.get_mut(view) else { return false };
        held.message.digest == *new_view && held.accepts.insert(message.from, message.clone()).is_none()
    }

    /// What shows others that a NEW-VIEW is valid: itself, and the commitments to it.
    pub(crate) fn shown(&self, view: View) -> Vec<Arc<Certified>> {
        let Some(held) = self.held.get(&view) else { return Vec::new() };
        std::iter::once(&held.message).chain(held.accepts.values()).cloned().collect()
    }

    /// The commitments that are kept.
    pub(crate) fn accepts(&self) -> impl Iterator<Item = &Arc<Certified>> {
        self.held.values().flat_map(|held| held.accepts.values())
    }

    /// Drops what no log refers to any more: views below `oldest`, unless a kept one rests on them and
    /// cannot show f+1 commitments instead.
    pub(crate) fn retain(&mut self, group: &Group, oldest: View) {
        let mut needed: Vec<View> = Vec::new();
        let mut frontier: Vec<View> = self.held.range(oldest..).map(|(view, _)| *view).collect();
        while let Some(view) = frontier.pop() {
            let Some(held) = self.held.get(&view) else { continue };
            if needed.contains(&view) {
                continue;
            }
            needed.push(view);
            if !accepted(group, &held.message, &held.accepts) {
                frontier.extend(held.rests_on);
            }
        }
        self.held.retain(|view, _| needed.contains(view));
    }

    /// The start of this view is needed.
    pub(crate) fn want(&mut self, view: View) {
        if !self.held.contains_key(&view) && self.asked.len() < MOST_ASKED {
            self.asked.entry(view).or_default();
        }
    }

    /// Nothing is needed any more.
    pub(crate) fn want_nothing(&mut self) {
        self.asked.clear();
    }

    /// What to ask for in this round: each in turn, for a faulty replica may refer to a view that nobody knows. In every
    /// second round it is one that can be judged when it comes: long chains are full of those that cannot.
    pub(crate) fn wanted(&self, round: u64) -> Option<View> {
        let in_turn = |views: &mut dyn Iterator<Item = View>| {
            let views: Vec<View> = views.collect();
            let turn = (round / 2).checked_rem(views.len() as u64)?;
            views.get(usize::try_from(turn).ok()?).copied()
        };
        let of_use = |(view, asked): (&View, &Asked)| {
            let comes =
                asked.message.is_none() && asked.needs.is_none_or(|view| self.held.contains_key(&view));
            comes.then_some(*view)
        };
        let now =
            round.is_multiple_of(2).then(|| in_turn(&mut self.asked.iter().filter_map(of_use))).flatten();
        now.or_else(|| in_turn(&mut self.asked.keys().copied()))
    }

    /// Whether a piece of evidence is for a wanted view and not here.
    pub(crate) fn lacks(&self, message: &Certified) -> bool {
        rule!("MINBFT-R17");
        let is_other = |known: &Arc<Certified>| (known.digest, &known.ui) != (message.digest, &message.ui);
        match &message.body {
            Body::NewView(new_view) => {
                let asked = self.asked.get(&new_view.view);
                asked.is_some_and(|asked| asked.message.as_ref().is_none_or(is_other))
            }
            Body::AcceptNewView(accept) => {
                let asked = self.asked.get(&accept.view);
                asked.is_some_and(|asked| asked.accepts.get(&message.from).is_none_or(is_other))
            }
            _ => false,
        }
    }

    /// Takes a piece of evidence for a wanted view; says whether it is news.
    pub(crate) fn offer(&mut self, message: &Arc<Certified>) -> bool {
        if !self.lacks(message) {
            return false;
        }
        match &message.body {
            Body::NewView(new_view) => {
                if !self.makes_room_for(new_view.view) {
                    return false;
                }
                let asked = self.asked.entry(new_view.view).or_default();
                (asked.message, asked.needs) = (Some(message.clone()), None);
            }
            Body::AcceptNewView(accept) => {
                self.asked.entry(accept.view).or_default().accepts.insert(message.from, message.clone());
            }
            _ => {}
        }
        true
    }

    /// Makes room for one more NEW-VIEW that waits, if there is none: the highest goes, which is judged last, and is asked for
    /// again when what it rests on is known.
    fn makes_room_for(&mut self, view: View) -> bool {
        let waiting = || self.asked.iter().filter(|(at, asked)| **at != view && asked.message.is_some());
        if waiting().count() < MOST_WAITING {
            return true;
        }
        let highest = waiting().next_back().map(|(at, _)| *at).filter(|at| *at > view);
        if let Some(asked) = highest.and_then(|highest| self.asked.get_mut(&highest)) {
            asked.message = None;
        }
        highest.is_some()
    }

    /// A wanted NEW-VIEW rests on this earlier view: it is wanted, too, and the NEW-VIEW judged when it is known.
    pub(crate) fn rests_on(&mut self, view: View, earlier: View) {
        if let Some(asked) = self.asked.get_mut(&view) {
            asked.needs = Some(earlier);
        }
        self.want(earlier);
    }

    /// What the starts that are here rest on is wanted as long as it is not known: one may have been known, and gone again.
    pub(crate) fn want_what_is_needed(&mut self) {
        let needed: Vec<View> = self.asked.values().filter_map(|asked| asked.needs).collect();
        needed.into_iter().for_each(|view| self.want(view));
    }

    /// Whether a start, or a commitment to one, is of a view that was asked for: several are asked, and answer alike.
    pub(crate) fn was_asked(&self, message: &Certified) -> bool {
        let view = match &message.body {
            Body::NewView(new_view) => new_view.view,
            Body::AcceptNewView(accept) => accept.view,
            _ => return false,
        };
        self.asked.contains_key(&view) || self.held.contains_key(&view)
    }

    /// A wanted NEW-VIEW that f+1 replicas committed to: valid without further judgement.
    pub(crate) fn take_accepted(
        &mut self,
        group: &Group,
        configuration: &Configuration,
        config: &Config,
    ) -> Option<View> {
        let (view, message) = self.asked.iter().find_map(|(view, asked)| {
            let message = asked.message.as_ref()?;
            accepted(group, message, &asked.accepts).then(|| (*view, message.clone()))
        })?;
        let rests_on = rests_on(group, configuration, config, &message);
        self.hold(view, message, rests_on);
        Some(view)
    }

    /// The wanted NEW-VIEWs that are here and wait for judgement, lowest first.
    pub(crate) fn to_judge(&self) -> Vec<Arc<Certified>> {
        let may_judge = |asked: &&Asked| asked.needs.is_none_or(|view| self.held.contains_key(&view));
        self.asked.values().filter(may_judge).filter_map(|asked| asked.message.clone()).collect()
    }
}

/// Whether f+1 distinct replicas stand behind a NEW-VIEW; its primary is one of them.
fn accepted(group: &Group, message: &Certified, accepts: &BTreeMap<ReplicaId, Arc<Certified>>) -> bool {
    let mut voters = Voters::NONE;
    voters.insert(message.from);
    for accept in accepts.values() {
        match &accept.body {
            Body::AcceptNewView(body) if body.new_view == message.digest => {
                voters.insert(accept.from);
            }
            _ => {}
        }
    }
    voters.count() >= group.quorum()
}
