//! Tools that the settings exclude. An excluded tool does not keep a bare name from another server that contests it.

use std::collections::BTreeMap;

use toolyard_core::{NameClaim, SourceId};

use crate::config::{McpServerConfig, ToolFilter};

/// The filters of the servers that do not offer all their tools; a disabled server offers none.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Exclusions(BTreeMap<SourceId, ToolFilter>);

impl Exclusions {
    pub(super) fn of<'a>(configs: impl IntoIterator<Item = &'a McpServerConfig>) -> Self {
        let filter = |config: &McpServerConfig| match config.enabled {
            true => config.tools.clone(),
            false => ToolFilter { only: Some(Vec::new()), without: Vec::new() },
        };
        let filters = configs.into_iter().map(|config| (config.id.clone(), filter(config)));
        Self(filters.filter(|(_, filter)| *filter != ToolFilter::default()).collect())
    }

    /// The claim without its owner, if the settings exclude the owner's tool and this claim contests the name. Other claims
    /// change only by a decision of the operator, such as `servers approve --take-names`.
    pub(super) fn released_claim(&self, tool: &str, stored: &NameClaim) -> Option<NameClaim> {
        let owner = stored.yields_to.as_ref().filter(|_| stored.contests)?;
        let is_excluded = self.0.get(owner).is_some_and(|filter| !filter.allows(tool));
        is_excluded.then(|| NameClaim { yields_to: None, ..stored.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(id: &str) -> McpServerConfig {
        McpServerConfig::stdio(id, "x", Vec::<String>::new())
    }

    #[test]
    fn a_name_is_released_only_by_a_server_that_may_not_offer_the_tool() {
        let (whole, mut filtered, mut disabled) = (config("whole"), config("filtered"), config("disabled"));
        filtered.tools.only = Some(vec!["echo".to_owned()]);
        disabled.enabled = false;
        let exclusions = Exclusions::of([&whole, &filtered, &disabled]);
        for (owner, tool, contests, is_released) in [
            ("whole", "pay", true, false),
            ("filtered", "echo", true, false),
            ("filtered", "pay", true, true),
            ("disabled", "echo", true, true),
            ("disabled", "echo", false, false),
            // The operator removed it, and did not decide who gets its names.
            ("removed", "pay", true, false),
        ] {
            let stored = NameClaim { yields_to: Some(owner.into()), contests, ..NameClaim::default() };
            let released = exclusions.released_claim(tool, &stored);
            assert_eq!(released.is_some(), is_released, "{owner} {tool} {contests}");
            assert!(released.is_none_or(|claim| claim.yields_to.is_none()));
        }
    }
}
