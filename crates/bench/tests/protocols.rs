//! PBFT by what shows whose its clients' frames are, as short as it can be.

use std::process::Command;

#[test]
fn it_measures_pbft_with_signatures_with_authenticators_and_with_everything_signed() {
    let output = Command::new(env!("CARGO_BIN_EXE_troth-bench"))
        .args(["protocols", "--protocol", "pbft", "--f", "1", "--cell", "0/0", "--pairs", "1"])
        .args([
            "--millis",
            "300",
            "--alone-millis",
            "200",
            "--connections",
            "3",
            "--outstanding",
            "32",
            "--json",
        ])
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_default();
    let result: serde_json::Value =
        serde_json::from_str(last).unwrap_or_else(|why| panic!("{why}: {text}{errors}"));

    let groups = &result["pbft_by_auth"]["protocols"];
    let figure = |auth: &str, name: &str| groups[auth][name]["median"].as_f64().expect("a figure");
    for auth in ["signed", "mac", "all-signed"] {
        assert!(
            figure(auth, "operations_per_second") > 0.0 && figure(auth, "alone_p50_us") > 0.0,
            "{groups}"
        );
        assert!(figure(auth, "ratio_to_signed") > 0.0, "{groups}");
    }

    // Nothing is demanded of them: the one gate is that of the cell, in which PBFT is alone.
    let gates = result["gates"].as_array().expect("gates");
    assert_eq!((gates.len(), result["cells"].as_array().map(Vec::len)), (1, Some(1)), "{result}");
    assert_eq!(output.status.code(), Some(i32::from(result["ok"] != true)), "{text}{errors}");
}
