//! Names that are unique across servers: of tools, prompts, and the URIs of skills.

pub(crate) mod prompt_names;
pub(crate) mod skill_uris;
pub(crate) mod tool_names;
