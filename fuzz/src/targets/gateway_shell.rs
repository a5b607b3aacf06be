//! What the gateway reads beside packets: requests to its admin port, which anybody may send who reaches it, and the certificates
//! of clients.

use crate::{Bound, Target};
use troth_zookeeper_gateway::fuzzing;

pub(super) const TARGET: Target =
    Target { name: "gateway-shell", run, seeds, bound: Bound::DECODER, longest: 4096 };

/// A certificate that signs itself, of /O=Example/CN=client.
const CERTIFICATE: &str = "3082019a30820141a003020102021439a9dcb7e0a941bf21d409b8c409e737a9340ced300a06082a8648ce3d04030230233110300e060355040a0c074578616d706c65310f300d06035504030c06636c69656e74301e170d3236313132363137303830315a170d3236313230363137303830315a30233110300e060355040a0c074578616d706c65310f300d06035504030c06636c69656e743059301306072a8648ce3d020106082a8648ce3d03010703420004b4475274814cc7c7466c4dd149cd9f6a6ee9351893813fb1856cfe4c16f50dc0041a5361928c9688bdcdb16f07a3177bea1d6b2a3d78781c7675fb2aef1ff317a3533051301d0603551d0e0416041473903b4716d874340e32ea7edabc9cf7c60523a1301f0603551d2304183016801473903b4716d874340e32ea7edabc9cf7c60523a1300f0603551d130101ff040530030101ff300a06082a8648ce3d04030203470030440220603bd804873b07540e8defa03f0143f74600b8fc6c2860602996e7efa3b2495a0220404a9b83aca108e89912723beabfdd807dd38b801e09a72853d9e29a6a022b3c";

fn run(input: &[u8]) {
    let Some((which, bytes)) = input.split_first() else { return };
    if *which == 0 {
        let _ = fuzzing::page(bytes);
    } else {
        let _ = fuzzing::subject(bytes);
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let certificate: Vec<u8> = (0..CERTIFICATE.len() / 2)
        .map(|at| u8::from_str_radix(&CERTIFICATE[2 * at..2 * at + 2], 16).expect("hexadecimal digits"))
        .collect();
    assert_eq!(fuzzing::subject(&certificate).as_deref(), Some("CN=client,O=Example"));
    let pages = ["/metrics", "/commands", "/commands/stats?x=1", "/"];
    let mut seeds: Vec<Vec<u8>> =
        pages.iter().map(|path| [b"\0GET ", path.as_bytes(), b" HTTP/1.1\r\n\r\n"].concat()).collect();
    seeds.push(b"\0POST /metrics HTTP/1.1\r\n\r\n".to_vec());
    seeds.push([&[1][..], &certificate].concat());
    seeds
}
