//! The recorder: what answers and errors become, and that nothing is claimed to be known that is not.

use crate::history::{self, History, Outcome, Record, Verb};
use bytes::Bytes;
use troth_client::ClientError;
use troth_kv::Answer;
use troth_types::Wire;

fn end(verb: Verb, result: Result<Answer, ClientError>) -> (Record, History) {
    let mut history = History::new();
    let place = history.begin(Record::new(1, "key", verb, "new", None));
    let result = result.map(|answer| answer.to_wire());
    let record = history.end(place, result).clone();
    (record, history)
}

#[test]
fn answers_become_outcomes() {
    let (read, history) =
        end(Verb::Get, Ok(Answer::Value { version: 7, value: Bytes::from_static(b"found") }));
    assert_eq!((read.outcome, read.version, read.value.as_str()), (Outcome::Ok, Some(7), "found"));
    assert!(read.returned.is_some_and(|returned| returned >= read.call));
    assert_eq!(history.answered(), read.call);
    assert!(!read.wrote());

    assert_eq!(end(Verb::Get, Ok(Answer::NotFound)).0.outcome, Outcome::Absent);
    let (write, _) = end(Verb::Put, Ok(Answer::Written { version: 8 }));
    assert_eq!((write.outcome, write.version, write.wrote()), (Outcome::Ok, Some(8), true));
    let (refused, _) = end(Verb::Cas, Ok(Answer::Mismatch { current: Some(9) }));
    assert_eq!((refused.outcome, refused.version, refused.wrote()), (Outcome::Mismatch, Some(9), false));
}

#[test]
fn an_operation_is_open_until_it_is_known_not_to_be() {
    let mut history = History::new();
    let place = history.begin(Record::new(1, "key", Verb::Put, "new", None));
    assert_eq!(history.count(Outcome::Unknown), 1, "under way");
    assert_eq!(history.given_up(), 0);
    history.end(place, Err(ClientError::TimedOut));
    assert_eq!((history.count(Outcome::Unknown), history.given_up()), (1, 1));
    assert_eq!(history.records()[0].returned, None);

    for (error, outcome) in [
        (ClientError::TooOld, Outcome::Unknown),
        (ClientError::Closed { sent: true }, Outcome::Unknown),
        (ClientError::Closed { sent: false }, Outcome::Failed),
        (ClientError::Unsent, Outcome::Failed),
        (ClientError::Unavailable { unreachable: Vec::new(), sent: true }, Outcome::Unknown),
        (ClientError::Unavailable { unreachable: Vec::new(), sent: false }, Outcome::Failed),
    ] {
        let (record, history) = end(Verb::Put, Err(error.clone()));
        assert_eq!(record.outcome, outcome, "{error}");
        assert_eq!(history.answered(), 0, "nobody answered");
    }
}

#[test]
fn answers_to_another_question_are_told_and_prove_nothing() {
    for (verb, answer) in [
        (Verb::Get, Answer::Written { version: 1 }),
        (Verb::Put, Answer::Mismatch { current: None }),
        (Verb::Put, Answer::NotFound),
        (Verb::Cas, Answer::Malformed),
    ] {
        let (record, history) = end(verb, Ok(answer));
        assert_eq!((record.outcome, record.returned), (Outcome::Unknown, None));
        assert_eq!(history.strange().len(), 1);
    }
    let mut history = History::new();
    let place = history.begin(Record::new(1, "key", Verb::Get, "", None));
    history.end(place, Ok(Bytes::from_static(b"\xff\xff")));
    assert_eq!(history.strange().len(), 1);
}

#[test]
fn a_history_is_written_as_lines_that_read_back() {
    let records = [super::put("a", 1, (1, 2)), super::open("b", 3), super::get("a", 1, (4, 5))];
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history.jsonl");
    history::write(&records, &file).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let read: Vec<Record> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, records);
    assert!(text.contains("\"op\":\"put\"") && text.contains("\"return\":null"), "{text}");
}
