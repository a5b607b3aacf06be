//! Which floods are results to keep, and under what names.

use crate::flood::kept;

#[test]
fn each_protocol_has_a_file_of_its_own() {
    for minbft in [None, Some("minbft")] {
        assert_eq!(kept(minbft, 60).as_deref(), Some("flood"));
    }
    for protocol in ["pbft", "a2m-pbft-e", "a2m-pbft-ea"] {
        assert_eq!(kept(Some(protocol), 30), Some(format!("flood-{protocol}")));
    }
}

#[test]
fn what_was_measured_for_less_than_is_claimed_is_not_kept() {
    assert_eq!(kept(None, 59), None);
    assert_eq!(kept(Some("minbft"), 30), None);
    assert_eq!(kept(Some("pbft"), 29), None);
}
