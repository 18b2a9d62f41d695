//! Real servers, and managers to connect to them. `scripts/parts` installs the servers.

pub(crate) mod case;
pub(crate) mod installed;
pub(crate) mod test_manager;
pub(crate) mod test_server;
