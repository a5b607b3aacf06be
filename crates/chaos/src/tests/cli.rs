//! What the command line takes and refuses.

use crate::cli::{Home, Plan, Plant, Scenario, Service};
use crate::run::agreed;
use clap::Parser as _;
use troth_node::config::{Auth, Protocol};

fn parse(words: &[&str]) -> Result<Plan, clap::Error> {
    let needed = ["troth-chaos", "--troth", "t", "--judge", "j"];
    Plan::try_parse_from(needed.iter().chain(words))
}

#[test]
fn the_defaults_are_a_short_run() {
    let plan = parse(&[]).unwrap();
    assert_eq!((plan.f, plan.minutes, plan.seed, plan.clients, plan.outstanding), (1, 2, None, 8, 4));
    assert_eq!((plan.service, plan.sessions, plan.gateways), (Service::Kv, 200, 3));
    assert!(!plan.json);
    assert_eq!((plan.trusted_home, plan.scenario, plan.plant), (None, None, None));
    assert_eq!(plan.protocol, Protocol::MinBft);
    assert_eq!((plan.auth, plan.agreement().as_str()), (Auth::Signed, "minbft"));
    assert_eq!(parse(&["--protocol", "pbft"]).unwrap().protocol, Protocol::Pbft);
    assert_eq!(parse(&["--trusted-home", "in-process"]).unwrap().trusted_home, Some(Home::InProcess));
    assert_eq!(parse(&["--scenario", "catch-up"]).unwrap().scenario, Some(Scenario::CatchUp));
    assert_eq!(parse(&["--plant", "skip-log-sync"]).unwrap().plant, Some(Plant::SkipLogSync));
    assert_eq!(parse(&["--service", "zookeeper"]).unwrap().service, Service::Zookeeper);
    let plan = parse(&["--f", "2", "--minutes", "10", "--seed", "7", "--json"]).unwrap();
    assert_eq!((plan.f, plan.minutes, plan.seed, plan.json), (2, 10, Some(7), true));
}

#[test]
fn what_makes_no_run_is_refused() {
    for words in [
        &["--f", "0"][..],
        &["--f", "6"],
        &["--minutes", "0"],
        &["--minutes", "1000"],
        &["--seed", "x"],
        &["--clients", "0"],
        &["--outstanding", "17"],
        &["--recover-within", "0"],
        &["--scenario", "other"],
        &["--plant", "other"],
        &["--plant", "skip-log-sync", "--scenario", "catch-up"],
        &["--trusted-home", "other"],
        &["--protocol", "other"],
        &["--auth", "other"],
        &["--service", "other"],
        &["--service", "zookeeper", "--scenario", "catch-up"],
        &["--service", "zookeeper", "--plant", "skip-log-sync"],
        &["--sessions", "0"],
        &["--gateways", "0"],
        &["minbft"],
    ] {
        assert!(parse(words).is_err(), "{words:?}");
    }
    assert!(Plan::try_parse_from(["troth-chaos", "--troth", "t"]).is_err(), "without a judge");
}

#[test]
fn a_protocol_runs_with_the_proofs_of_requests_that_it_takes() {
    for (name, auth) in [("signed", Auth::Signed), ("mac", Auth::Mac), ("all-signed", Auth::AllSigned)] {
        let plan = parse(&["--protocol", "pbft", "--auth", name]).unwrap();
        assert_eq!(agreed(&plan).unwrap(), (Protocol::Pbft, auth));
        assert_eq!(
            plan.agreement(),
            if name == "signed" { "pbft".to_owned() } else { format!("pbft, auth {name}") }
        );
        for protocol in ["minbft", "a2m-pbft-e", "a2m-pbft-ea"] {
            let made = agreed(&parse(&["--protocol", protocol, "--auth", name]).unwrap());
            assert_eq!(made.is_ok(), auth == Auth::Signed, "{protocol} with {name}: {made:?}");
        }
    }
}
