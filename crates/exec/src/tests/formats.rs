//! The formats that replicas must share and disks must keep: a change of any is a change of version.

use super::support::{SMALL, Script, checkpoint, frame, run};
use crate::{Executor, MerkleMap};
use bytes::Bytes;
use troth_core::Execution;
use troth_types::StateFetch;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn digests_of_content() {
    let mut map = MerkleMap::new();
    let mut found = vec![hex(&map.tree_now().digest().0)];
    map.insert(b"key", Bytes::from_static(b"value"));
    found.push(hex(&map.tree_now().digest().0));
    map.insert(b"large", Bytes::from(vec![7; 513]));
    found.push(hex(&map.tree_now().digest().0));
    for number in 0_u32..1000 {
        map.insert(&number.to_le_bytes(), Bytes::from(number.to_string()));
    }
    found.push(hex(&map.tree_now().digest().0));
    let expected = [
        "11f68b508c90f907298386751340154fffb8894378c6e72af6a1e63fc0fd6700",
        "1b3ad7608320239269b92a7a5e8e4468498ae9b39a37a64f5822bf37ec90775f",
        "32e7466f83fc3dc414a575504f64021e6795f096c85c98bcd2340bebdb74d73a",
        "5d2f4c4df86381a1a9036a9b79820d5f989364a464f63a60a351be5dfc36b6fd",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_state_and_its_pieces() {
    let mut executor = Executor::new(Script::default(), SMALL);
    run(&mut executor, &[frame(1, 1, &["set a 1", "tell 2 hi"])]);
    let (seq, digest) = checkpoint(&mut executor);
    assert_eq!(hex(&digest.0), "fed2263e1477ce869aa269eccfc2032fcc60996cd8864078a38aa489f9d4e221");
    assert_eq!(
        hex(&executor.snapshot(seq).expect("kept").encode()),
        "01000100000000000000e80300000000000005000000000000000a0000000063000000000000000118000000010000000000000000000000000000000c000000000000000a0000000063000000000000000218000000010000000000000001000000000000000000000000000000120000000065000000000000000200000000000000010e000000010000000000000002000000686912000000007300000000000000010000000000000001290000000100000000000000010000000000000000000000000000000102000000020000006f6b020000006f6b0200000001610100000031"
    );
    let head = executor.serve(&StateFetch { seq, digest, path: Bytes::new() }).expect("kept");
    assert_eq!(
        hex(&head.content),
        "e8030000000000000105000a00180000630000000000000001010000000000000000000000000000000c000000000000000a0018000063000000000000000201000000000000000100000000000000000000000000000012000e000065000000000000000200000000000000010100000000000000020000006869120029000073000000000000000100000000000000010100000000000000010000000000000000000000000000000102000000020000006f6b020000006f6b02000100016131"
    );
}
