//! API keys of callers: `ty_<id>_<secret>`.
//!
//! ```text
//! key.rs         generating and reading keys
//! new_caller.rs  a caller that is about to be stored
//! verifier.rs    finds the caller of a key in a store
//! ```

pub(crate) mod key;
pub(crate) mod new_caller;
pub(crate) mod verifier;
