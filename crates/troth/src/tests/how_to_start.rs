//! Commands that are shown to whoever made a cluster.

use crate::how_to_start::{Component, Which, closed_above, words};
use std::os::unix::fs::PermissionsExt;
use troth_node::config::Layout;
use troth_types::ReplicaId;

#[test]
fn a_component_that_would_be_root_s_is_given_a_user_first() {
    let layout = Layout::new("/srv/troth");
    let plain = words(&layout, Which::Each(5), Component::Within);
    assert_eq!(
        plain,
        [
            "Start each replica, for N from 0 to 4:   troth replica --dir /srv/troth --id N",
            "Or all of them here:   troth up --dir /srv/troth",
        ]
    );
    let one = words(&layout, Which::One(ReplicaId(2)), Component::OfRoot);
    let at = |what: &str| one.iter().position(|line| line.contains(what)).expect(what);
    assert!(
        at("chown -R troth-trusted: /srv/troth/trusted-2")
            < at("troth trusted --dir /srv/troth --id 2 --user")
    );
    assert!(
        at("troth trusted")
            < at("troth replica --dir /srv/troth --id 2 --trusted-socket /srv/troth/socket-2/")
    );
    let each = words(&layout, Which::Each(3), Component::OfRoot);
    assert!(each[0].contains("directories are root's") && each[0].contains("ends"), "{each:?}");
    assert!(each[0].contains("`troth init --trusted-user troth-trusted`"), "{each:?}");
    assert!(each[0].contains("for each N from 0 to 2, once, as root:"), "{each:?}");
    assert!(one.iter().all(|line| !line.contains("-N") && !line.contains("troth up")), "{one:?}");
}

/// A component that the replica starts itself ends with it.
#[test]
fn a_component_in_a_process_of_its_own_is_started_before_its_replica() {
    let layout = Layout::new("/srv/troth");
    let one = [
        "  troth trusted --dir /srv/troth --id 1",
        "  troth replica --dir /srv/troth --id 1 --trusted-socket /srv/troth/socket-1/trusted.sock",
    ];
    assert_eq!(words(&layout, Which::One(ReplicaId(1)), Component::Apart), one);
    let each = words(&layout, Which::Each(3), Component::Apart);
    assert_eq!(each[1], "  troth trusted --dir /srv/troth --id N");
    assert!(each[2].ends_with("--id N --trusted-socket /srv/troth/socket-N/trusted.sock"), "{each:?}");
}

#[test]
fn the_way_to_a_directory_is_closed_where_one_of_its_parents_is() {
    let root = std::env::temp_dir().canonicalize().expect("it is there");
    let root = root.join(format!("troth-closed-{}", std::process::id()));
    let inner = root.join("closed").join("cluster");
    std::fs::create_dir_all(&inner).expect("our own directory");
    let mode = |place: &std::path::Path, mode| {
        std::fs::set_permissions(place, PermissionsExt::from_mode(mode)).expect("our own directory");
    };
    for place in [&root, &root.join("closed"), &inner] {
        mode(place, 0o755);
    }
    // What is above is the machine's.
    let above = closed_above(&inner);
    assert!(above.as_ref().is_none_or(|above| !above.starts_with(&root)), "{above:?}");
    mode(&root.join("closed"), 0o700);
    let closed = closed_above(&inner);
    assert_eq!(closed, above.or(Some(root.join("closed"))));
    std::fs::remove_dir_all(&root).expect("our own");
}
