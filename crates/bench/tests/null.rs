//! A measurement as a whole, as short as it can be.

use std::process::Command;

/// The ids of the processes whose command line names this directory.
fn users(of: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("Linux").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    ids.filter(|id| {
        std::fs::read(format!("/proc/{id}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(of))
    })
    .collect()
}

#[test]
fn it_measures_both_and_leaves_nothing_behind() {
    let child = Command::new(env!("CARGO_BIN_EXE_troth-bench"))
        .args(["null", "--seconds", "1", "--rounds", "1", "--connections", "3", "--outstanding", "32"])
        .args(["--bytes", "100", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let directory = format!("troth-bench-{}", child.id());
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("it speaks UTF-8");
    let errors = String::from_utf8_lossy(&output.stderr);

    let last = text.lines().last().unwrap_or_default();
    let result: serde_json::Value =
        serde_json::from_str(last).unwrap_or_else(|why| panic!("{why}: {text}{errors}"));
    for service in ["replicated", "unreplicated"] {
        for (name, value) in result[service].as_object().expect("what was measured, by name") {
            // Only the replicas have each other to talk to.
            if (service, name.as_str()) != ("unreplicated", "bytes_between_servers") {
                assert!(value["median"].as_f64() > Some(0.0), "{service}, {name}: {value}");
            }
        }
    }
    // Whether the claim holds says nothing in a build for tests; that the exit code follows it does.
    let holds = result["ratio"].as_f64() >= result["claim"].as_f64();
    assert_eq!(result["ok"], holds, "{last}");
    assert_eq!(output.status.code(), Some(i32::from(!holds)));

    assert_eq!(users(&directory), Vec::<String>::new(), "servers outlived the measurement");
    assert!(!std::env::temp_dir().join(directory).exists(), "its files are gone");
}
