//! What the clients of gateways ask for, in ZooKeeper's records: mostly sense, sometimes nonsense.

use crate::Rng;
use bytes::Bytes;
use troth_zookeeper::acl::{Acl, Id, digest_id, perms};
use troth_zookeeper::jute::Output;
use troth_zookeeper::{Code, opcode};

/// A request: the operation and its record.
pub type Asked = (i32, Bytes);

/// Paths that name nothing, or what is not for everybody.
const ODD: [&str; 9] =
    ["", "n0", "/n0/", "//n0", "/n0/../n1", "/a\u{1}", "/", "/zookeeper", "/zookeeper/config"];

/// How a client talks: what it knows goes into what it asks.
#[derive(Clone, Debug)]
pub struct Talk {
    /// How many nodes stand below the root.
    pub names: u64,
    /// Counts the data that it wrote.
    made: u64,
    /// Who it is, for data and addresses.
    name: u64,
    /// Nodes that it made, and may find again.
    made_nodes: Vec<String>,
}

/// The most nodes that a client remembers.
const REMEMBERED: usize = 8;

fn record(write: impl FnOnce(&mut Output)) -> Bytes {
    let mut out = Output::new();
    write(&mut out);
    out.finish()
}

fn read(path: &str, watch: bool) -> Bytes {
    record(|out| {
        out.text(path).boolean(watch);
    })
}

fn numbered(path: &str, number: i32) -> Bytes {
    record(|out| {
        out.text(path).int(number);
    })
}

/// Steps behind their headers.
fn together(steps: &[Asked]) -> Bytes {
    let header = |code, last| {
        record(|out| {
            out.int(code).boolean(last).int(-1);
        })
    };
    let mut all: Vec<Bytes> = Vec::new();
    for (code, body) in steps {
        all.extend([header(*code, false), body.clone()]);
    }
    all.push(header(opcode::ERROR, true));
    Bytes::from(all.concat())
}

impl Talk {
    /// A client with a number, where so many nodes stand below the root.
    #[must_use]
    pub fn new(name: u64, names: u64) -> Self {
        Self { names, made: 0, name, made_nodes: Vec::new() }
    }

    /// A node that it made.
    pub fn remember(&mut self, path: String) {
        if self.made_nodes.len() == REMEMBERED {
            self.made_nodes.remove(0);
        }
        self.made_nodes.push(path);
    }

    fn path(&self, rng: &mut Rng) -> String {
        let (name, child) = (rng.below(self.names), rng.below(3));
        if !self.made_nodes.is_empty() && rng.below(5) < 2 {
            return rng.pick(&self.made_nodes);
        }
        match rng.below(40) {
            0..18 => format!("/n{name}"),
            18..32 => format!("/n{name}/c{child}"),
            32..35 => format!("/n{name}/c{child}/d"),
            35 => rng.pick(&ODD).to_owned(),
            36 => "/".to_owned(),
            _ => format!("/n{name}"),
        }
    }

    fn data(&mut self, rng: &mut Rng) -> Bytes {
        self.made += 1;
        let mut data = format!("{}.{}", self.name, self.made).into_bytes();
        // Large ones stand in an entry of their own.
        if rng.one_in(12) {
            data.resize(1_500, b'+');
        }
        Bytes::from(data)
    }

    fn version(rng: &mut Rng) -> i32 {
        if rng.one_in(3) { rng.below(3) as i32 } else { -1 }
    }

    fn acl(&self, rng: &mut Rng) -> Vec<Acl> {
        let mine = Id::new("ip", &self.address());
        match rng.below(70) {
            0 => vec![Acl { perms: perms::ALL, id: mine }, Acl::world(perms::READ)],
            1 => vec![Acl { perms: perms::ALL, id: Id::new("ip", "10.0.0.0/30") }],
            2 => vec![Acl { perms: perms::ALL, id: Id::new("auth", "") }],
            3 => vec![
                Acl { perms: perms::ALL, id: Id::new("digest", &digest_id("me:secret")) },
                Acl::world(perms::READ | perms::CREATE | perms::DELETE),
            ],
            4 => vec![Acl::world(rng.below(32) as i32)],
            5 => vec![Acl { perms: perms::ALL, id: Id::new("nobody", "knows") }],
            6 => Vec::new(),
            _ => vec![Acl::world(perms::ALL)],
        }
    }

    /// Where it is, as its gateway attests.
    #[must_use]
    pub fn address(&self) -> String {
        format!("10.0.0.{}", self.name)
    }

    /// Who it is, as its gateway attests.
    pub fn who(&self, rng: &mut Rng) -> Vec<Id> {
        let mut who = vec![Id::new("ip", &self.address())];
        if rng.one_in(3) {
            who.push(Id::new("x509", &format!("CN={}", self.name)));
        }
        if rng.one_in(8) {
            // What no gateway may attest.
            who.push(Id::new("super", ""));
        }
        who
    }

