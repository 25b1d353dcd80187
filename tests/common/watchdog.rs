use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// Turns a hang into an abort with a message. The clock stops when it is dropped.
#[must_use]
pub(crate) struct Watchdog(#[allow(dead_code)] Sender<()>);

impl Watchdog {
    pub(crate) fn start() -> Self {
        let limit = Duration::from_secs(240);
        let name = std::thread::current()
            .name()
            .unwrap_or("unnamed")
            .to_owned();
        let (stop, stopped) = mpsc::channel::<()>();
        std::thread::Builder::new()
            .name("watchdog".into())
            .spawn(move || {
                if stopped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                    eprintln!("watchdog: `{name}` is not done after {limit:?}: it hangs");
                    std::process::abort();
                }
            })
            .expect("the watchdog's thread");
        Self(stop)
    }
}
