//! What is executed and ordered again, because its client could not be shown its place (deviation D4).

use crate::A2mPbftE;
use troth_core::{Agreement, Cx, VerifiedFrame, rule};
use troth_types::ReplicaId;

impl A2mPbftE {
    /// Frames whose clients want their places proven anew. A newer request of the client takes the place of such a one.
    pub(crate) fn order_again(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        rule!("A2MPBFTE-H5");
        self.order(cx, |pbft, cx| pbft.order_again(cx, frames));
    }

    /// Of executed frames that another replica shows, those that are ordered again for it, and the others. It shows a primary
    /// what it waits for; whoever is none need not wait with it.
    pub(crate) fn favours_of(
        &mut self,
        cx: &Cx<'_, Self>,
        from: ReplicaId,
        frames: Vec<VerifiedFrame>,
    ) -> (Vec<VerifiedFrame>, Vec<VerifiedFrame>) {
        rule!("A2MPBFTE-H6");
        let status = self.pbft.status();
        let orders = status.active && status.primary == cx.me();
        frames.into_iter().partition(|frame| {
            orders
                && !self.pbft.is_pending(frame.client(), frame.number())
                && self.favours.may(from, cx.now(), frame.size())
        })
    }

    /// Of pending frames that are to be shown to the primary, oldest first, those that are: of executed ones no more than it
    /// orders again, or it would have checked them in vain.
    pub(crate) fn ask_favours(
        &mut self,
        cx: &Cx<'_, Self>,
        frames: Vec<VerifiedFrame>,
    ) -> Vec<VerifiedFrame> {
        rule!("A2MPBFTE-H7");
        let (again, mut shown): (Vec<_>, Vec<_>) =
            frames.into_iter().partition(|frame| self.pbft.waits_again(frame.client(), frame.number()));
        let sizes = again.iter().map(|frame| (frame.digest(), frame.size()));
        let count = self.favours_asked.show(sizes, cx.now());
        shown.extend(again.into_iter().take(count));
        shown
    }
}
