//! The client that imports: a server that sends any bytes, torn anywhere. No more is held of them than the longest packet,
//! and what is read is bounded by what was sent.

use crate::bytes::Steps;
use crate::{Bound, Target};
use bytes::{BufMut, Bytes};
use troth_zookeeper::jute::Output;
use troth_zookeeper_client::wire::{self, Frame, Frames, Packet};

pub(super) const TARGET: Target = Target {
    name: "zookeeper-client",
    run,
    seeds,
    // A name of one byte takes five bytes of a record, and a text of its own in memory.
    bound: Bound { fixed: 64 << 10, per_byte: 256 },
    longest: 4096,
};

/// The longest packet that is taken here.
const LONGEST: usize = 512;

/// Reads a record as everything that it could be.
fn read(body: &Bytes) {
    if let Ok((names, _)) = wire::read_children(body) {
        assert!(names.len() * 4 <= body.len(), "more names than bytes for their lengths");
    }
    if let Ok(acl) = wire::read_acl(body) {
        assert!(acl.len() * 12 <= body.len(), "more entries than bytes for them");
    }
    if let Ok((_, stat)) = wire::read_data(body) {
        assert!(stat.creations() >= 0, "a counter that is none");
        let _ = stat.kind();
    }
    let _ = (wire::read_stat(body), wire::read_connected(body));
}

fn run(input: &[u8]) {
    let mut steps = Steps::new(input);
    let mut frames = Frames::new(LONGEST);
    while !steps.is_over() {
        let chunk = steps.chunk();
        frames.buffer().put_slice(chunk);
        loop {
            match frames.take_next() {
                Ok(Some(Frame::Packet(packet))) => {
                    assert!(packet.len() <= LONGEST, "a packet over the limit");
                    read(&packet);
                    if let Ok(Packet::Reply { body, .. }) = wire::read_packet(&packet) {
                        read(&body);
                    }
                }
                Ok(Some(Frame::TooLong(head, length))) => {
                    assert!(length > LONGEST && head.len() == 16, "the head of a packet over the limit");
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
        assert!(frames.buffer().len() < 4 + LONGEST, "more is held than the longest packet");
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let packet = |fill: &dyn Fn(&mut Output)| {
        let mut out = Output::new();
        out.int(1).long(2).int(0);
        fill(&mut out);
        wire::framed(&out.finish())
    };
    let stat = |out: &mut Output| {
        out.long(3).long(5).long(0).long(0).int(2).int(7).int(0).long(0x77).int(1).int(4).long(9);
    };
    let all = [
        packet(&|out| {
            out.buffer(b"data");
            stat(out);
        }),
        packet(&|out| {
            out.length(2).text("a").text("b");
            stat(out);
        }),
        packet(&|out| {
            out.length(1).int(31).text("world").text("anyone");
        }),
        packet(&stat),
    ];
    let chunk = |bytes: &[u8]| [&[u8::try_from(bytes.len()).expect("short")], bytes].concat();
    let mut seeds: Vec<Vec<u8>> = all.iter().map(|packet| chunk(packet)).collect();
    seeds.push(all.iter().flat_map(|packet| chunk(packet)).collect());
    // One that is too long, and one behind it.
    let long = [&2000_i32.to_be_bytes()[..], &[7; 200]].concat();
    let rest = std::iter::repeat_n(chunk(&[7; 200]), 9).flatten();
    seeds.push(chunk(&long).into_iter().chain(rest).chain(chunk(&all[0])).collect());
    seeds
}
