//! What `troth restore` says is not as it was.

use crate::cli::Cli;
use crate::restore::differences;
use crate::tests::cluster;
use clap::Parser;
use troth_node::config::{Auth, Cluster, Durability, Protocol, TrustedHome, TrustedKind};

#[test]
fn what_the_new_group_has_otherwise_is_said() {
    let before = cluster("differences", Protocol::MinBft);
    assert!(differences(&before, &before.clone()).is_empty());
    let apart = Cluster { trusted_home: TrustedHome::Process, ..before.clone() };
    assert_eq!(differences(&apart, &before), ["--trusted-home in-process (before: process)"]);
    let memory = Cluster { durability: Durability::Memory, ..before.clone() };
    assert_eq!(differences(&memory, &before), ["--durability always (before: memory)"]);
    let pbft = cluster("differences", Protocol::Pbft);
    let said = differences(&pbft, &before);
    assert_eq!(said, ["protocol minbft (before: pbft)"], "components come with the protocol");
    let tagged = Cluster { auth: Auth::Mac, ..pbft.clone() };
    assert_eq!(differences(&tagged, &pbft), ["--auth signed (before: mac)"]);
    let signing = Cluster { trusted: TrustedKind::Ed25519, ..before.clone() };
    assert_eq!(differences(&signing, &before), ["--trusted hmac (before: ed25519)"]);
}

#[test]
fn a_digest_that_is_not_all_of_one_is_no_digest() {
    let parsed = |digest: &str| {
        Cli::try_parse_from(["troth", "restore", "--from", "there", "--content-digest", digest])
    };
    assert!(parsed(&"0aF9".repeat(16)).is_ok());
    for (digest, has) in [("0af".to_owned(), "has 3 characters"), ("g".repeat(64), "has 'g', which is no")] {
        let said = parsed(&digest).expect_err("it is none").to_string();
        assert!(said.contains("64 hexadecimal digits") && said.contains(has), "{said}");
    }
}
