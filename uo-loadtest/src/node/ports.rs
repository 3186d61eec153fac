//! Addresses on loopback that nobody uses.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::bail;

/// Below the ports that systems give to outgoing connections: one that is free now stays free while its server is down.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

static GIVEN: AtomicU16 = AtomicU16::new(0);

/// An address that can be listened at. Each is given once by this process.
pub fn free_address() -> anyhow::Result<String> {
    // Two of these programs at once begin in different places.
    let start = (std::process::id() as u16).wrapping_mul(97) % COUNT;
    for _ in 0..COUNT {
        let turn = GIVEN.fetch_add(1, Ordering::Relaxed) % COUNT;
        let address = format!("127.0.0.1:{}", FIRST + (start + turn) % COUNT);
        if TcpListener::bind(&address).is_ok() {
            return Ok(address);
        }
    }
    bail!("no port is free from {FIRST} to {}", FIRST + COUNT - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_is_given_twice() {
        let addresses: std::collections::BTreeSet<String> =
            (0..50).map(|_| free_address().expect("a port")).collect();
        assert_eq!(addresses.len(), 50);
    }
}
