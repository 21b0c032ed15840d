//! Pseudoterminal of a session.

use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::unix::AsyncFd;

/// Size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

pub(super) struct Terminal {
    ours: AsyncFd<OwnedFd>,
    /// Kept open, so that the terminal does not hang up, and reading does not spin, while the program has it closed.
    theirs: OwnedFd,
}

impl Terminal {
    pub fn open(size: TerminalSize) -> io::Result<Self> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let theirs =
            ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let terminal = Self { ours: super::sys::register_async(ours)?, theirs };
        terminal.resize(size)?;
        Ok(terminal)
    }

    /// The program's stdin, stdout and stderr.
    pub fn descriptors(&self) -> io::Result<[OwnedFd; 3]> {
        Ok([self.theirs.try_clone()?, self.theirs.try_clone()?, self.theirs.try_clone()?])
    }

    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(&self.ours, size)?)
    }

    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.ours.readable().await?;
            let tried =
                ready.try_io(|ours| rustix::io::read(ours.get_ref(), &mut *buffer).map_err(io::Error::from));
            match tried {
                // Hangup.
                Ok(Err(error)) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => return Ok(0),
                Ok(done) => return done,
                Err(_) => {}
            }
        }
    }

    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut ready = self.ours.writable().await?;
            let tried =
                ready.try_io(|ours| rustix::io::write(ours.get_ref(), bytes).map_err(io::Error::from));
            if let Ok(done) = tried {
                bytes = bytes.get(done?..).unwrap_or_default();
            }
        }
        Ok(())
    }
}
