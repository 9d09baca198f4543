//! Handles SIGINT and SIGTERM: the first signal stops a command gracefully, and the next one terminates it.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// A signal that stops a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "no other signal asks for that")]
pub enum StopSignal {
    /// SIGINT, which Ctrl-C sends.
    Interrupt,
    /// SIGTERM, which `kill` sends by default.
    Terminate,
}

/// The signals that this process receives.
///
/// They are received on a separate thread, so that even a busy or hanging command can be terminated.
#[derive(Debug)]
pub struct StopSignals {
    heard: mpsc::UnboundedReceiver<StopSignal>,
}

impl StopSignal {
    /// Returns the name of the signal: `SIGINT` or `SIGTERM`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    /// Returns the exit status of a command that the signal stopped: 128 plus the signal number.
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

impl StopSignals {
    /// Starts to handle signals; [`StopSignals::next`] returns the first `graceful` signals.
    ///
    /// The signal after these terminates the process with [`StopSignal::exit_status`].
    ///
    /// # Errors
    /// Returns an error if signals or a thread are not available.
    pub fn listen(graceful: usize) -> io::Result<Self> {
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
                if count > graceful {
                    std::process::exit(signal.exit_status().into());
                }
                // Without a receiver, the command is already ending.
                let _ = tell.send(signal);
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(listen))?;
        Ok(Self { heard })
    }

    /// Waits for the next signal and returns it.
    pub async fn next(&mut self) -> StopSignal {
        match self.heard.recv().await {
            Some(signal) => signal,
            // The thread lives as long as the process.
            None => std::future::pending().await,
        }
    }
}
