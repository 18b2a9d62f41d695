//! What MCP servers need of this machine: variables, and who signs in.

use toolyard_mcp::client::Surroundings;

use crate::folders::Workplace;

/// This machine, as servers may see it.
#[derive(Debug)]
pub(crate) struct Machine;

impl Machine {
    pub(crate) fn new(_workplace: &Workplace) -> Self {
        Self
    }
}

impl Surroundings for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}
