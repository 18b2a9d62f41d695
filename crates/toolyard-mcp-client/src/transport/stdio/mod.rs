//! Servers that run as child processes and exchange lines over standard input and output.
//!
//! - [`launch`]: command, arguments and environment of a server. [`environment`]: which variables it inherits.
//! - [`executable`]: finds the program. [`process`]: starts and ends it.
//! - [`connection`]: the transport. [`stderr_tail`]: the end of the server's log. [`running_processes`]: which have not ended.

pub(crate) mod connection;
pub(crate) mod environment;
mod executable;
pub(crate) mod launch;
mod process;
pub(crate) mod running_processes;
pub(crate) mod stderr_tail;
