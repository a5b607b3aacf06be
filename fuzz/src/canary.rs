//! Targets that fail, to test the instrument: a search that does not find these finds nothing.

use crate::{Bound, Target};

/// One for each thing that is looked for.
pub const CANARIES: &[Target] = &[
    Target { name: "canary-crash", run: crash, seeds: none, bound: Bound::DECODER, longest: 64 },
    Target { name: "canary-hang", run: hang, seeds: none, bound: Bound::DECODER, longest: 64 },
    Target { name: "canary-memory", run: memory, seeds: none, bound: Bound::DECODER, longest: 64 },
];

fn none() -> Vec<Vec<u8>> {
    Vec::new()
}

/// Four bytes that chance alone would not find in the time of a run. Not inlined, so that the search sees the same
/// branches in each canary.
#[inline(never)]
fn is_word(input: &[u8]) -> bool {
    let mut found = 0;
    // Byte by byte, as decoders look at what they are given.
    for (byte, wanted) in input.iter().zip(b"bird") {
        if byte != wanted {
            break;
        }
        found += 1;
    }
    found == 4
}

fn crash(input: &[u8]) {
    assert!(!is_word(input), "the canary sings");
}

fn hang(input: &[u8]) {
    while is_word(input) {
        std::hint::spin_loop();
    }
}

/// As a decoder that believes a length.
fn memory(input: &[u8]) {
    if is_word(input) {
        std::hint::black_box(Vec::<u8>::with_capacity(1 << 20));
    }
}
