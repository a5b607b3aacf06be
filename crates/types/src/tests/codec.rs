use crate::*;
use bytes::Bytes;
use std::sync::Arc;

fn frame() -> Frame {
    let draft = FrameDraft {
        group: GroupId([7; 16]),
        client: ClientId(3),
        number: 9,
        events_seen: 2,
        operations: vec![Bytes::from_static(b"put"), Bytes::new()],
    };
    draft.sign(Signature([5; 64]))
}

fn round_trip<T: Wire + PartialEq + std::fmt::Debug>(value: &T) {
    let wire = value.to_wire();
    assert_eq!(&T::from_wire(&wire).unwrap(), value);
    for cut in 0..wire.len() {
        assert!(T::from_wire(&wire.slice(..cut)).is_err(), "accepts a cut at {cut}");
    }
    let mut longer = wire.to_vec();
    longer.push(0);
    assert_eq!(T::from_wire(&Bytes::from(longer)), Err(Malformed::Trailing));
}

#[test]
fn every_message_survives_a_round_trip_and_nothing_shorter_or_longer_does() {
    round_trip(&frame());
    round_trip(&Batch { time: Time(5), frames: vec![Digest([1; 32]), Digest([2; 32])] });
    for wish in [Wish::Usual, Wish::Full, Wish::Nothing, Wish::Alone] {
        round_trip(&ToReplica::Request { frame: Arc::new(frame()), wish });
    }
    round_trip(&ToReplica::Read(Read {
        client: ClientId(1),
        number: 2,
        nonce: None,
        least: None,
        operation: Bytes::from_static(b"get"),
    }));
    round_trip(&ToReplica::Read(Read {
        client: ClientId(1),
        number: 3,
        nonce: Some(Digest([4; 32])),
        least: None,
        operation: Bytes::from_static(b"get"),
    }));
    round_trip(&ToReplica::Read(Read {
        client: ClientId(1),
        number: 4,
        nonce: None,
        least: Some(Seq(9)),
        operation: Bytes::from_static(b"get"),
    }));
    let reply = Reply {
        client: ClientId(1),
        number: 2,
        seq: Seq(3),
        view: View(4),
        events_up_to: 5,
        body: ReplyBody::Full(vec![Bytes::from_static(b"a"), Bytes::new()]),
    };
    round_trip(&ToClient::Tentative(reply.clone()));
    round_trip(&ToClient::Reply(reply));
    let body = ReplyBody::Digest(Digest([9; 32]));
    let reply = Reply {
        client: ClientId(1),
        number: 2,
        seq: Seq(3),
        view: View(4),
        events_up_to: 5,
        body: ReplyBody::Digest(Digest([6; 32])),
    };
    let place = Place {
        attestation: Bytes::from_static(b"attestation"),
        time: Time(7),
        index: 1,
        count: 2,
        path: vec![Digest([8; 32])],
    };
    let renewed = |replica| Renewed {
        replica: ReplicaId(replica),
        epoch: 3,
        component: ComponentKey::Ed25519([4; 32]),
    };
    let attested =
        |renewed| ToClient::Attested(AttestedReply { reply: reply.clone(), place: place.clone(), renewed });
    round_trip(&attested(Vec::new()));
    round_trip(&attested(vec![renewed(1), renewed(3)]));
    // One way to say it, whoever was renewed.
    let twice = attested(vec![renewed(3), renewed(3)]).to_wire();
    assert!(ToClient::from_wire(&twice).is_err());
    let reply = ReadReply { client: ClientId(1), number: 2, events_up_to: 0, body };
    round_trip(&ToClient::ReadReply(reply.clone()));
    let end = HistoryEnd {
        attestation: Bytes::from_static(b"attestation"),
        index: 1,
        count: 2,
        path: vec![Digest([8; 32])],
    };
    let read =
        |renewed| ToClient::AttestedRead(AttestedRead { reply: reply.clone(), end: end.clone(), renewed });
    round_trip(&read(Vec::new()));
    round_trip(&read(vec![renewed(0)]));
    let payload = Bytes::from_static(b"changed");
    round_trip(&ToClient::Event(Event { client: ClientId(1), index: 1, seq: Seq(1), payload }));
    for reason in [
        RefusalReason::TooLarge,
        RefusalReason::Unauthorised,
        RefusalReason::TooOld,
        RefusalReason::WindowFull,
        RefusalReason::NotReady,
        RefusalReason::Removed,
    ] {
        round_trip(&ToClient::Refusal(Refusal { client: ClientId(1), number: 1, read: false, reason }));
    }
    round_trip(&StateFetch { seq: Seq(1), digest: Digest([1; 32]), path: Bytes::from_static(b"p") });
    let content = Bytes::from_static(b"c");
    round_trip(&StatePiece { seq: Seq(1), digest: Digest([1; 32]), path: Bytes::new(), content });
}

