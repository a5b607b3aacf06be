//! A gateway as a child process, beside the replicas of `troth up`. It ends with this process, however that ends.

use super::SERVES;
use crate::failure::{Failure, NOT_DONE};
use crate::processes::code_of;
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use troth_node::config::Layout;

/// The file that it logs to, below the cluster's directory.
pub(crate) const LOG: &str = "gateway.log";
/// How long it may take to serve, or to end when it is told to.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// The gateway.
pub(crate) struct Beside {
    child: Option<Child>,
    log: PathBuf,
}

impl Beside {
    /// Starts it, for clients that connect there.
    pub(crate) fn start(layout: &Layout, listen: SocketAddr) -> Result<Self, Failure> {
        let program =
            std::env::current_exe().map_err(|why| Failure::system("cannot find this program", &why))?;
        let log = layout.root().join(LOG);
        let spawn = || {
            let to = File::create(&log)?;
            Command::new(&program)
                .args(["gateway", "zookeeper", "--until-stdin-ends", "--dir"])
                .arg(layout.root())
                .args(["--listen", &listen.to_string()])
                .stdin(Stdio::piped())
                .stdout(to.try_clone()?)
                .stderr(to)
                .spawn()
        };
        let child = spawn().map_err(|why| Failure::system("cannot start the gateway", &why))?;
        Ok(Self { child: Some(child), log })
    }

    /// Waits until it serves, and says where. Between two looks it calls `pause`, which waits so long and tells whether to
    /// stop: nowhere.
    pub(crate) fn wait_until_serving(
        &mut self,
        pause: impl Fn(Duration) -> bool,
    ) -> Result<Option<String>, Failure> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let ended = self.ended();
            let said = std::fs::read_to_string(&self.log).unwrap_or_default();
            if let Some(code) = ended {
                // Ctrl-C reaches it as it does us, and it may be quicker.
                if said.trim().is_empty() && pause(LOOK) {
                    return Ok(None);
                }
                // It ended cleanly; but there is no gateway, and that is no success.
                let code = if code == 0 { NOT_DONE } else { code };
                return Err(Failure::new(code, format!("the gateway ended at once:\n{}", said.trim_end())));
            }
            // A line that is whole, or part of an address would be taken for it.
            let whole = said.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
            if let Some(place) = whole.filter_map(|line| line.strip_prefix(SERVES)).next() {
                return Ok(Some(place.to_owned()));
            }
            if Instant::now() > give_up {
                let problem = format!(
                    "the gateway does not serve after {} s\n  mend: look at {}",
                    PATIENCE.as_secs(),
                    self.log.display()
                );
                return Err(Failure::new(NOT_DONE, problem));
            }
            if pause(LOOK) {
                return Ok(None);
            }
        }
    }

    /// The exit code with which it has ended by itself. Said once.
    pub(crate) fn ended(&mut self) -> Option<u8> {
        let status = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten())?;
        self.child = None;
        Some(code_of(status))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        drop(child.stdin.take());
        let give_up = Instant::now() + PATIENCE;
        while !matches!(child.try_wait(), Ok(Some(_))) {
            if Instant::now() > give_up {
                // Either may fail only where it has ended meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}
