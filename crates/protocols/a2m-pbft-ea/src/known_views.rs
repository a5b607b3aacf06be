//! The starts of views that this replica knows: NEWVIEWs, the commitments to them, and which of them are valid.
//!
//! To judge a NEWVIEW takes that of the highest view that its VIEWCHANGEs left, and so on back; f+1 commitments to one end
//! the way back, for a correct replica has judged it.

use crate::message::{Attested, NewView};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use troth_core::rule;
use troth_types::{Digest, Group, ReplicaId, View};

/// NEWVIEWs kept that are neither of the present view nor needed to judge it.
const MOST_KNOWN: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    message: Arc<Attested>,
    /// Whether this replica found that it follows from what it shows, or has it in its log because f+1 committed to it.
    judged: bool,
    /// The view, above 0, whose NEWVIEW it rests on.
    rests_on: Option<View>,
}

impl Known {
    fn new(view: View, message: &Arc<Attested>, rests_on: Option<View>) -> Self {
        let rests_on = rests_on.filter(|before| *before < view);
        Self { message: message.clone(), judged: false, rests_on }
    }
}

/// The known starts of views.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct KnownViews {
    views: BTreeMap<View, Known>,
    accepts: BTreeMap<View, BTreeMap<ReplicaId, Arc<Attested>>>,
    /// The view whose start each replica's VIEWCHANGE or NEWVIEW rests on, where that cannot be judged yet: nobody's word
    /// takes the place of another's.
    lacks: BTreeMap<ReplicaId, View>,
    /// The view entered last, and those whose NEWVIEWs are needed to judge its own.
    needed: Vec<View>,
}

impl KnownViews {
    /// Keeps a NEWVIEW; there is one of a view at most. `rests_on` is the view whose start it was computed from: an earlier
    /// one, or it is invalid, and nothing needs to be known to judge it.
    pub(crate) fn offer(&mut self, view: View, message: &Arc<Attested>, rests_on: Option<View>) {
        self.views.entry(view).or_insert_with(|| Known::new(view, message, rests_on));
        while self.views.len() > 2 * MOST_KNOWN + self.needed.len() {
            let Some(spare) = self.spare(view) else { break };
            self.drop_start(spare);
        }
    }

    /// Lets go of a NEWVIEW, and of the commitments to it of replicas that committed to a later one's: they were kept for it.
    fn drop_start(&mut self, view: View) {
        self.views.remove(&view);
        let Some(mut of_view) = self.accepts.remove(&view) else { return };
        of_view.retain(|from, _| self.accepts.range(view..).all(|(_, later)| !later.contains_key(from)));
        if !of_view.is_empty() {
            self.accepts.insert(view, of_view);
        }
    }

    /// Which NEWVIEW goes where there are too many, but for the newest one and those of the view entered last: the lowest
    /// that is judged and that none rests on which is not; or the highest, for a view begins after those before it.
    fn spare(&self, newest: View) -> Option<View> {
        let open = self.views.values().filter(|known| !known.judged);
        let grounds: BTreeSet<View> = open.filter_map(|known| known.rests_on).collect();
        let may_go = |view: &View| *view != newest && !self.needed.contains(view);
        let judged =
            |(view, known): &(&View, &Known)| known.judged && !grounds.contains(view) && may_go(view);
        let lowest = self.views.iter().find(judged).map(|(view, _)| *view);
        lowest.or_else(|| self.views.keys().rev().find(|view| may_go(view)).copied())
    }

    /// Keeps a NEWVIEW that is on the disk of this replica, which judged it. [`Self::entered`] lets go of what is too much.
    pub(crate) fn restore(&mut self, view: View, message: &Arc<Attested>, rests_on: Option<View>) {
        self.views.insert(view, Known { judged: true, ..Known::new(view, message, rests_on) });
    }