/// A question waits for its turn, and what it came in may be megabytes.
#[test]
fn a_question_for_state_keeps_nothing_of_the_record_that_it_came_in() {
    let asked = StateFetch { seq: Seq(1), digest: Digest([1; 32]), path: Bytes::from_static(b"p") };
    let record = asked.to_wire();
    let read = StateFetch::from_wire(&record).expect("it is whole");
    assert!(!record.as_ptr_range().contains(&read.path.as_ptr()));
}

#[test]
fn a_full_reply_and_its_digest_cast_the_same_vote() {
    let results = vec![Bytes::from_static(b"a")];
    let digest = Reply::results_digest(&results);
    let full = Reply {
        client: ClientId(1),
        number: 2,
        seq: Seq(3),
        view: View(4),
        events_up_to: 5,
        body: ReplyBody::Full(results),
    };
    let short = Reply { body: ReplyBody::Digest(digest), view: View(9), ..full.clone() };
    assert_eq!(full.vote(), short.vote());
    for other in [
        Reply { client: ClientId(2), ..full.clone() },
        Reply { number: 3, ..full.clone() },
        Reply { seq: Seq(4), ..full.clone() },
        Reply { events_up_to: 6, ..full.clone() },
        Reply { body: ReplyBody::Full(vec![Bytes::from_static(b"b")]), ..full.clone() },
    ] {
        assert_ne!(full.vote(), other.vote());
    }
}

#[test]
fn a_frames_digest_covers_every_field_and_the_signature() {
    let draft = FrameDraft {
        group: GroupId([7; 16]),
        client: ClientId(3),
        number: 9,
        events_seen: 2,
        operations: vec![Bytes::from_static(b"put"), Bytes::new()],
    };
    let base = draft.clone().sign(Signature([5; 64])).digest();
    let mut others = vec![draft.clone().sign(Signature([6; 64])).digest()];
    others.push(FrameDraft { group: GroupId([8; 16]), ..draft.clone() }.sign(Signature([5; 64])).digest());
    others.push(FrameDraft { client: ClientId(4), ..draft.clone() }.sign(Signature([5; 64])).digest());
    others.push(FrameDraft { number: 10, ..draft.clone() }.sign(Signature([5; 64])).digest());
    others.push(FrameDraft { events_seen: 3, ..draft.clone() }.sign(Signature([5; 64])).digest());
    let joined = vec![Bytes::from_static(b"pu"), Bytes::from_static(b"t")];
    others.push(FrameDraft { operations: joined, ..draft }.sign(Signature([5; 64])).digest());
    for other in others {
        assert_ne!(base, other);
    }
}

#[test]
fn lengths_beyond_the_data_do_not_allocate_and_do_not_decode() {
    let mut wire = Vec::new();
    Time(1).encode(&mut wire);
    u32::MAX.encode(&mut wire);
    assert!(matches!(Batch::from_wire(&Bytes::from(wire)), Err(Malformed::TooLong(..))));
}

