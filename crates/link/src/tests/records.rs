//! How messages may be spread over records.

use super::{link_with, settings};
use crate::{LinkError, LinkReader, LinkWriter, MESSAGE_HEADER, RECORD, TAG};

/// The plaintext of a full record.
const FULL: usize = RECORD - TAG;

/// A message behind its length.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&length.to_le_bytes(), message].concat()
}

/// What comes out where these records go in.
async fn received(records: &[&[u8]]) -> (Vec<Vec<u8>>, Result<(), LinkError>) {
    let ((_, mut writer), (mut reader, _)) = link_with(settings()).await;
    for record in records {
        writer.seal_anything(record);
    }
    let sending = tokio::spawn(async move { writer.flush().await.unwrap() });
    let received = all(&mut reader).await;
    sending.await.unwrap();
    received
}

async fn all(reader: &mut LinkReader) -> (Vec<Vec<u8>>, Result<(), LinkError>) {
    let mut messages = Vec::new();
    loop {
        match reader.next().await {
            Ok(Some(message)) => messages.push(message.to_vec()),
            Ok(None) => return (messages, Ok(())),
            Err(why) => return (messages, Err(why)),
        }
    }
}

#[tokio::test]
async fn an_empty_record_is_refused() {
    let (messages, ended) = received(&[&framed(b"one"), &[], &framed(b"two")]).await;
    assert_eq!(messages, [b"one"]);
    assert!(matches!(ended, Err(LinkError::Unfilled)), "{ended:?}");
    let (messages, ended) = received(&[&[]]).await;
    assert!(messages.is_empty() && matches!(ended, Err(LinkError::Unfilled)), "{ended:?}");
}

#[tokio::test]
async fn a_message_in_records_of_a_byte_is_refused_at_the_first() {
    let ((_, mut writer), (mut reader, _)) = link_with(settings()).await;
    for byte in framed(b"a message") {
        writer.seal_anything(&[byte]);
    }
    writer.flush().await.unwrap();
    for _ in 0..2 {
        assert!(matches!(reader.next().await, Err(LinkError::Unfilled)));
        assert!(matches!(reader.buffered(), Err(LinkError::Unfilled)));
    }
    assert_eq!(reader.counters().records, 2, "the handshake's and one more were opened");
}

#[tokio::test]
async fn a_record_with_room_left_that_ends_inside_a_message_is_refused() {
    let two = [framed(b"one"), framed(b"two")].concat();
    // Inside the second message, inside its length, and before its first byte.
    for end in [two.len() - 1, two.len() - 5, two.len() - 3] {
        let (messages, ended) = received(&[&two[..end], &two[end..]]).await;
        assert_eq!(messages, [b"one"], "cut at {end}");
        assert!(matches!(ended, Err(LinkError::Unfilled)), "{ended:?}");
    }
    // A byte of room is room, also behind full records.
    let large = framed(&[7; 3 * FULL]);
    let (messages, ended) = received(&[&large[..FULL], &large[FULL..2 * FULL - 1]]).await;
    assert!(messages.is_empty() && matches!(ended, Err(LinkError::Unfilled)), "{ended:?}");
}

#[tokio::test]
async fn messages_share_a_record_and_a_large_one_fills_several_and_a_rest() {
    let two = [framed(b"one"), framed(b"two"), framed(b"")].concat();
    let large = [framed(&[7; 3 * FULL]), framed(b"beside its rest")].concat();
    let (messages, ended) = received(&[
        &two,
        &large[..FULL],
        &large[FULL..2 * FULL],
        &large[2 * FULL..3 * FULL],
        &large[3 * FULL..],
    ])
    .await;
    ended.unwrap();
    assert_eq!(messages, [&b"one"[..], b"two", b"", &[7; 3 * FULL], b"beside its rest"]);
}

#[tokio::test]
async fn a_full_record_may_end_anywhere() {
    let exact = framed(&[7; FULL - MESSAGE_HEADER]);
    // The last two bytes of the record are the first two of a length.
    let split = [framed(&[8; FULL - 2 * MESSAGE_HEADER + 2]), framed(b"more")].concat();
    let (messages, ended) = received(&[&exact, &split[..FULL], &split[FULL..], &framed(b"end")]).await;
    ended.unwrap();
    assert_eq!(messages, [&exact[4..], &split[4..FULL - 2], b"more", b"end"]);
}

/// What an end writes is taken by the other, whatever was queued between which flushes.
#[tokio::test]
async fn what_is_written_is_never_refused() {
    let ((_, mut writer), (mut reader, _)) = link_with(settings()).await;
    let sizes = [0, 1, FULL - 5, FULL - 4, FULL - 3, FULL, 2 * FULL - 4, 3 * FULL, 1 << 20, 2_500_000];
    let sending = tokio::spawn(async move {
        for first in sizes {
            for second in sizes {
                writer.flush().await.unwrap();
                queue(&mut writer, &[first, second]);
                // Begun and dropped, so that what follows is queued behind sealed records.
                tokio::select! {
                    biased;
                    flushed = writer.flush() => flushed.unwrap(),
                    () = std::future::ready(()) => queue(&mut writer, &[second]),
                }
            }
        }
        writer.flush().await.unwrap();
    });
    let (messages, ended) = all(&mut reader).await;
    ended.unwrap();
    assert!(messages.len() >= 2 * sizes.len() * sizes.len());
    sending.await.unwrap();
}

fn queue(writer: &mut LinkWriter, sizes: &[usize]) {
    for size in sizes {
        writer.queue(&vec![9; *size]).unwrap();
    }
}
