//! Which tools of a server are held until they are approved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which tools of a server are held until they are approved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HeldTools {
    /// None.
    None,
    /// Those that the server adds after its first approval: all of them if the server is not trusted, otherwise those that share
    /// a name with a tool of another source or are riskier than all approved ones.
    #[default]
    Added,
    /// All, also those of the first connection.
    All,
}
