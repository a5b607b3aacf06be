//! The trusted core stays small enough to be read in one sitting.

fn lines_of_code(source: &str) -> usize {
    source.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn the_line_counts_in_the_crate_documentation_hold() {
    let certifying: usize = [
        include_str!("../../src/value.rs"),
        include_str!("../../src/certificate.rs"),
        include_str!("../../src/key.rs"),
        include_str!("../../src/state.rs"),
        include_str!("../../src/engine.rs"),
    ]
    .map(lines_of_code)
    .iter()
    .sum();
    assert!(certifying < 580, "{certifying} lines certify");
    let around: usize = [
        include_str!("../../src/run.rs"),
        include_str!("../../src/usig.rs"),
        include_str!("../../src/cash.rs"),
    ]
    .map(lines_of_code)
    .iter()
    .sum();
    assert!(around <= 240, "{around} lines for runs and faces");
    let logs: usize = [
        include_str!("../../src/a2m/mod.rs"),
        include_str!("../../src/a2m/log.rs"),
        include_str!("../../src/a2m/operation.rs"),
        include_str!("../../src/a2m/attestation.rs"),
        include_str!("../../src/a2m/logs.rs"),
        include_str!("../../src/a2m/component.rs"),
        include_str!("../../src/a2m/peers.rs"),
        include_str!("../../src/agreement.rs"),
    ]
    .map(lines_of_code)
    .iter()
    .sum();
    assert!(logs <= 730, "{logs} lines for attested logs");
}
