//! What one operation costs its servers, item by item: how often each thing happens, times what it costs by itself,
//! beside the processor time that all of it took. docs/internals/cost.md reads it.

mod clock;
pub(crate) mod events;
mod machine;
mod prices;

use crate::Failure;
use crate::cli::{Clients, CostPlan, ServiceName};
use crate::load::Controls;
use crate::marks::Mark;
use crate::null::{DRAIN, OVERHEAD, WARM_UP};
use crate::protocol::Agreed;
use crate::report::load_average;
use crate::variants::{Either, IN_PROCESS, OWN_PROCESS, Running, Setup, read, replicated};
use events::Events;
use machine::Batch;
use prices::{Prices, RECORD, check};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::LocalSet;
use troth_node::config::{Durability, Service, TrustedHome};

/// By how much the sum may miss what was measured.
const TOLERANCE: f64 = 0.2;

/// A line of the account.
struct Item {
    what: &'static str,
    count: f64,
    price: f64,
    /// Whether another line has it in its price.
    within: Option<&'static str>,
}

impl Item {
    fn micros(&self) -> f64 {
        self.count * self.price
    }
}

/// An account: its lines, what was counted, and what the processors were measured to spend.
struct Account {
    name: &'static str,
    clients: Clients,
    items: Vec<Item>,
    events: Events,
}

impl Account {
    fn sum(&self) -> f64 {
        self.items.iter().filter(|item| item.within.is_none()).map(Item::micros).sum()
    }

    /// The sum as a share of what was measured.
    fn share(&self) -> f64 {
        self.sum() / self.events.processor
    }

    fn ok(&self) -> bool {
        (self.share() - 1.0).abs() <= TOLERANCE
    }
}

/// Measures, prints, and tells whether every account comes to what was measured.
pub(crate) fn run(plan: &CostPlan) -> Result<bool, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let limit = (Duration::from_secs(plan.seconds) + WARM_UP + DRAIN) * 5 + OVERHEAD;
    let accounts = LocalSet::new().block_on(&runtime, async {
        tokio::time::timeout(limit, measure(plan))
            .await
            .unwrap_or_else(|_| Err(format!("not done after {} s", limit.as_secs()).into()))
    })?;
    accounts.iter().for_each(print);
    let ok = accounts.iter().all(Account::ok);
    let shares: Vec<String> =
        accounts.iter().map(|account| format!("{:.0} %", account.share() * 100.0)).collect();
    let summary = format!(
        "the accounts come to {} of what was measured: within 20 % {}",
        shares.join(", "),
        if ok { "holds" } else { "does not hold" }
    );
    println!("\n{summary}");
    if plan.json {
        let accounts: Vec<Value> = accounts.iter().map(json_of).collect();
        println!(
            "{}",
            json!({ "summary": summary, "ok": ok, "load_average": load_average(), "accounts": accounts })
        );
    }
    Ok(ok)
}

