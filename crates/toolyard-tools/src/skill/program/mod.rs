//! Programs of skills as tools: arguments are passed as JSON on stdin, the result is JSON on stdout.
//!
//! - `program_tool`: a program and its tools
//! - `process`: running a program within limits
//! - `description`: parsing the output of `--describe`
//! - `discovery`: describing all programs, with a cache
//! - `description_cache`: the cache in memory

mod description;
mod description_cache;
mod discovery;
mod process;
mod program_tool;

pub use description_cache::MemoryDescriptionCache;
pub(super) use discovery::{DescribeRequest, DescribeResult, describe_all};
pub use process::SKILL_FOLDER_VARIABLE;
pub(super) use program_tool::{Program, ProgramEnvironment, ProgramTool, file_name};
