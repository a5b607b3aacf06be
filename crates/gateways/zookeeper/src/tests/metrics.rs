//! What a gateway tells of itself.

use super::shell::{Raw, gateway};
use super::support::{World, brief, create, get, hello, open_settings, ping, request, set};
use crate::Settings;
use core::net::SocketAddr;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use troth_client::{ClientError, Course, Way};
use troth_zookeeper::opcode;

async fn scrape(address: SocketAddr) -> String {
    let mut asks = Raw(TcpStream::connect(address).await.expect("somebody listens"));
    asks.0.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").await.expect("it is written");
    let page = String::from_utf8(asks.rest().await).expect("a text");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text;"), "{page}");
    page.split("\r\n\r\n").nth(1).expect("a body").to_owned()
}

#[tokio::test]
async fn the_page_of_metrics_has_what_was_counted() {
    let admin = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let (gateway, address) = gateway(Settings { admin, ..open_settings() }).await;
    let pages = gateway.admin().expect("an address");
    let mut client = Raw(TcpStream::connect(address).await.expect("somebody listens"));
    client.send(&hello(0, 10_000, 0, &[])).await;
    client.receive().await;
    for packet in [
        request(1, opcode::CREATE, &create("/a", "", 0)),
        request(2, opcode::CREATE, &create("/a", "", 0)),
        request(3, opcode::GET_DATA, &get("/a", true)),
        request(4, opcode::SET_DATA, &set("/a", "x")),
        ping(),
    ] {
        client.send(&packet).await;
    }
    for _ in 0..6 {
        client.receive().await;
    }
    // A packet with a length that no packet has.
    let mut wild = Raw(TcpStream::connect(address).await.expect("somebody listens"));
    wild.0.write_all(&u32::MAX.to_be_bytes()).await.expect("it is written");
    assert!(wild.rest().await.is_empty());
    let page = scrape(pages).await;
    for line in [
        "troth_gateway_requests_total{operation=\"create\",outcome=\"ok\"} 1",
        "troth_gateway_requests_total{operation=\"create\",outcome=\"error\"} 1",
        "troth_gateway_requests_total{operation=\"getData\",outcome=\"ok\"} 1",
        "troth_gateway_requests_total{operation=\"ping\",outcome=\"ok\"} 1",
        "troth_gateway_request_duration_seconds_count{path=\"write\"} 3",
        "troth_gateway_request_duration_seconds_bucket{le=\"+Inf\",path=\"write\"} 3",
        "troth_gateway_connections 1",
        "troth_gateway_sessions 1",
        "troth_gateway_handshakes_total{outcome=\"attached\"} 1",
        "troth_gateway_watches_set_total 1",
        "troth_gateway_events_delivered_total 1",
        "troth_gateway_packets_refused_total{reason=\"too_long\"} 1",
        "troth_gateway_held_bound_bytes 536870912",
        "# EOF",
    ] {
        assert!(page.lines().any(|other| other == line), "{line} is not in\n{page}");
    }
    gateway.stop().await;
}

#[test]
fn latencies_are_told_apart_by_how_requests_were_answered() {
    let mut world = World::new();
    let client = world.open(0);
    world.send(client, 1, opcode::EXISTS, &get("/", false));
    world.now += 90;
    world.execute(0);
    world.answer_on(0, &Course { way: Way::Fast, ..Course::default() });
    world.send(client, 2, opcode::EXISTS, &get("/", false));
    world.now += 40_000_000;
    world.execute(0);
    world.answer_on(0, &Course { way: Way::FellBack, ..Course::default() });
    let (measures, _) = world.gateways[0].measured(world.time());
    let of = |path: usize| (measures.latencies[path].buckets[0], measures.latencies[path].buckets[17]);
    assert_eq!([of(0), of(1), of(2)], [(1, 0), (0, 1), (0, 0)]);
    assert_eq!(measures.latencies[0].sum, 90);
}

#[test]
fn ends_and_losses_are_counted_by_their_reasons() {
    let mut world = World::of(1, &Settings { connections_per_address: 2, ..open_settings() });
    let (first, second) = (world.open(0), world.open(0));
    world.connect(0);
    world.send(first, 1, opcode::SET_DATA, &set("/", ""));
    world.fail(0, ClientError::TimedOut);
    world.send(second, 1, opcode::SET_DATA, &set("/", ""));
    world.lose(0);
    let third = world.open(0);
    world.packet(third, bytes::Bytes::from_static(b"x"));
    assert!(brief(world.packets(third)).is_empty());
    let (measures, gauges) = world.gateways[0].measured(world.time());
    assert_eq!(measures.rejected, [0, 1]);
    let ended = |name: &str| {
        measures.ended[crate::machine::ENDED.iter().position(|known| *known == name).expect("a reason")]
    };
    assert_eq!(["unanswered", "events_lost", "malformed"].map(ended), [1, 1, 1]);
    assert_eq!((measures.lost_markers, measures.requests[4][2], gauges.connections), (1, 2, 0));
}
