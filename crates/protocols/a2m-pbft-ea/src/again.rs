//! What is executed and ordered again, because its client could not be shown its place (H3).

use crate::state::A2mPbftEa;
use troth_core::{Cx, VerifiedFrame, rule};
use troth_types::ReplicaId;

impl A2mPbftEa {
    /// Frames whose clients want their places proven anew. A newer request of the client takes the place of such a one.
    pub(crate) fn order_again(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        rule!("A2MPBFTEA-H5");
        for frame in frames {
            let (client, number) = (frame.client(), frame.number());
            self.admit(cx, frame);
            self.pool.is_again(client, number);
        }
    }

    /// Of executed frames that another replica shows, those that are ordered again for it, and the others. It shows a primary
    /// what it waits for; whoever is none need not wait with it.
    pub(crate) fn favours_of(
        &mut self,
        cx: &Cx<'_, Self>,
        from: ReplicaId,
        frames: Vec<VerifiedFrame>,
    ) -> (Vec<VerifiedFrame>, Vec<VerifiedFrame>) {
        rule!("A2MPBFTEA-H6");
        let orders = self.active && self.is_primary();
        frames.into_iter().partition(|frame| {
            orders
                && !self.pool.has(frame.client(), frame.number())
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
        rule!("A2MPBFTEA-H7");
        let (again, mut shown): (Vec<_>, Vec<_>) =
            frames.into_iter().partition(|frame| self.pool.waits_again(frame.client(), frame.number()));
        let sizes = again.iter().map(|frame| (frame.digest(), frame.size()));
        let count = self.favours_asked.show(sizes, cx.now());
        shown.extend(again.into_iter().take(count));
        shown
    }
}
