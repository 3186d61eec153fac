//! What each suite does.
//!
//! Reading order:
//! - [`findings`]: counts checks and says what is wrong;
//! - [`cargo`]: everything that cargo itself does;
//! - [`hygiene`], [`docs`], [`purity`]: our own checks;
//! - [`scylla`]: the store on a real Cassandra.

pub mod cargo;
pub mod docs;
pub mod findings;
pub mod hygiene;
pub mod purity;
pub mod scylla;