/// A read that releases before know looks as they wrote it; one that they do not know looks like none of theirs.
#[test]
fn the_encodings_of_reads_are_pinned() {
    let read = |nonce, least| {
        let operation = Bytes::from_static(b"o");
        ToReplica::Read(Read { client: ClientId(2), number: 3, nonce, least, operation }).to_wire().to_vec()
    };
    let numbers = [&[2, 0, 0, 0, 0, 0, 0, 0][..], &[3, 0, 0, 0, 0, 0, 0, 0]].concat();
    let operation = [1, 0, 0, 0, b'o'];
    assert_eq!(read(None, None), [&[1][..], &numbers, &operation].concat());
    assert_eq!(read(Some(Digest([4; 32])), None), [&[2][..], &numbers, &[4; 32], &operation].concat());
    let least = [5, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(read(None, Some(Seq(5))), [&[3][..], &numbers, &least, &operation].concat());
}

/// Requests that releases before know look as they wrote them; those that they do not know look like none of theirs.
#[test]
fn the_encodings_of_wishes_are_pinned() {
    let request = |wish| ToReplica::Request { frame: Arc::new(frame()), wish }.to_wire().to_vec();
    let frame = frame().to_wire();
    assert_eq!(request(Wish::Usual), [&[0][..], &frame, &[0]].concat());
    assert_eq!(request(Wish::Full), [&[0][..], &frame, &[1]].concat());
    assert_eq!(request(Wish::Nothing), [&[4][..], &frame].concat());
    assert_eq!(request(Wish::Alone), [&[5][..], &frame].concat());
}

/// Wire formats are pinned: a change here is a new wire version.
#[test]
fn the_encoding_of_a_frame_is_pinned() {
    let digest = frame().digest();
    let mut hasher = Hasher::new("fixture");
    hasher.bytes(&frame().to_wire()).digest(&digest);
    let hex: String = hasher.finish().0.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, include_str!("frame.fixture").trim());
}

#[test]
fn an_authenticator_stands_where_a_signature_would_and_names_the_frame_with_it() {
    let draft = FrameDraft {
        group: GroupId([7; 16]),
        client: ClientId(3),
        number: 9,
        events_seen: 2,
        operations: vec![Bytes::from_static(b"one")],
    };
    let tags = |last: u8| FrameProof::Authenticator([Tag([1; 16]), Tag([last; 16])].into());
    let frame = draft.clone().prove(tags(2));
    let bytes = frame.to_wire();
    assert_eq!(Frame::from_wire(&bytes).as_ref(), Ok(&frame));
    assert!(!frame.is_signed() && frame.signature().is_none());
    assert_eq!(frame.tag_for(ReplicaId(1)), Some(&Tag([2; 16])));
    assert_eq!(frame.tag_for(ReplicaId(2)), None);
    assert_ne!(frame.digest(), draft.clone().prove(tags(3)).digest(), "a spoilt tag makes another frame");
    assert_ne!(frame.digest(), draft.clone().sign(Signature([1; 64])).digest());
    let mut many = bytes.to_vec();
    let at = many.len() - 2 * 16 - 1;
    many[at] = 129;
    assert!(Frame::from_wire(&Bytes::from(many)).is_err(), "more tags than any group has replicas");
    for cut in 0..bytes.len() {
        assert!(Frame::from_wire(&bytes.slice(..cut)).is_err(), "{cut} bytes");
    }
}

#[test]
fn what_is_kept_of_a_message_keeps_nothing_else_of_it() {
    let draft = FrameDraft {
        group: GroupId([1; 16]),
        client: ClientId(1),
        number: 1,
        events_seen: 0,
        operations: vec![Bytes::from(vec![7; 100]); 3],
    };
    let frame = draft.sign(Signature([5; 64]));
    let read = Read {
        client: ClientId(1),
        number: 2,
        nonce: None,
        least: None,
        operation: Bytes::from(vec![7; 100]),
    };
    let request = ToReplica::Request { frame: Arc::new(frame), wish: Wish::Usual };
    for message in [request, ToReplica::Read(read)] {
        let bytes = message.to_wire();
        let decoded = ToReplica::from_wire(&bytes).expect("our own");
        assert!(bytes.is_unique(), "the message goes when it is decoded");
        assert_eq!(decoded, message);
    }
}
