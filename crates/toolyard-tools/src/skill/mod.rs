//! Skills: folders with a `SKILL.md`, disclosed in three steps.
//!
//! 1. [`load()`] finds the folders and reads only the frontmatter: name and description.
//! 2. A call of the tool named like the skill reads its instructions, or one of its files.
//! 3. Executable files directly in the folder provide tools of their own. They print tool definitions as JSON for
//!    `--describe`, and the result of a call (`PROGRAM TOOLNAME`, arguments on stdin) as JSON. They run only for the
//!    user's own skills and for skills whose current content the user trusts ([`TrustedSkills`]).
//!
//! This module writes nothing. Trust decisions are passed in as data. Program descriptions are cached in a
//! [`SkillDescriptionCache`](toolyard_core::SkillDescriptionCache), so that a program runs once per content of its
//! skill, even if it fails.
//!
//! - `scan`, `manifest`: finding skills and parsing `SKILL.md`
//! - `trust`, `content_hash`: which programs may run
//! - `instructions`, `files`: the tool that reads a skill's files
//! - `program`: the tools of a skill's programs
//! - `load`: everything together

mod content_hash;
mod files;
mod instructions;
mod load;
mod manifest;
mod program;
mod scan;
mod trust;

pub use files::SkillFileError;
pub use instructions::SkillTool;
pub use load::{LoadedSkills, SkillSettings, SkillStatus, load};
pub use manifest::{FrontmatterError, Manifest, ManifestError};
pub use program::{MemoryDescriptionCache, SKILL_FOLDER_VARIABLE};
pub use scan::{
    RejectReason, RejectedSkill, ScanReport, ShadowedSkill, Skill, SkillFolder, SkillScope, scan,
};
pub use trust::{TrustError, TrustState, TrustedSkills};
