//! What one operation costs its servers, item by item: how often each thing happens, times what it costs by itself,
//! beside the processor time that all of it took. docs/internals/cost.md reads it.

mod clock;
pub(crate) mod events;
mod machine;
mod prices;
mod trusted;

use crate::Failure;
use crate::cli::{Clients, CostPlan, ServiceName};
use crate::load::Controls;
use crate::marks::Mark;
use crate::null::{DRAIN, OVERHEAD, WARM_UP};
use crate::protocol::Agreed;
use crate::report::load_average;
use crate::variants::{Either, IN_PROCESS, OWN_PROCESS, Running, Setup, replicated};
use events::Events;
use machine::Batch;
use prices::{Prices, RECORD};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::task::LocalSet;
use troth_node::config::{Durability, Service, TrustedHome};

/// How long it may take to look at all prices.
const PRICES: Duration = Duration::from_secs(40);
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
    let limit = (Duration::from_secs(plan.seconds) + WARM_UP + DRAIN) * 4 + PRICES * 5 + OVERHEAD;
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
    let accounts = accounts(plan, &directory).await;
    // A few small files below the system's own directory for such.
    let _ = std::fs::remove_dir_all(&directory);
    accounts
}

/// Each account has the prices of right before it and right after it: within a minute the same machine's differ by a third.
async fn accounts(plan: &CostPlan, directory: &Path) -> Result<Vec<Account>, Failure> {
    let (many, one) =
        (Clients { connections: 16, outstanding: 1000 }, Clients { connections: 1, outstanding: 1 });
    let mut accounts = Vec::new();
    let mut before = Prices::look(directory).await?;
    for (name, home) in [(OWN_PROCESS, TrustedHome::Process), (IN_PROCESS, TrustedHome::InProcess)] {
        for clients in [many, one] {
            let setup = Setup {
                service: Service::from(ServiceName::Null),
                durability: Durability::Memory,
                bytes: 0,
                clients,
            };
            let mut running = replicated(setup, name, Agreed::minbft(1, home)).await?;
            // A component in another process outlives its replica, whose log must not be behind it.
            let apart = home == TrustedHome::Process;
            let events = count(&mut running, plan.seconds, apart).await?;
            drop(running);
            let frames = (events.batch_frames.round() as usize).max(1);
            let batch = machine::measure(frames, (events.frame_operations.round() as usize).max(1), apart)?;
            let after = Prices::look(directory).await?;
            let items = items(apart, &events, &before.between(after), batch);
            accounts.push(Account { name, clients, items, events });
            before = after;
        }
    }
    Ok(accounts)
}

/// One warm-up, so many seconds in which events are counted, and a moment in which system calls are.
async fn count(running: &mut Running, seconds: u64, apart: bool) -> Result<Events, Failure> {
    let Either::Replicated(load) = &mut running.load else { unreachable!("it was started as a cluster") };
    let (servers, controls) = (&running.servers, Controls::default());
    controls.go_on.set(true);
    let watch = async {
        tokio::time::sleep(WARM_UP).await;
        let before = Mark::take(servers, &controls).await?;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let after = Mark::take(servers, &controls).await?;
        let mut events = Events::between(&before, &after, apart);
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

/// The account of what was counted at these prices.
fn items(apart: bool, events: &Events, prices: &Prices, batch: Batch) -> Vec<Item> {
    let item = |what, count, price| Item { what, count, price, within: None };
    let within = |what, count, price, of| Item { what, count, price, within: Some(of) };
    const MACHINES: &str = "machines";
    let checks = prices.check(events.checked_together);
    let mut items = vec![
        item("check of a client's signature", events.frames_checked, checks),
        item("reading a frame, with its two hashes", events.frames_checked, batch.frame),
        item("a batch in three machines", events.batches, batch.micros),
        within("  allocations of that", events.batches * batch.allocations, prices.allocation, MACHINES),
    ];
    let outside =
        Events { allocations: (events.allocations - events.batches * batch.allocations).max(0.0), ..*events };
    items.extend(around(apart, &outside, prices));
    if apart {
        const CALL: &str = "trusted call";
        let written = events.trusted_calls * prices.trusted.writes;
        items.extend([
            item("check of a certificate's signature", events.certificates_checked, checks),
            item("call of the trusted process, in both", events.trusted_calls, prices.trusted.micros),
            within("  its signature", events.trusted_calls, prices.sign, CALL),
            within("  its writes of files", written, prices.file_write, CALL),
            item(
                "other write of a file, in the kernel's memory",
                (events.of("pwrite64") - written).max(0.0),
                prices.file_write,
            ),
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
