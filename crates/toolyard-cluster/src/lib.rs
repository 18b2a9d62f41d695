//! Several Toolyard processes as one: calls between processes, and one owner for each session with a stateful server.
//!
//! What processes send each other goes through [`toolyard_core::Peers`], which another crate implements.
