//! What `troth gateway` takes on its command line.

use crate::cli::Cli;
use clap::Parser;

fn refused(words: &[&str]) -> String {
    let words = ["troth"].iter().chain(words);
    Cli::try_parse_from(words).expect_err("it cannot be").to_string()
}

#[test]
fn an_address_that_is_none_is_answered_with_one() {
    for address in ["2181", ":2181", "zk-1:2181", "localhost", "localhost:", "localhost:port", "127.0.0.1"] {
        for said in [
            refused(&["gateway", "zookeeper", "--listen", address]),
            refused(&["up", &format!("--zookeeper={address}")]),
        ] {
            assert!(said.contains("write an IP address and a port: 127.0.0.1:2181"), "{said}");
        }
    }
    for address in ["localhost:2281", "127.0.0.1:2281", "[::1]:2281", "0.0.0.0:2281"] {
        assert!(
            Cli::try_parse_from(["troth", "gateway", "zookeeper", "--listen", address]).is_ok(),
            "{address}"
        );
        assert!(Cli::try_parse_from(["troth", "up", &format!("--zookeeper={address}")]).is_ok(), "{address}");
    }
    let several = ["troth", "gateway", "zookeeper", "--listen", "localhost:2181,[::1]:2181"];
    assert!(Cli::try_parse_from(several).is_ok());
}

#[test]
fn a_word_that_is_none_is_refused_with_those_that_are() {
    let said = refused(&["gateway", "zookeeper", "--words", "ruok,foo"]);
    assert!(said.contains("foo") && said.contains("mntr, ruok, srst"), "{said}");
    for words in ["*", "ruok,mntr", "srvr, stat"] {
        assert!(Cli::try_parse_from(["troth", "gateway", "zookeeper", "--words", words]).is_ok(), "{words}");
    }
}
