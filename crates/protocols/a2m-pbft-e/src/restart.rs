//! A start: the trusted component is asked where the history ends before anything is appended (guide.md §3.2).

use crate::A2mPbftE;
use troth_core::{Cx, Start, rule};
use troth_pbft::{Pbft, Record};
use troth_types::Seq;

impl A2mPbftE {
    /// The first event. What PBFT executes again waits until the component has said where the history ends.
    pub(crate) fn start(&mut self, cx: &mut Cx<'_, Self>, start: Start<Self>) {
        rule!("A2MPBFTE-R2");
        let (start, reached, executed) = match start {
            Start::Fresh => (Start::Fresh, Seq(0), Vec::new()),
            Start::Recovered { own, records, snapshot, reached } => {
                rule!("A2MPBFTE-R4");
                for record in &records {
                    if let Record::History(from, values) = record {
                        self.history.log.remember(*from, values);
                    }
                }
                let executed = records.iter().filter_map(|record| match record {
                    Record::Executed(seq, _) => Some(*seq),
                    _ => None,
                });
                let executed: Vec<Seq> = executed.collect();
                (Start::<Pbft>::Recovered { own, records, snapshot, reached }, reached.seq, executed)
            }
        };
        let (ticket, operations) = self.history.start(reached, executed);
        cx.trusted(ticket, operations);
        self.order(cx, |pbft, cx| troth_core::Agreement::on_start(pbft, cx, start));
        // What was stable before is certified still.
        self.certified(cx);
        self.extend(cx);
    }
}
