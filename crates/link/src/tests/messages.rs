use super::{link_with, settings, sockets};
use crate::{LinkError, Settings};
use bytes::Bytes;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::consume_budget;

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

#[tokio::test]
async fn messages_of_every_size_arrive_whole_and_in_order() {
    let ((_, mut writer), (mut reader, _)) = link_with(settings()).await;
    let sizes = [0, 1, 100, 65_514, 65_515, 65_516, 65_535, 65_536, 200_000, 3, 5_000_000, 0];
    let sending = tokio::spawn(async move {
        for size in sizes {
            writer.queue(&pattern(size)).unwrap();
        }
        writer.flush().await.unwrap();
        assert_eq!(writer.unsent(), 0);
    });
    for size in sizes {
        assert_eq!(reader.next().await.unwrap().unwrap(), pattern(size));
    }
    sending.await.unwrap();
    assert_eq!(reader.next().await.unwrap(), None, "the peer hung up between messages");
}

#[tokio::test]
async fn both_directions_work_and_small_messages_share_one_call() {
    let ((mut near_reader, mut near_writer), (mut far_reader, mut far_writer)) = link_with(settings()).await;
    for number in 0..100_u8 {
        near_writer.queue(&[number; 100]).unwrap();
    }
    near_writer.flush().await.unwrap();
    let sent = near_writer.counters();
    assert_eq!((sent.messages, sent.calls), (100, 1));
    assert_eq!(sent.bytes, 100 * 104 + 18, "all of them in one record");
    for number in 0..100_u8 {
        let message = match far_reader.buffered().unwrap() {
            Some(message) => message,
            None => far_reader.next().await.unwrap().unwrap(),
        };
        assert_eq!(message, vec![number; 100]);
    }
    assert_eq!(far_reader.counters(), sent);
    assert_eq!(far_reader.buffered().unwrap(), None);
    far_writer.queue_value(&7_u64).unwrap();
    far_writer.flush().await.unwrap();
    assert_eq!(near_reader.next().await.unwrap().unwrap(), Bytes::copy_from_slice(&7_u64.to_le_bytes()));
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_by_sender_and_receiver() {
    let small = Settings { max_message: 1_000, ..settings() };
    let ((_, mut writer), _far) = link_with(small).await;
    assert!(matches!(writer.queue(&pattern(1_001)), Err(LinkError::TooLarge { bytes: 1_001, limit: 1_000 })));
    assert_eq!(writer.unsent(), 0);
    writer.queue(&pattern(1_000)).unwrap();
    // A sender with another limit than the receiver's.
    let (near, far) = super::shake(&super::client(), super::replica().public_key(), settings(), small).await;
    let (_, mut writer) = near.unwrap();
    let (_, mut reader, _) = far.unwrap();
    writer.queue(&pattern(10)).unwrap();
    writer.queue(&pattern(1_001)).unwrap();
    writer.flush().await.unwrap();
    assert_eq!(reader.next().await.unwrap().unwrap(), pattern(10));
    for _ in 0..2 {
        assert!(matches!(reader.next().await, Err(LinkError::TooLarge { bytes: 1_001, limit: 1_000 })));
    }
}

#[tokio::test]
async fn a_limit_can_be_lowered_for_one_peer() {
    let ((_, mut writer), (mut reader, _)) = link_with(settings()).await;
    reader.restrict(1_000);
    reader.restrict(2_000);
    writer.queue(&pattern(1_000)).unwrap();
    writer.queue(&pattern(1_001)).unwrap();
    writer.flush().await.unwrap();
    assert_eq!(reader.next().await.unwrap().unwrap().len(), 1_000);
    assert!(matches!(reader.next().await, Err(LinkError::TooLarge { bytes: 1_001, limit: 1_000 })));
}

#[tokio::test]
async fn a_small_message_does_not_keep_a_large_one_s_memory() {
    let ((_, mut writer), (mut reader, _)) = link_with(settings()).await;
    for size in [1_000_000, 10, 10] {
        writer.queue(&pattern(size)).unwrap();
    }
    let sending = tokio::spawn(async move { writer.flush().await.unwrap() });
    let large = reader.next().await.unwrap().unwrap();
    let small = reader.next().await.unwrap().unwrap();
    assert_eq!((large.len(), &small[..]), (1_000_000, &pattern(10)[..]));
    assert!(large.is_unique(), "neither the reader nor the small message holds on to it");
    assert_eq!(reader.next().await.unwrap().unwrap(), pattern(10));
    sending.await.unwrap();
}

#[tokio::test]
async fn a_writer_holds_a_bounded_amount() {
    let tight = Settings { max_unsent: 1_000, ..settings() };
    let ((_, mut writer), (mut reader, _)) = link_with(tight).await;
    writer.queue(&pattern(2_000)).unwrap();
    assert!(matches!(writer.queue(&[1]), Err(LinkError::Full)));
    writer.flush().await.unwrap();
    writer.queue(&pattern(500)).unwrap();
    assert!(matches!(writer.queue(&pattern(500)), Err(LinkError::Full)));
    writer.flush().await.unwrap();
    assert_eq!(reader.next().await.unwrap().unwrap().len(), 2_000);
    assert_eq!(reader.next().await.unwrap().unwrap().len(), 500);
}

#[tokio::test]
async fn a_reader_that_is_always_behind_does_not_make_the_writer_grow() {
    const UNSENT: usize = 1 << 20;
    const MESSAGE: usize = 64 << 10;
    let tight = Settings { max_unsent: UNSENT, ..settings() };
    // The kernel must not take all that the writer may hold.
    let (near, far) = super::narrow_sockets(64 << 10).await;
    let (caller, answering) = (super::client(), super::replica());
    let key = answering.public_key();
    let (near, far) = tokio::join!(
        crate::initiate(near, &caller, &key, &tight),
        crate::accept(far, &answering, &tight, super::directory)
    );
    let ((_near_reader, mut writer), (_, mut reader, _far_writer)) = (near.unwrap(), far.unwrap());
    let (message, mut most) = (pattern(MESSAGE), 0);
    // As a replica does: queue whatever comes, and write what the socket takes. One message is read
    // whenever it takes no more, so the writer always has something left to write.
    for _ in 0..1_000 {
        while writer.queue(&message).is_ok() {}
        tokio::select! {
            biased;
            flushed = writer.flush() => flushed.unwrap(),
            read = reader.next() => assert_eq!(read.unwrap().unwrap().len(), MESSAGE),
        }
        most = most.max(writer.held());
    }
    assert!(most <= 2 * UNSENT + MESSAGE, "{most} bytes held for {UNSENT} unsent");
}

#[tokio::test]
async fn much_that_waits_is_sealed_in_parts_and_others_have_their_turn() {
    let ((_, mut writer), (mut reader, _)) = link_with(settings()).await;
    let sizes = [5_000_000, 10, 1_048_304, 3_000_000, 100];
    for size in sizes {
        writer.queue(&pattern(size)).unwrap();
    }
    let before = writer.counters().records;
    let mut polls = 0;
    let reading = async {
        for size in sizes {
            assert_eq!(reader.next().await.unwrap().unwrap(), pattern(size));
        }
    };
    let writing = poll_fn(|cx| {
        let sealed = writer.counters().records;
        // As a replica does: each time another future of the same flush.
        let flushed = pin!(writer.flush()).poll(cx);
        assert!(writer.counters().records - sealed <= 16, "no more than a MiB in a turn");
        polls += 1;
        flushed
    });
    let (written, ()) = tokio::join!(writing, reading);
    written.unwrap();
    assert_eq!(writer.unsent(), 0);
    assert!(polls >= 9, "{polls} turns");
    let total: usize = sizes.iter().map(|size| size + 4).sum();
    assert_eq!(
        writer.counters().records - before,
        total.div_ceil(65_519) as u64,
        "all but the last are full"
    );
}

#[tokio::test]
async fn a_flush_that_was_dropped_goes_on_where_it_stopped() {
    let ((_, mut writer), (mut reader, _)) = link_with(settings()).await;
    let size = 12_000_000;
    writer.queue(&pattern(size)).unwrap();
    let unfinished = tokio::time::timeout(Duration::from_millis(50), writer.flush()).await;
    assert!(unfinished.is_err(), "nobody reads: the kernel cannot take it all");
    writer.queue(b"next").unwrap();
    let reading = tokio::spawn(async move {
        (reader.next().await.unwrap().unwrap(), reader.next().await.unwrap().unwrap())
    });
    writer.flush().await.unwrap();
    let (first, second) = reading.await.unwrap();
    assert_eq!((first.len(), &second[..]), (size, &b"next"[..]));
}

/// A client's end behind a relay that passes the handshake and hands the rest to `tamper`.
async fn relayed<F>(
    tamper: impl FnOnce(OwnedReadHalf, OwnedWriteHalf) -> F + Send + 'static,
) -> Result<Option<Bytes>, LinkError>
where
    F: Future<Output = ()> + Send,
{
    let (near, relay_near) = sockets().await;
    let (relay_far, far) = sockets().await;
    tokio::spawn(async move {
        let (mut from_near, to_near) = relay_near.into_split();
        let (from_far, mut to_far) = relay_far.into_split();
        tokio::spawn(pipe(from_far, to_near));
        // The first handshake message, then the record that confirms.
        for header in [3, 2] {
            let mut bytes = vec![0; header];
            from_near.read_exact(&mut bytes).await.unwrap();
            let length = u16::from_le_bytes([bytes[header - 2], bytes[header - 1]]);
            let mut body = vec![0; usize::from(length)];
            from_near.read_exact(&mut body).await.unwrap();
            bytes.extend(body);
            to_far.write_all(&bytes).await.unwrap();
        }
        tamper(from_near, to_far).await;
    });
    let answering = super::replica();
    let caller = super::client();
    let key = answering.public_key();
    let settings = settings();
    let (near, far) = tokio::join!(
        crate::initiate(near, &caller, &key, &settings),
        crate::accept(far, &answering, &settings, super::directory)
    );
    let (_reader, mut writer) = near.unwrap();
    let (_, mut reader, _writer) = far.unwrap();
    writer.queue(&pattern(500)).unwrap();
    writer.flush().await.unwrap();
    drop(writer);
    reader.next().await
}

async fn pipe(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let _ = tokio::io::copy(&mut from, &mut to).await;
}

async fn everything(mut from: OwnedReadHalf) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).await.unwrap();
    bytes
}

