//! The few socket options that no library offers.
#![allow(unsafe_code, reason = "setsockopt; each call says why it is sound")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

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
