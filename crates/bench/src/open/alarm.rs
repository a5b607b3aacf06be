//! Waking up at a time, to some ten microseconds. The runtime's own timers count in milliseconds, which is more than
//! most requests take.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;

/// The kernel's timer.
pub(crate) struct Alarm {
    timer: AsyncFd<OwnedFd>,
    set: Option<Instant>,
}

impl Alarm {
    /// One that is not set.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for types whose descriptor may change; this one's cannot"
        )]
        let timer = AsyncFd::new(timer)?;
        Ok(Self { timer, set: None })
    }

    /// Waits until then. It may be dropped and begun again, which costs nothing where the time is the same.
    pub(crate) async fn wait(&mut self, until: Instant) -> io::Result<()> {
        if self.set != Some(until) {
            // No time at all would unset it.
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
            let once = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(left) };
            timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            self.set = Some(until);
        }
        while Instant::now() < until {
            let mut ready = self.timer.readable().await?;
            // How often it went off does not matter; to read it is what makes it silent again.
            match rustix::io::read(self.timer.get_ref(), &mut [0_u8; 8]) {
                Ok(_) | Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(why) => return Err(why.into()),
            }
        }
        Ok(())
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: i64::from(time.subsec_nanos()) }
}
