//! All servers behind a door as one: what they ask reaches whoever called, and what they offer besides tools is one list.
//!
//! [`AskTheCaller`] is what servers are told of whom they can ask; [`Upstreams`] is everything they offer besides tools;
//! [`LocalSkills`] are skills of this machine, served the same way.

mod asking;
mod index;
mod local_skills;
mod names;
mod pattern;
mod readiness;
mod skill_files;
mod skill_folders;
mod upstreams;

pub use asking::AskTheCaller;
pub use local_skills::LocalSkills;
pub use upstreams::Upstreams;
