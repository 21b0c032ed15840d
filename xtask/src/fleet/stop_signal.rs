//! SIGINT and SIGTERM end a command in an orderly way, so that nothing stays behind.

use anyhow::{Result, ensure};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Clone, Default)]
pub struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// From now on, the signals do not end this process.
    pub fn install() -> Result<Self> {
        let stop = Self::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (mut interrupts, mut terms) = {
            let _context = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        let received = stop.clone();
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! { _ = interrupts.recv() => {}, _ = terms.recv() => {} }
            });
            received.0.store(true, Ordering::Release);
            eprintln!("fleet: stopping");
        });
        Ok(stop)
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Fails once a signal was received.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.is_set(), "stopped by a signal");
        Ok(())
    }

    /// Waits; fails once a signal was received.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        let end = std::time::Instant::now() + time;
        while std::time::Instant::now() < end {
            self.check()?;
            std::thread::sleep(POLL_INTERVAL.min(time));
        }
        self.check()
    }
}
