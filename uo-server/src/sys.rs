//! The few things asked of the system that no library offers.
#![allow(unsafe_code, reason = "socket calls; each says why it is sound")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// Makes a socket writable only while nothing written before is still unsent.
///
/// Without it the system queues up to the send buffer of frames that are stale by the time they leave; with it the next
/// delta is computed when the line can really take it.
#[cfg(target_os = "linux")]
pub fn write_only_when_sent(socket: BorrowedFd<'_>) -> io::Result<()> {
    let unsent_bytes: libc::c_uint = 1;
    // SAFETY: the descriptor is open for as long as it is borrowed; the option takes a pointer to an unsigned int of the
    // given length, which lives through the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NOTSENT_LOWAT,
            (&raw const unsent_bytes).cast(),
            size_of_val(&unsent_bytes) as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Elsewhere the send buffer alone bounds what is queued.
#[cfg(not(target_os = "linux"))]
pub fn write_only_when_sent(_: BorrowedFd<'_>) -> io::Result<()> {
    Ok(())
}

/// How many bytes written to a socket have not left this machine yet, or 0 where the system does not say.
///
/// [`write_only_when_sent`] alone does not tell: the system goes on filling a segment that it has begun.
///
/// The caller keeps the socket open through the call; a number that is no socket (any more) gives 0.
#[cfg(target_os = "linux")]
pub fn unsent_bytes(socket: RawFd) -> u32 {
    /// `SIOCOUTQNSD` of `linux/sockios.h`.
    const UNSENT: libc::Ioctl = 0x894B;
    let mut bytes: libc::c_int = 0;
    // SAFETY: this request writes one int to the pointer, which points to one; a bad descriptor is an error, not harm.
    let result = unsafe { libc::ioctl(socket, UNSENT, &raw mut bytes) };
    if result == 0 { bytes.max(0) as u32 } else { 0 }
}

/// How many bytes are unsent: unknown here.
#[cfg(not(target_os = "linux"))]
pub fn unsent_bytes(_: RawFd) -> u32 {
    0
}

/// Raises the limit of open files as far as it may go: each client is one.
pub fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Refused, the old limit stands; the accept loop says when it is reached.
    let _ = setrlimit(Resource::Nofile, limit);
}
