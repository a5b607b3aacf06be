use crate::import::place::{Place, parse, path, told};

#[test]
fn ensembles_are_named_as_zookeepers_clients_name_them() {
    let place = |servers: &[&str], chroot: &str| {
        let servers = servers.iter().map(|server| (*server).to_owned()).collect();
        Ok(Place { servers, chroot: chroot.to_owned() })
    };
    assert_eq!(parse("zk1:2281"), place(&["zk1:2281"], ""));
    assert_eq!(parse("zk1, zk2:1,10.0.0.3"), place(&["zk1:2181", "zk2:1", "10.0.0.3:2181"], ""));
    assert_eq!(parse("zk1:2181/"), place(&["zk1:2181"], ""));
    assert_eq!(parse("zk1:2181,zk2:2181/app/one"), place(&["zk1:2181", "zk2:2181"], "/app/one"));
    assert_eq!(
        parse("[::1]:2281,::1,[fe80::2]/a"),
        place(&["[::1]:2281", "[::1]:2181", "[fe80::2]:2181"], "/a")
    );
    for bad in ["", "zk1:", "zk1:port", "zk1:99999", ":2181", "zk1,", "zk1//a", "zk1/a/", "zk1/../a"] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn paths_are_those_of_nodes_that_are_the_clients() {
    assert_eq!(path("/"), Ok("/".to_owned()));
    assert_eq!(path("/a/b"), Ok("/a/b".to_owned()));
    assert_eq!(path("/zookeepers"), Ok("/zookeepers".to_owned()));
    for bad in ["", "a", "/a/", "//a", "/a/./b", "/..", "/zookeeper", "/zookeeper/quota"] {
        assert!(path(bad).is_err(), "{bad}");
    }
}

#[test]
fn kinds_are_said_of_a_node_or_of_all_children_of_one() {
    let container = told("/locks/*=container").expect("a kind");
    let hit = |node: &str| container.owner(node);
    assert_eq!((hit("/locks/a"), hit("/locks"), hit("/locks/a/b")), (Some(i64::MIN), None, None));
    let top = told("/*=container").expect("a kind");
    assert_eq!((top.owner("/a"), top.owner("/"), top.owner("/a/b")), (Some(i64::MIN), None, None));
    let ttl = told("/a=b=ttl:5000").expect("a kind");
    assert_eq!((ttl.owner("/a=b"), ttl.owner("/a")), (Some((0xff << 56) | 5000), None));
    for bad in [
        "/a",
        "/a=",
        "/a=ttl:0",
        "/a=ttl:-1",
        "/a=ttl:1099511627776",
        "/a=ttl:x",
        "a=container",
        "/a/=container",
    ] {
        assert!(told(bad).is_err(), "{bad}");
    }
}
