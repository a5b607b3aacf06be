//! The service as the executor calls it.

use crate::counters::Counters;
use crate::message::{Answer, MAX_SHOWN, Operation, Said};
use crate::proof::Carrier;
use crate::request::{self, Request};
use crate::service::{Work, refused};
use crate::sessions::{self, Session};
use crate::store::Changes;
use crate::{Code, ZooKeeper, goes, keys, reads};
use bytes::Bytes;
use troth_exec::{Application, FrameOperations, OpContext, State, StateView};
use troth_types::{ClientId, Time, Wire};

/// What stands in the place of an answer that is not shown.
pub(crate) fn too_large() -> Answer {
    Answer::Reply { zxid: 0, error: Code::MarshallingError.number(), body: Bytes::new() }
}

impl Application for ZooKeeper {
    const SCANS: bool = true;

    fn execute(&self, state: &mut State<'_>, cx: &mut OpContext<'_>, operation: &Bytes) -> Bytes {
        let mut work = Work::begin(self, state, cx, None);
        let (answer, count) = (work.execute(operation), work.count());
        count.finish(&mut Changes::over(state));
        answer.to_wire()
    }

    /// The counters, which nearly every operation changes, are read once and written once. A list that is too long to be
    /// shown was looked at as far as it may be shown.
    fn execute_frame(&self, state: &mut State<'_>, operations: &mut FrameOperations<'_>) {
        let (mut count, mut shows) = (None, true);
        while let Some((mut cx, operation)) = operations.next() {
            let mut work = Work::begin(self, state, &mut cx, count);
            let answer = if shows { work.execute(&operation) } else { work.execute_unless_shown(&operation) };
            let weight = if work.is_too_long { MAX_SHOWN } else { 0 };
            count = Some(work.count());
            operations.answer_weighing(answer.to_wire(), weight);
            shows = !operations.made_enough();
        }
        if let Some(count) = count {
            count.finish(&mut Changes::over(state));
        }
    }

    fn query(&self, state: &StateView<'_>, client: ClientId, operation: &Bytes) -> Bytes {
        let counters = Counters::of(&mut &*state).unwrap_or_default();
        let zxid = counters.zxid;
        let answer = || {
            // A read is no sign of life, so it does not matter when it was said.
            let said = Said::from_wire(operation).map_err(|_| Code::MarshallingError)?;
            let (Operation::Request { at, .. } | Operation::Reads { at, .. }) = said.operation else {
                return Err(Code::MarshallingError);
            };
            let carrier = Carrier { group: self.group, gateway: client };
            let session = Session::attached(&mut &*state, at, carrier)?;
            let reader = reads::Reader::of(&session);
            let (code, body) = match said.operation {
                Operation::Reads { reads, .. } => {
                    return Ok(Answer::Replies { zxid, replies: reads::each(state, &reader, &reads)? });
                }
                Operation::Request { code, body, .. } => (code, body),
                _ => return Err(Code::MarshallingError),
            };
            let body = match request::read(code, &body)? {
                Request::Look { look, watch: false } => reads::look(state, &reader, &look)?,
                Request::MultiRead(looks) => reads::looks(state, &reader, &looks)?,
                Request::Ping => Bytes::new(),
                // It must be ordered.
                _ => return Err(Code::BadArguments),
            };
            Ok(Answer::Reply { zxid, error: 0, body })
        };
        answer().unwrap_or_else(|why| refused(&counters, why)).to_wire()
    }

    /// That a session asks is a sign of life, so what reads in the order changes when it ends.
    fn only_reads(&self, _: &Bytes) -> bool {
        false
    }

    fn too_large(&self) -> Bytes {
        too_large().to_wire()
    }

    /// Sessions outlive the gateways of a group: their clients attach them to those of the next.
    fn outlives_clients(&self, key: &[u8]) -> bool {
        !keys::is_of_a_gateway(key)
    }

    fn next_deadline(&self, state: &StateView<'_>) -> Option<Time> {
        let counters = Counters::of(&mut &*state)?;
        let next = || {
            sessions::next_deadline(state, &counters, self.grace).into_iter().chain(goes::next(state)).min()
        };
        sessions::goes_on(&mut &*state).or_else(next).map(Time)
    }

    fn on_deadline(&self, state: &mut State<'_>, cx: &mut OpContext<'_>) {
        Work::begin(self, state, cx, None).deadlines();
    }
}
