//! Exchanges on NATS: a request and the messages that belong to it, with their order, their loss and their end noticed.

pub(crate) mod frame;
pub(crate) mod incoming;
pub(crate) mod stream;
pub(crate) mod table;
