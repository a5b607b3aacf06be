//! Records as they are written.

use super::{Encoder, LogRecord};
use troth_types::{Seq, Wire};

#[test]
fn an_encoder_writes_what_the_record_does() {
    let mut encoder = Encoder::default();
    for content in [Seq(0), Seq(u64::MAX)] {
        assert_eq!(encoder.machine(&content), LogRecord::Machine(content.to_wire()).to_wire());
        assert_eq!(encoder.sealed(&content), LogRecord::Sealed(content.to_wire()).to_wire());
    }
}
