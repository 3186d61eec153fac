//! The gateway: sessions and views, and no game state.
//!
//! Reading order:
//! - [`core`]: the configuration, inputs and effects of the gateway core, and the match that hands them on;
//! - [`connections`], [`session`]: who is connected, and who plays;
//! - [`connect`], [`token`]: login, resume, and how both end; [`greet`]: what a new connection is told;
//! - [`locate`]: from a character to the sim that owns it; [`freeze`]: sims at which everything stands still;
//! - [`route`], [`orders`]: orders to the owner, private messages to the client;
//! - [`subscribe`]: which regions' feeds are needed; [`view`]: what they show, merged;
//! - [`interest`]: who is near what; [`sight`]: what one client knows and how that differs from the view;
//! - [`flush`], [`pulse`]: when and to whom something is written; [`fragment`], [`frames`]: from what;
//! - [`lanes`]: what waits for a connection, by delivery class;
//! - [`gap`]: for how long a player was shown nothing new;
//! - [`stop`], [`counters`]: the end, and what it all came to;
//! - [`lookout`]: what a gateway without a sim knows of the cluster, and [`watch`], its thread;
//! - [`loops`], [`mailbox`], [`accept`], [`connection`], [`mod@line`]: the thread and the sockets around the core.
//!
//! Everything but the last line and `watch` is pure.

pub mod accept;
mod connect;
pub mod connection;
mod connections;
pub mod core;
pub mod counters;
mod flush;
mod fragment;
pub mod frames;
mod freeze;
pub mod gap;
mod greet;
mod interest;
mod lanes;
pub mod line;
mod locate;
pub mod lookout;
pub mod loops;
pub mod mailbox;
mod orders;
mod pulse;
mod route;
mod session;
mod sight;
mod stop;
mod subscribe;
#[cfg(test)]
mod tests;
mod token;
mod told;
mod view;
pub mod watch;
