//! Skills: folders with a `SKILL.md`, read in three steps as they are needed.
//!
//! 1. [`load()`] finds the folders and reads only the frontmatter: name and description.
//! 2. A call to the tool named like the skill reads its instructions, or one of its files.
//! 3. Executable files directly in the folder are tools of their own: they answer `--describe` with their
//!    description as JSON, and calls (`PROGRAM TOOLNAME`, arguments on stdin) with their result as JSON. They run
//!    only for the operator's own skills and for those that were trusted as they are ([`TrustBook`]).
//!
//! Nothing is written here: decisions come in as plain data and are kept by whoever made them, and what programs
//! said about themselves is kept by a [`Descriptions`](toolyard_core::Descriptions), so that they are asked once for
//! every content of their skill, even those that fail to answer.

mod content;
mod describe;
mod description;
mod folder;
mod frontmatter;
mod instructions;
mod load;
mod manifest;
mod memory;
mod process;
mod program;
mod scan;
mod trust;

pub use folder::ResourceError;
pub use frontmatter::FrontmatterError;
pub use instructions::SkillTool;
pub use load::{LoadedSkills, SkillSettings, SkillStatus, load};
pub use manifest::{Manifest, ManifestError};
pub use memory::MemoryDescriptions;
pub use scan::{RejectReason, RejectedSkill, Scan, ShadowedSkill, Skill, SkillFolder, SkillScope, scan};
pub use trust::{TrustBook, TrustError, TrustState};