    /// It is valid, whatever becomes known of it later.
    pub(crate) fn judged(&mut self, view: View) {
        if let Some(known) = self.views.get_mut(&view) {
            known.judged = true;
        }
    }

    /// It does not, and no other of its view will come.
    pub(crate) fn reject(&mut self, view: View) {
        rule!("A2MPBFTEA-V21");
        self.drop_start(view);
    }

    /// The valid NEWVIEW of the highest view from this one on.
    pub(crate) fn highest_valid(&self, group: &Group, lowest: View) -> Option<&Arc<Attested>> {
        self.views.range(lowest..).rev().find_map(|(view, _)| self.valid(group, *view))
    }

    /// Keeps a COMMIT(NEWVIEW); says whether it is a new one. Of each replica the one to the highest view is kept, and those
    /// to NEWVIEWs that are here: nobody makes this replica keep more.
    pub(crate) fn accept(&mut self, message: &Arc<Attested>) -> bool {
        let Some(accept) = message.accept() else { return false };
        let highest = self.accepts.iter().rev().find(|(_, of_view)| of_view.contains_key(&message.from));
        let highest = highest.map(|(view, _)| *view);
        if highest.is_some_and(|highest| highest > accept.view) && !self.views.contains_key(&accept.view) {
            return false;
        }
        if let Some(before) = highest.filter(|view| *view < accept.view && !self.views.contains_key(view))
            && let Some(of_view) = self.accepts.get_mut(&before)
        {
            of_view.remove(&message.from);
            if of_view.is_empty() {
                self.accepts.remove(&before);
            }
        }
        let of_view = self.accepts.entry(accept.view).or_default();
        of_view.insert(message.from, message.clone()).is_none()
    }

    /// The replicas that committed to this NEWVIEW.
    pub(crate) fn accepted(&self, view: View, new_view: &Digest) -> impl Iterator<Item = &Arc<Attested>> {
        let of_view = self.accepts.get(&view).into_iter().flat_map(BTreeMap::values);
        of_view.filter(|message| message.accept().is_some_and(|accept| accept.new_view == *new_view))
    }

    /// All that is known of who committed to a view's start.
    pub(crate) fn accepts(&self, view: View) -> impl Iterator<Item = &Arc<Attested>> {
        self.accepts.get(&view).into_iter().flat_map(BTreeMap::values)
    }

    /// The NEWVIEW of a view, whether or not it is valid.
    pub(crate) fn get(&self, view: View) -> Option<&Arc<Attested>> {
        self.views.get(&view).map(|known| &known.message)
    }

    /// The view whose start tells somebody most who lacks that of this one: the same, or the lowest later one that is here.
    /// Where a replica let go of a start, f+1 have committed to the next that it keeps, and nobody needs to look further back.
    pub(crate) fn to_show(&self, lacked: View) -> Option<View> {
        self.views.range(lacked..).next().map(|(view, _)| *view)
    }

    /// The valid NEWVIEW of a view: this replica judged it, or f+1 replicas committed to it.
    pub(crate) fn valid(&self, group: &Group, view: View) -> Option<&Arc<Attested>> {
        rule!("A2MPBFTEA-V15");
        let known = self.views.get(&view)?;
        let accepted = || self.accepted(view, &known.message.digest).count() >= group.weak();
        (known.judged || accepted()).then_some(&known.message)
    }

    /// The same as what it says.
    pub(crate) fn start(&self, group: &Group, view: View) -> Option<(Digest, &NewView)> {
        self.valid(group, view).and_then(|message| message.new_view().map(|start| (message.digest, start)))
    }

    /// What this replica says rests on the NEWVIEW of this view.
    pub(crate) fn want(&mut self, view: View, by: ReplicaId) {
        rule!("A2MPBFTEA-V15");
        self.lacks.insert(by, view);
    }

    /// The earlier view, above 0, whose NEWVIEW that of a view rests on, as far as it is known.
    pub(crate) fn rests_on(&self, view: View) -> Option<View> {
        self.views.get(&view).and_then(|known| known.rests_on)
    }

