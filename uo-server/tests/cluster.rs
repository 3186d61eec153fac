//! Whole nodes in one process: each with its own threads and sockets, all on one store in memory. Players come through the
//! client library, over WebSockets; nodes talk over TCP, through doors that a test can shut.
//!
//! The times of the cluster core are shorter than by default, in the same relations, so that a death costs a second.
//! Nothing here sleeps and hopes: a test waits for what `/state` or a client shows, and fails when it does not come.
//!
//! Reading order: `nodes` (nodes, and how they end), `door` (their network), `places` (walks over borders), `player`; then
//! the tests, a file for each kind of trouble.
#![allow(missing_docs, reason = "a test")]

mod cluster {
    pub mod door;
    pub mod nodes;
    pub mod places;
    pub mod player;

    mod crossing;
    mod demand;
    mod failover;
    mod gateways;
    mod moving;
    mod names;
    mod partition;
    mod single;
    mod versions;
}
