//! What a server offers besides tools.
//!
//! - [`server_content`]: prompts, resources and skills as they are listed and cached.
//! - [`skills`]: loads and verifies skills. [`frontmatter`]: the metadata of a SKILL.md.

pub(crate) mod frontmatter;
pub(crate) mod server_content;
pub(crate) mod skills;