async fn measure(plan: &CostPlan) -> Result<Vec<Account>, Failure> {
    let directory = std::env::temp_dir().join(format!("troth-cost-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let looked = Prices::look(&directory).await;
    let setup = |clients| Setup {
        service: Service::from(ServiceName::Null),
        durability: Durability::Memory,
        bytes: 0,
        clients,
    };
    let (many, one) =
        (Clients { connections: 16, outstanding: 1000 }, Clients { connections: 1, outstanding: 1 });
    let mut counted = Vec::new();
    for (name, home) in [(OWN_PROCESS, TrustedHome::Process), (IN_PROCESS, TrustedHome::InProcess)] {
        for clients in [many, one] {
            let mut running = replicated(setup(clients), name, Agreed::minbft(1, home)).await?;
            counted.push((name, home, clients, count(&mut running, plan.seconds).await?));
        }
    }
    let mut reading = read(setup(one), IN_PROCESS, Agreed::minbft(1, TrustedHome::InProcess)).await?;
    let reads = count(&mut reading, plan.seconds).await?;
    drop(reading);
    let prices = looked?.between(Prices::look(&directory).await?);
    let turn = turn(&reads, &prices)?;
    // A few small files below the system's own directory for such.
    let _ = std::fs::remove_dir_all(&directory);
    counted
        .into_iter()
        .map(|(name, home, clients, events)| {
            let frames = (events.batch_frames.round() as usize).max(1);
            // A component in another process outlives its replica, whose log must not be behind it.
            let durable = home == TrustedHome::Process;
            let batch = machine::measure(frames, (events.frame_operations.round() as usize).max(1), durable)?;
            let checks = check(events.checked_together.round() as usize)?;
            Ok(Account {
                name,
                clients,
                items: items(durable, &events, &prices, (checks, turn), batch),
                events,
            })
        })
        .collect()
}

/// One warm-up, so many seconds in which events are counted, and a moment in which system calls are.
async fn count(running: &mut Running, seconds: u64) -> Result<Events, Failure> {
    let Either::Replicated(load) = &mut running.load else { unreachable!("it was started as a cluster") };
    let (servers, controls) = (&running.servers, Controls::default());
    controls.go_on.set(true);
    let watch = async {
        tokio::time::sleep(WARM_UP).await;
        let before = Mark::take(servers, &controls).await?;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let after = Mark::take(servers, &controls).await?;
        let mut events = Events::between(&before, &after);
        events.count(servers, &controls).await?;
        controls.go_on.set(false);
        Ok(events)
    };
    let limit = WARM_UP + Duration::from_secs(seconds) + DRAIN;
    let both = async { tokio::try_join!(load.run(&controls), watch) };
    let ((), events) = tokio::time::timeout(limit, both)
        .await
        .map_err(|_| "requests have no outcome; the servers are stuck or far too slow")??;
    Ok(events)
}

/// Microseconds of a turn of the loop beside what the other lines have: the runtime, the lanes, the clocks that charge
/// everybody for what they cause, decoding, encoding, and the code that carries out what the machine wants done. It is what is
/// left of reads of one client alone, of which nothing is checked or ordered, without their system calls, wake-ups, records
/// and memory.
fn turn(reads: &Events, prices: &Prices) -> Result<f64, Failure> {
    if reads.batches > 0.01 || reads.turns == 0.0 {
        return Err("what was to be read was ordered, so a turn of the loop has no price".into());
    }
    let known: f64 = around(false, reads, prices).iter().map(Item::micros).sum();
    Ok(((reads.processor - known) / reads.turns).max(0.0))
}

/// The account of what was counted at these prices: those of a check and of a turn beside the others.
fn items(
    apart: bool,
    events: &Events,
    prices: &Prices,
    (checks, turn): (f64, f64),
    batch: Batch,
) -> Vec<Item> {
    let item = |what, count, price| Item { what, count, price, within: None };
    let within = |what, count, price, of| Item { what, count, price, within: Some(of) };
    const MACHINES: &str = "machines";
    let mut items = vec![
        item("check of a client's signature", events.frames_checked, checks),
        item("reading a frame, with its two hashes", events.frames_checked, batch.frame),
        item("a batch in three machines", events.batches, batch.micros),
        within("  allocations of that", events.batches * batch.allocations, prices.allocation, MACHINES),
        item("turn of the loop, beside the other lines", events.turns, turn),
    ];
    let outside =
        Events { allocations: (events.allocations - events.batches * batch.allocations).max(0.0), ..*events };
    items.extend(around(apart, &outside, prices));
    if apart {
        items.extend([
            item("check of a certificate's signature", events.certificates_checked, checks),
            item("call of the trusted process and back", events.trusted_calls, prices.local_call),
            item("signature in the trusted process", events.trusted_calls, prices.sign),
            item("write of a file, in the kernel's memory", events.of("pwrite64"), prices.file_write),
        ]);
    } else {
        items.push(item("check of a certificate's HMAC", events.certificates_checked, prices.mac));
        items.push(within("  trusted calls, in process", events.trusted_calls, prices.mac, MACHINES));
    }
    items
}

/// The lines of what is around the machines: connections, waiting, and memory that nothing else has in its price.
fn around(apart: bool, events: &Events, prices: &Prices) -> Vec<Item> {
    // A call of the trusted process takes two of each of these, which its price has.
    let local = if apart { 2.0 * events.trusted_calls } else { 0.0 };
    let (sends, receives) = (events.of("sendto") - local, events.of("recvfrom") - local);
    let polls = events.of("epoll_wait") + events.of("ppoll") - local;
    let known = sends + receives + polls + local * 3.0 + events.of("pwrite64");
    let item = |what, count, price| Item { what, count, price, within: None };
    vec![
        item("sealing or opening a record", events.writes + events.reads, prices.seal_and_open / 2.0),
        item("send on a connection", sends, prices.send),
        item("receive with something", events.reads, prices.receive),
        item("receive with nothing", (receives - events.reads).max(0.0), prices.receive_nothing),
        item("epoll_wait or ppoll", polls, prices.poll),
        item("sleep and wake-up", (events.sleeps - local).max(0.0), prices.wake),
        item("other system calls", (events.calls - known).max(0.0), prices.small_call),
        item("allocations outside the machines", events.allocations, prices.allocation),
        item("copying a KiB, to and from records", 3.0 * events.bytes / 1024.0, prices.copy),
        item("log sync", events.syncs, 0.0),
    ]
}

fn print(account: &Account) {
    let (clients, events) = (account.clients, &account.events);
    println!(
        "\n{}, {} clients, {} outstanding: {:.1} operations a frame, {:.1} frames a batch, {:.1} checks at a time",
        account.name,
        clients.connections,
        clients.outstanding,
        events.frame_operations,
        events.batch_frames,
        events.checked_together
    );
    println!(
        "{:<42} {:>12} {:>10} {:>12} {:>7}",
        "per operation, all servers", "count", "µs each", "µs", "share"
    );
    for item in &account.items {
        let share = match item.within {
            None => format!("{:.1} %", 100.0 * item.micros() / events.processor),
            Some(_) => "within".to_owned(),
        };
        let (count, price, micros) = (item.count, item.price, item.micros());
        println!("{:<42} {count:>12.5} {price:>10.3} {micros:>12.4} {share:>7}", item.what);
    }
    println!(
        "{:<42} {:>12} {:>10} {:>12.4} {:>5.1} %",
        "sum",
        "",
        "",
        account.sum(),
        100.0 * account.share()
    );
    println!("{:<42} {:>12} {:>10} {:>12.4}", "measured", "", "", events.processor);
}

fn json_of(account: &Account) -> Value {
    let items: Vec<Value> = account
        .items
        .iter()
        .map(|item| {
            json!({
                "what": item.what.trim(), "count": item.count, "us_each": item.price, "us": item.micros(),
                "within": item.within,
            })
        })
        .collect();
    json!({
        "variant": account.name, "connections": account.clients.connections,
        "outstanding": account.clients.outstanding, "record_bytes": RECORD, "items": items,
        "sum_us": account.sum(), "measured_us": account.events.processor, "share": account.share(),
        "ok": account.ok(),
    })
}