    fn create(&mut self, rng: &mut Rng) -> Asked {
        let flags = match rng.below(40) {
            0..13 => 0,
            13..22 => 1,
            22..26 => 2,
            26..32 => 3,
            32..34 => 4,
            34..37 => 5,
            37..39 => 6,
            _ => rng.pick(&[7, -1]),
        };
        self.create_as(rng, flags)
    }

    fn create_as(&mut self, rng: &mut Rng, flags: i32) -> Asked {
        let mut path = self.path(rng);
        if matches!(flags, 2 | 3 | 6) && path != "/" {
            path.push_str(rng.pick(&["/s-", "-"]));
        }
        let ttl = rng.pick(&[100, 300, 300, 300, 300, 900, 900, 5_000, 0, 1 << 40]);
        let code = match flags {
            5 | 6 => opcode::CREATE_TTL,
            4 => opcode::CREATE_CONTAINER,
            _ => rng.pick(&[opcode::CREATE, opcode::CREATE2]),
        };
        let (data, acl) = (self.data(rng), self.acl(rng));
        let body = record(|out| {
            out.text(&path).buffer(&data).length(acl.len());
            for Acl { perms, id } in &acl {
                out.int(*perms).text(&id.scheme).text(&id.id);
            }
            out.int(flags);
            if code == opcode::CREATE_TTL {
                out.long(ttl);
            }
        });
        (code, body)
    }

    /// A quota on one of the nodes, in one transaction or in parts of it, as the tools do it.
    fn quota(&self, rng: &mut Rng) -> Asked {
        let (name, most) = (rng.below(self.names), rng.range(2, 12));
        let limits = format!("count={most},bytes=-1=;byteHardLimit={};countHardLimit={most}", 40 * most);
        let above = format!("/zookeeper/quota/n{name}");
        let new = |path: &str, data: &str| {
            let body = record(|out| {
                out.text(path).text(data).length(1).int(perms::ALL).text("world").text("anyone").int(0);
            });
            (opcode::CREATE, body)
        };
        let steps = [
            new(&above, ""),
            new(&format!("{above}/zookeeper_limits"), &limits),
            new(&format!("/n{name}/q{}", rng.below(9)), "within"),
            new(&format!("{above}/zookeeper_stats"), "count=0,bytes=0"),
            (opcode::DELETE, numbered(&format!("{above}/zookeeper_limits"), -1)),
            (opcode::DELETE, numbered(&format!("{above}/zookeeper_stats"), -1)),
        ];
        match rng.below(6) {
            0 => (opcode::MULTI, together(&steps[..4])),
            1 => (opcode::MULTI, together(&[&steps[..2], &steps[3..4]].concat())),
            _ => rng.pick(&steps),
        }
    }

    fn set(&mut self, rng: &mut Rng) -> Asked {
        let (path, data, version) = (self.path(rng), self.data(rng), Self::version(rng));
        let body = record(|out| {
            out.text(&path).buffer(&data).int(version);
        });
        (opcode::SET_DATA, body)
    }

    /// What may be a step of a transaction.
    fn step(&mut self, rng: &mut Rng) -> Asked {
        match rng.below(16) {
            0..3 => self.create(rng),
            // Those that mostly go well, so that transactions do.
            3..9 => {
                let flags = rng.pick(&[2, 3]);
                self.create_as(rng, flags)
            }
            9..13 => self.set(rng),
            13..15 => (opcode::DELETE, numbered(&self.path(rng), Self::version(rng))),
            _ => (opcode::CHECK, numbered(&self.path(rng), Self::version(rng))),
        }
    }

    /// A read that need not be ordered.
    pub fn look(&self, rng: &mut Rng) -> Asked {
        let path = self.path(rng);
        match rng.below(20) {
            0..3 => (opcode::EXISTS, read(&path, false)),
            3..10 => (opcode::GET_DATA, read(&path, false)),
            10..13 => (opcode::GET_CHILDREN, read(&path, false)),
            13..16 => (opcode::GET_CHILDREN2, read(&path, false)),
            16 => (opcode::GET_ACL, read(&path, false)),
            17 => (opcode::GET_ALL_CHILDREN_NUMBER, read(&path, false)),
            18 => rng.pick(&[
                (opcode::GET_EPHEMERALS, read(if path.len() > 4 { "/" } else { &path }, false)),
                (opcode::WHO_AM_I, Bytes::new()),
                (opcode::PING, Bytes::new()),
            ]),
            _ => {
                let steps: Vec<Asked> = (0..rng.range(1, 4))
                    .map(|_| {
                        (rng.pick(&[opcode::GET_DATA, opcode::GET_CHILDREN]), read(&self.path(rng), false))
                    })
                    .collect();
                (opcode::MULTI_READ, together(&steps))
            }
        }
    }

