//! The homes of this crate pass the suite.

use super::support::{MemoryHome, VolatileHome};
use crate::support::{mac, signature, verifier};
use troth_trusted_host::conformance::logs::{LOG_RULES, LogRule, log_conformance};

#[test]
fn a_durable_home_of_logs_holds_every_rule() {
    for certifier in [mac(), signature()] {
        let report = log_conformance(&mut MemoryHome::new(certifier.clone()), &verifier(&certifier));
        let report = report.expect("no rule is broken");
        assert_eq!(report.held, LOG_RULES);
        assert_eq!(report.not_applicable, []);
    }
}

#[test]
fn a_volatile_home_of_logs_holds_every_rule_but_those_on_its_store() {
    let report = log_conformance(&mut VolatileHome(mac()), &verifier(&mac())).expect("no rule is broken");
    assert_eq!(
        report.not_applicable,
        [LogRule::SameAfterRestart, LogRule::SameAfterEveryRestart, LogRule::HaltedAfterFailingStore]
    );
    assert_eq!(report.held.len() + report.not_applicable.len(), LOG_RULES.len());
}
