//! Skills: folders with a `SKILL.md`, read in three steps as they are needed.
//!
//! 1. [`load`] finds the folders and reads only the frontmatter: name and description.
//! 2. A call to the tool named like the skill reads its instructions, or one of its files.
//! 3. Executable files directly in the folder are tools of their own: they answer `--describe` with their
//!    description as JSON, and calls (`PROGRAM TOOLNAME`, arguments on stdin) with their result as JSON. They run
//!    only for the operator's own skills and for those that were trusted as they are ([`TrustFile`]).

mod content;
mod describe_cache;
mod description;
mod durable;
mod folder;
mod frontmatter;
mod instructions;
mod load;
mod manifest;
mod process;
mod program;
mod scan;
mod trust;

pub use folder::ResourceError;
pub use frontmatter::FrontmatterError;
pub use instructions::SkillTool;
pub use load::{LoadedSkills, SkillSettings, SkillStatus, load};
pub use manifest::{Manifest, ManifestError};
pub use scan::{RejectReason, RejectedSkill, Scan, ShadowedSkill, Skill, SkillFolder, SkillScope, scan};
pub use trust::{TrustError, TrustFile, TrustState};