    fn watching(&self, rng: &mut Rng, seen: i64) -> Asked {
        let path = self.path(rng);
        match rng.below(12) {
            0..3 => (opcode::EXISTS, read(&path, true)),
            3..6 => (opcode::GET_DATA, read(&path, true)),
            6..8 => (rng.pick(&[opcode::GET_CHILDREN, opcode::GET_CHILDREN2]), read(&path, true)),
            8 => (opcode::ADD_WATCH, numbered(&path, rng.pick(&[0, 0, 1, 1, 2]))),
            9 => (opcode::REMOVE_WATCHES, numbered(&path, rng.pick(&[1, 2, 3, 4]))),
            10 => (opcode::CHECK_WATCHES, numbered(&path, rng.pick(&[1, 2, 3, 4]))),
            _ => {
                let code = rng.pick(&[opcode::SET_WATCHES, opcode::SET_WATCHES2, opcode::SET_WATCHES2]);
                let lists = if code == opcode::SET_WATCHES { 3 } else { 5 };
                let seen = seen - rng.below(4) as i64;
                let body = record(|out| {
                    out.long(seen);
                    for _ in 0..lists {
                        let paths: Vec<String> = (0..rng.below(3)).map(|_| self.path(rng)).collect();
                        out.length(paths.len());
                        paths.iter().for_each(|path| {
                            out.text(path);
                        });
                    }
                });
                (code, body)
            }
        }
    }

    fn nonsense(&self, rng: &mut Rng) -> Asked {
        let codes =
            [opcode::CREATE, opcode::SET_WATCHES2, opcode::MULTI, opcode::RECONFIG, opcode::SASL, 77, -9];
        let length = rng.index(24);
        let body: Vec<u8> = (0..length).map(|_| rng.pick(&[0, 0, 0, 1, 2, 255])).collect();
        (rng.pick(&codes), Bytes::from(body))
    }

    /// Whatever a client may ask, that saw this transaction last.
    pub fn request(&mut self, rng: &mut Rng, seen: i64) -> Asked {
        match rng.below(100) {
            0..26 => self.create(rng),
            26..40 => self.set(rng),
            40..52 => (opcode::DELETE, numbered(&self.path(rng), Self::version(rng))),
            52..72 => self.watching(rng, seen),
            72..79 => self.look(rng),
            79..87 => {
                let steps: Vec<Asked> = (0..rng.range(1, 3)).map(|_| self.step(rng)).collect();
                (opcode::MULTI, together(&steps))
            }
            87 if rng.one_in(2) => self.go_on(rng),
            87..89 => (opcode::CHECK, numbered(&self.path(rng), Self::version(rng))),
            89..91 => (opcode::SYNC, read(&self.path(rng), false)),
            91..94 => self.set_acl(rng),
            94..96 => {
                let (scheme, who) = rng.pick(&[
                    ("digest", "me:secret"),
                    ("digest", "super:secret"),
                    ("ip", ""),
                    ("kerberos", "x"),
                ]);
                let body = record(|out| {
                    out.int(0).text(scheme).text(who);
                });
                (opcode::AUTH, body)
            }
            96 => (opcode::CLOSE_SESSION, Bytes::new()),
            97 => self.quota(rng),
            _ => self.nonsense(rng),
        }
    }

    /// Sequential names go on from elsewhere, now and then from the last number that has no minus sign.
    fn go_on(&self, rng: &mut Rng) -> Asked {
        let number = rng.pick(&[-1, 0, 1, 2, 5, 9, i32::MAX, i32::MAX]);
        // Mostly where it was so before.
        let path = if rng.one_in(4) { self.path(rng) } else { "/n0".to_owned() };
        (opcode::CONTINUE_SEQUENCE, numbered(&path, number))
    }

    fn set_acl(&self, rng: &mut Rng) -> Asked {
        let (path, acl, version) = (self.path(rng), self.acl(rng), Self::version(rng));
        // Where everybody is shut out of the root, nothing happens any more.
        let path = if path.len() < 3 { "/n0".to_owned() } else { path };
        let body = record(|out| {
            out.text(&path).length(acl.len());
            for Acl { perms, id } in &acl {
                out.int(*perms).text(&id.scheme).text(&id.id);
            }
            out.int(version);
        });
        (opcode::SET_ACL, body)
    }
}

/// Whether an answer says that the session is no more, or elsewhere.
#[must_use]
pub fn is_over(error: i32) -> bool {
    error == Code::SessionExpired.number() || error == Code::SessionMoved.number()
}