    /// Which NEWVIEWs are needed and cannot be judged yet: what they rest on first.
    pub(crate) fn lacks(&self, group: &Group) -> BTreeSet<View> {
        self.lacks.values().filter_map(|view| self.lacks_for(group, *view)).collect()
    }

    /// Which of them is asked for in this round.
    pub(crate) fn asks_for(&self, group: &Group, round: u64) -> Option<View> {
        let lacks = self.lacks(group);
        let turn = round.checked_rem(lacks.len() as u64)?;
        lacks.into_iter().nth(usize::try_from(turn).ok()?)
    }

    fn lacks_for(&self, group: &Group, mut view: View) -> Option<View> {
        if self.valid(group, view).is_some() {
            return None;
        }
        while let Some(before) = self.rests_on(view) {
            if self.valid(group, before).is_some() {
                break;
            }
            view = before;
        }
        Some(view)
    }

    /// The NEWVIEWs that f+1 replicas committed to and this one has not judged, with those commitments.
    pub(crate) fn believed(&self, group: &Group) -> Vec<(View, Arc<Attested>, Vec<Arc<Attested>>)> {
        let open = self.views.iter().filter(|(_, known)| !known.judged);
        let believed = open.filter_map(|(view, known)| {
            let accepts: Vec<_> = self.accepted(*view, &known.message.digest).cloned().collect();
            (accepts.len() >= group.weak()).then(|| (*view, known.message.clone(), accepts))
        });
        believed.collect()
    }

    /// The NEWVIEWs that are not known to be valid, the lowest first: one may decide the next.
    pub(crate) fn unjudged(&self, group: &Group) -> Vec<Arc<Attested>> {
        let open = self.views.iter().filter(|(view, _)| self.valid(group, **view).is_none());
        open.map(|(_, known)| known.message.clone()).collect()
    }

    /// Lets go of what nobody needs any more to judge the start of this view, which this replica entered, or a later one's.
    pub(crate) fn entered(&mut self, group: &Group, entered: View) {
        let mut needed = vec![entered];
        while let Some(last) = needed.last().copied() {
            let Some(known) = self.views.get(&last) else { break };
            let accepted = self.accepted(last, &known.message.digest).count() >= group.weak();
            match known.rests_on.filter(|_| !accepted) {
                Some(before) => needed.push(before),
                None => break,
            }
        }
        self.views.retain(|view, _| *view > entered || needed.contains(view));
        while self.views.len() > MOST_KNOWN + needed.len() {
            let Some(last) = self.views.keys().next_back().copied() else { break };
            self.drop_start(last);
        }
        let views = &self.views;
        self.accepts.retain(|view, _| *view >= entered || views.contains_key(view));
        self.lacks.retain(|_, lacks| *lacks > entered);
        self.needed = needed;
    }

    /// All NEWVIEWs that are known to be valid.
    pub(crate) fn all_valid(&self, group: &Group) -> Vec<Arc<Attested>> {
        self.views.keys().filter_map(|view| self.valid(group, *view)).cloned().collect()
    }

    /// Commitments to NEWVIEWs that are not here: of each replica one at most.
    pub(crate) fn loose(&self) -> usize {
        let loose = self.accepts.iter().filter(|(view, _)| !self.views.contains_key(view));
        loose.map(|(_, of_view)| of_view.len()).sum()
    }

    /// Every NEWVIEW that this replica judged and every commitment that is kept, for a fresh log.
    pub(crate) fn all(&self) -> (Vec<Arc<Attested>>, Vec<Arc<Attested>>) {
        let views = self.views.values().filter(|known| known.judged).map(|known| known.message.clone());
        let accepts = self.accepts.iter().filter(|(view, _)| self.views.contains_key(view));
        (views.collect(), accepts.flat_map(|(_, of_view)| of_view.values().cloned()).collect())
    }
}
