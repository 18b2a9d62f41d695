//! Extension traits for several processes that serve the same tools together: who holds what, and how they talk.

pub(crate) mod leases;
pub(crate) mod peers;
pub(crate) mod workers;
