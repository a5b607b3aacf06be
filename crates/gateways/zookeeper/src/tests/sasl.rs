//! SASL.

use super::marks::covers;
use super::support::{Client, Packet, World, auth, brief, create, get, open_settings, record, request, set};
use crate::Settings;
use crate::machine::read_fields;
use bytes::Bytes;
use md5::{Digest, Md5};
use troth_zookeeper::jute::Input;
use troth_zookeeper::{Code, opcode};

fn world() -> World {
    let users = [("jaasuser".to_owned(), "jaas_password".to_owned())].into();
    World::of(1, &Settings { users, ..open_settings() })
}

fn token(token: &[u8]) -> Bytes {
    record(|out| {
        out.buffer(token);
    })
}

fn say(world: &mut World, client: Client, xid: i32, words: &str) -> Result<String, i32> {
    let (error, body) = world.ask(client, xid, opcode::SASL, &token(words.as_bytes()));
    let said = Input::new(&body).buffer().expect("a token");
    match said {
        Some(said) if error == 0 => Ok(String::from_utf8(said.to_vec()).expect("a text")),
        None if error != 0 => Err(error),
        other => panic!("error {error} with {other:?}"),
    }
}

fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a client may choose.
#[derive(Clone)]
struct Choice {
    user: &'static str,
    password: &'static str,
    count: &'static str,
    uri: &'static str,
    quality: &'static str,
    instead: Option<&'static str>,
}

const RIGHT: Choice = Choice {
    user: "jaasuser",
    password: "jaas_password",
    count: "00000001",
    uri: "zookeeper/zk-sasl-md5",
    quality: "auth",
    instead: None,
};

/// A client's proof, by the words of RFC 2831, and the server's that it expects.
fn respond(challenge: &str, choice: &Choice) -> (String, String) {
    let Choice { user, password, count, uri, quality, instead } = choice;
    let fields = read_fields(challenge.as_bytes()).expect("a challenge");
    let (realm, nonce) = (&fields["realm"], &fields["nonce"]);
    assert_eq!((fields["algorithm"].as_str(), fields["qop"].as_str()), ("md5-sess", "auth"));
    let cnonce = "abcdef";
    let mut a1 = Md5::digest(format!("{user}:{realm}:{password}")).to_vec();
    a1.extend_from_slice(format!(":{nonce}:{cnonce}").as_bytes());
    a1.extend_from_slice(instead.map_or(String::new(), |instead| format!(":{instead}")).as_bytes());
    let ha1 = hex(Md5::digest(&a1));
    let response = |a2: String| {
        hex(Md5::digest(format!("{ha1}:{nonce}:{count}:{cnonce}:{quality}:{}", hex(Md5::digest(a2)))))
    };
    let mut words = format!(
        "username=\"{user}\",realm=\"{realm}\",nonce=\"{nonce}\",cnonce=\"{cnonce}\",nc={count},qop={quality},\
         digest-uri=\"{uri}\",response={},charset=utf-8",
        response(format!("AUTHENTICATE:{uri}"))
    );
    words += &instead.map_or(String::new(), |instead| format!(",authzid=\"{instead}\""));
    (words, format!("rspauth={}", response(format!(":{uri}"))))
}

#[test]
fn the_proof_is_that_of_the_rfc() {
    // Its own example (§4), with the realm and the service of this server's clients left as they are there: the arithmetic of
    // `respond` above.
    let a1 =
        [&Md5::digest("chris:elwood.innosoft.com:secret")[..], b":OA6MG9tEQGm2hh:OA6MHXh6VqTrRk"].concat();
    let a2 = hex(Md5::digest("AUTHENTICATE:imap/elwood.innosoft.com"));
    let response =
        Md5::digest(format!("{}:OA6MG9tEQGm2hh:00000001:OA6MHXh6VqTrRk:auth:{a2}", hex(Md5::digest(&a1))));
    assert_eq!(hex(response), "d388dad90d4bbd760a152321f2143af7");
}

#[test]
fn who_knows_a_users_password_is_that_user() {
    covers!("ZKG-A1");
    let mut world = world();
    let client = world.open(0);
    let challenge = say(&mut world, client, 1, "").expect("a challenge");
    let (words, proof) = respond(&challenge, &RIGHT);
    assert_eq!(say(&mut world, client, 2, &words), Ok(proof));
    // By its own name too.
    let named = world.open(0);
    let challenge = say(&mut world, named, 1, "").expect("a challenge");
    let (words, proof) = respond(&challenge, &Choice { instead: Some("jaasuser"), ..RIGHT });
    assert_eq!(say(&mut world, named, 2, &words), Ok(proof));
    let owned = record(|out| {
        out.text("/mine").text("").length(1).int(31).text("sasl").text("jaasuser").int(0);
    });
    assert_eq!(world.ask(client, 3, opcode::CREATE, &owned).0, 0);
    assert_eq!(world.ask(client, 4, opcode::GET_DATA, &get("/mine", false)).0, 0);
    let other = world.open(0);
    assert_eq!(world.ask(other, 1, opcode::GET_DATA, &get("/mine", false)).0, Code::NoAuth.number());
}

