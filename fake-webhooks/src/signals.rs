//! SIGINT and SIGTERM: the first asks a command to end, the next ends it.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// A signal that asks a command to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "no other signal asks for that")]
pub enum StopSignal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// The signals of this process. They are heard on a thread of their own, so that a command whose threads are busy, or that
/// hangs while it ends, can be ended too.
#[derive(Debug)]
pub struct StopSignals {
    heard: mpsc::UnboundedReceiver<StopSignal>,
}

impl StopSignal {
    /// Its name: `SIGINT` or `SIGTERM`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    /// The exit status that a shell shows for a command that the signal ended: 128 and its number.
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

impl StopSignals {
    /// From now on `heeded` signals do not end the process, and [`StopSignals::next`] returns them. The one after those
    /// ends the process at once, with [`StopSignal::exit_status`].
    ///
    /// # Errors
    /// The system refuses to deliver signals, or a thread.
    pub fn listen(heeded: usize) -> io::Result<Self> {
        let (tell, heard) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (mut interrupt, mut terminate) = {
            let _context = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        let listen = async move {
            for count in 1.. {
                let signal = tokio::select! {
                    _ = interrupt.recv() => StopSignal::Interrupt,
                    _ = terminate.recv() => StopSignal::Terminate,
                };
                if count > heeded {
                    std::process::exit(signal.exit_status().into());
                }
                // Who does not wait for it is ending already.
                let _ = tell.send(signal);
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(listen))?;
        Ok(Self { heard })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> StopSignal {
        match self.heard.recv().await {
            Some(signal) => signal,
            // The thread goes on for as long as the process.
            None => std::future::pending().await,
        }
    }
}
