//! The Felucca server: one binary for gateways and sims.
//!
//! Every decision is made in a pure core that is given the time and an input and answers with effects; threads,
//! sockets and store drivers are shells around the cores.
//!
//! Reading order:
//! - [`identity`]: nodes, boots, nonces;
//! - [`limits`]: every bound and timing, and how they relate;
//! - [`store`]: what is durable, and how a former owner's late write loses;
//! - [`cluster`]: who may simulate what: the claim machine;
//! - [`planted`]: rules that a test build can leave out, to show that this is found;
//! - [`peer`]: the messages between nodes, and what carries them;
//! - [`crossing`]: the flight recorder: how characters came from battle to battle, and what their players felt of it;
//! - [`sim`]: the sim core: regions, characters, handoffs, checkpoints;
//! - [`gateway`]: the gateway core: sessions, interest, views, lanes;
//! - [`config`], [`database`], [`node`]: flags, the `schema` subcommand, and the shells put together; [`pace`]: how their
//!   threads rest;
//! - [`admin`]: what operators see;
//! - [`crash`]: how tests end a node without a word; [`jitter`]: waits that differ; [`clock`], [`sys`]: the two things asked of the system directly.

pub mod admin;
pub mod clock;
pub mod cluster;
pub mod config;
pub mod crash;
pub mod crossing;
pub mod database;
pub mod gateway;
pub mod identity;
mod jitter;
pub mod limits;
pub mod node;
mod pace;
pub mod peer;
pub mod planted;
pub mod sim;
pub mod store;
mod sys;

/// Milliseconds on a node's own clock: only differences mean anything, and only on that node.
pub type Millis = u64;
