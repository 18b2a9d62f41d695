//! The arithmetic of quotas: what was used within a sliding window. Pure, so that one process and the store count alike.

pub(crate) mod window;