#[tokio::test]
async fn the_relay_of_these_tests_is_sound() {
    assert_eq!(relayed(pipe).await.unwrap().unwrap(), pattern(500));
}

#[tokio::test]
async fn a_stream_cut_inside_a_message_is_an_error() {
    let cut = relayed(|from, mut to| async move {
        let bytes = everything(from).await;
        to.write_all(&bytes[..300]).await.unwrap();
    });
    assert!(matches!(cut.await, Err(LinkError::Truncated)));
}

#[tokio::test]
async fn a_changed_or_empty_record_is_an_error() {
    let changed = relayed(|from, mut to| async move {
        let mut bytes = everything(from).await;
        bytes[40] ^= 1;
        to.write_all(&bytes).await.unwrap();
    });
    assert!(matches!(changed.await, Err(LinkError::Forged)));
    let empty = relayed(|_, mut to| async move { to.write_all(&[0, 0]).await.unwrap() });
    assert!(matches!(empty.await, Err(LinkError::Forged)));
}

#[test]
fn the_ends_can_move_between_threads() {
    fn sendable<T: Send>() {}
    sendable::<crate::LinkReader>();
    sendable::<crate::LinkWriter>();
    sendable::<TcpStream>();
}

/// A task that has had its turn is told so by a read that is put off although there is something to read. Whoever took
/// that for an empty socket, and asked again whether it was ready, would ask for ever.
#[test]
#[expect(clippy::disallowed_methods, reason = "somebody must be left who sees that a thread hangs")]
fn a_reader_whose_task_has_had_its_turn_gives_the_thread_back() {
    let (done, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let message = runtime.block_on(async {
            let ((_, mut writer), (mut reader, _)) = link_with(settings()).await;
            writer.queue(b"hello").unwrap();
            writer.flush().await.unwrap();
            reader.socket().readable().await.unwrap();
            let (mut next, mut had_its_turn) = (pin!(reader.next()), false);
            poll_fn(|cx| {
                // All that this poll may do is done before the reader is asked.
                while !had_its_turn && pin!(consume_budget()).poll(cx).is_ready() {}
                had_its_turn = true;
                next.as_mut().poll(cx)
            })
            .await
        });
        let _ = done.send(message.unwrap());
    });
    let message = told.recv_timeout(Duration::from_secs(20)).expect("the reader never gave the thread back");
    assert_eq!(message.as_deref(), Some(&b"hello"[..]));
}
