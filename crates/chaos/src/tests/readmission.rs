//! What a wipe takes and what it leaves.

use crate::readmission::{Operator, empty};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_wiped_directory_is_empty_and_keeps_its_mode() {
    let disk = tempfile::tempdir().unwrap();
    let data = disk.path().join("data");
    fs::create_dir_all(data.join("snapshots/inner")).unwrap();
    fs::write(data.join("log"), "batches").unwrap();
    fs::write(data.join("snapshots/inner/part"), "state").unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(disk.path().join("secret.toml"), "keys").unwrap();
    empty(&data).unwrap();
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
    assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(disk.path().join("secret.toml").exists());
    assert!(empty(&disk.path().join("absent")).is_err(), "a wipe that finds nothing is an error");
}

#[tokio::test]
async fn the_operators_key_is_there_for_the_order_and_gone_after_it() {
    let disk = tempfile::tempdir().unwrap();
    let (key, machine, program) =
        (disk.path().join("key"), disk.path().join("machine"), disk.path().join("admin"));
    fs::create_dir(&machine).unwrap();
    fs::write(&key, "secret").unwrap();
    // Fails where the key is not there, and once where it is: what was not done is repeated.
    fs::write(
        &program,
        "#!/bin/sh\nfor directory; do :; done\ncd \"$directory\" && echo \"$*\" >> said && cat clients/operator.toml && \
         test \"$(wc -l < said)\" -eq 2\n",
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    Operator::new(&program, key).readmit(&machine, 2).await.unwrap();
    assert!(!machine.join("clients").exists());
    let said = fs::read_to_string(machine.join("said")).unwrap();
    assert!(said.starts_with("admin --wait 10 readmit --replica 2 --dir "), "{said}");
}