#[test]
fn whoever_does_not_is_told_so_and_closed() {
    covers!("ZKG-A1");
    let mut world = world();
    let refused = Err(Code::AuthFailed.number());
    let spoilt: [&dyn Fn(&str) -> String; 10] = [
        &|challenge| respond(challenge, &Choice { password: "jaas_passwore", ..RIGHT }).0,
        &|challenge| respond(challenge, &Choice { user: "nobody", ..RIGHT }).0,
        &|challenge| respond(&challenge.replace("nonce=\"", "nonce=\"0"), &RIGHT).0,
        &|challenge| respond(&challenge.replace("zk-sasl", "other"), &RIGHT).0,
        &|challenge| respond(challenge, &Choice { count: "00000002", ..RIGHT }).0,
        &|challenge| respond(challenge, &Choice { quality: "auth-int", ..RIGHT }).0,
        &|challenge| respond(challenge, &Choice { instead: Some("admin"), ..RIGHT }).0,
        &|challenge| respond(challenge, &Choice { uri: "imap/elsewhere", ..RIGHT }).0,
        &|challenge| respond(challenge, &RIGHT).0 + ",qop=auth",
        &|_| "nonsense".to_owned(),
    ];
    for spoil in spoilt {
        let client = world.open(0);
        let challenge = say(&mut world, client, 1, "").expect("a challenge");
        assert_eq!(say(&mut world, client, 2, &spoil(&challenge)), refused);
        assert_eq!(world.closed(client), Some(true));
    }
}

#[test]
fn a_proof_counts_for_its_own_connection_and_once() {
    covers!("ZKG-A2");
    let mut world = world();
    let refused = Err(Code::AuthFailed.number());
    let (client, other) = (world.open(0), world.open(0));
    let challenge = say(&mut world, client, 1, "").expect("a challenge");
    let (words, _) = respond(&challenge, &RIGHT);
    say(&mut world, other, 1, "").expect("a challenge");
    assert_eq!(say(&mut world, other, 2, &words), refused, "another connection's");
    assert!(say(&mut world, client, 2, &words).is_ok());
    assert_eq!(say(&mut world, client, 3, &words), refused, "the second time");
    // Nor without having been asked, though the nonce could be known.
    let unasked = world.open(0);
    let nonce: String = (0..8).map(|_| "00").collect();
    let (words, _) = respond(
        &challenge.replace(&read_fields(challenge.as_bytes()).expect("a challenge")["nonce"], &{
            // The connections of this world are numbered, and so are their nonces.
            format!("{:016x}{nonce}", unasked.1.0)
        }),
        &RIGHT,
    );
    assert_eq!(say(&mut world, unasked, 1, &words), refused);
    // Where nobody may, nobody is asked.
    let mut closed = World::new();
    let client = closed.open(0);
    assert_eq!(say(&mut closed, client, 1, ""), refused);
}

#[test]
fn a_proof_stands_in_the_order_of_requests() {
    let mut world = world();
    let client = world.open(0);
    let challenge = say(&mut world, client, 1, "").expect("a challenge");
    let (words, _) = respond(&challenge, &RIGHT);
    let burst = vec![
        request(2, opcode::CREATE, &create("/a", "", 0)),
        request(3, opcode::SASL, &token(words.as_bytes())),
        request(4, opcode::WHO_AM_I, &Bytes::new()),
    ];
    world.burst(client, burst);
    world.settle();
    let told = world.take(client);
    let xids: Vec<i32> = told
        .iter()
        .map(|packet| match packet {
            Packet::Reply { xid, error: 0, .. } => *xid,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(xids, [2, 3, 4]);
    let Packet::Reply { body, .. } = &told[2] else { panic!("a reply") };
    assert_eq!(Input::new(body).int(), Ok(2), "its address, and its name");
    assert_eq!(world.ask(client, -4, opcode::AUTH, &auth("digest", "a:b")).0, 0);
}

#[test]
fn nothing_is_done_of_what_stands_behind_a_proof_that_does_not_hold() {
    covers!("ZKG-O6");
    for reads in [false, true] {
        let mut world = world();
        let client = world.open(0);
        let (code, body) = match reads {
            true => (opcode::GET_DATA, get("/", false)),
            false => (opcode::SET_DATA, set("/", "x")),
        };
        world.burst(
            client,
            vec![
                request(1, code, &body),
                request(2, opcode::SASL, &token(b"wrong")),
                request(3, opcode::CREATE, &create("/b", "", 0)),
                request(4, opcode::GET_DATA, &get("/", false)),
            ],
        );
        world.send(client, 5, opcode::CREATE, &create("/c", "", 0));
        let error = i64::from(Code::AuthFailed.number());
        world.settle();
        assert_eq!(brief(&world.take(client)), [(1, 0), (2, error)]);
        assert_eq!(world.closed(client), Some(true));
        let other = world.open(0);
        for path in ["/b", "/c"] {
            assert_eq!(world.ask(other, 1, opcode::EXISTS, &get(path, false)).0, Code::NoNode.number());
        }
    }
}

#[test]
fn fields_are_read_as_they_are_written() {
    let read = |text: &str| read_fields(text.as_bytes()).map(|fields| fields.into_iter().collect::<Vec<_>>());
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(read(""), Some(vec![]));
    assert_eq!(
        read("a=1, b=\"x, \\\"y\\\" = z\" ,c="),
        Some(vec![pair("a", "1"), pair("b", "x, \"y\" = z"), pair("c", "")])
    );
    for wrong in ["a", "a=1,a=2", "a=\"1", "a=\"1\"b=2", "a=\"\\", &format!("a={}", "x".repeat(4096))] {
        assert_eq!(read(wrong), None, "{wrong}");
    }
}
