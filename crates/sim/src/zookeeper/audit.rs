//! A replica's whole state beside the model's, as far as clients may ask for it.

use super::Model;
use bytes::Bytes;
use troth_exec::{Application, StateView};
use troth_types::{Time, Wire};
use troth_zookeeper::jute::Output;
use troth_zookeeper::{Operation, Said, opcode};

/// Paths that come and go: where the model has none, the replica must have none.
const OFTEN_GONE: [&str; 4] = ["/n0", "/n1", "/n0/c0", "/n1/c1"];

/// Compares every node and every session's own nodes; how many answers that took, 0 where nobody has a session to ask with.
///
/// # Errors
/// The first difference.
pub fn audit<A: Application>(service: &A, state: &StateView<'_>, model: &Model) -> Result<u64, String> {
    let mut asked = 0;
    let mut ask = |session: &super::Session, code: i32, path: &str| {
        let mut body = Output::new();
        body.text(path).boolean(false);
        let operation = Operation::Request { at: session.at, code, body: body.finish() };
        let operation = Said { when: Time(0), operation }.to_wire();
        let answer: Bytes = service.query(state, session.gateway, &operation);
        let expected = model.query(session.gateway, &operation);
        asked += 1;
        if answer == expected {
            return Ok(());
        }
        Err(format!("{code} of {path:?} is answered {answer:?}, and by the model {expected:?}"))
    };
    for session in model.sessions() {
        ask(session, opcode::GET_EPHEMERALS, "/")?;
        ask(session, opcode::WHO_AM_I, "")?;
    }
    // One who may see most.
    let Some(session) = model.sessions().max_by_key(|session| session.identities()) else { return Ok(asked) };
    for path in model.paths().chain(OFTEN_GONE) {
        for code in [opcode::GET_DATA, opcode::GET_CHILDREN2, opcode::GET_ACL, opcode::EXISTS] {
            ask(session, code, path)?;
        }
    }
    ask(session, opcode::GET_ALL_CHILDREN_NUMBER, "/")?;
    Ok(asked)
}
