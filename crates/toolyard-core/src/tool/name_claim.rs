//! Which source owns a bare tool name when several sources have a tool of that name.
//!
//! The first source whose tool is approved owns the name. A later source gets a claim that yields to the owner: its tool
//! is called only if the caller names the source, even while the owner does not offer the tool. Claims are stored, so a
//! name changes hands only by a decision of the operator. Settings that exclude the tool of the owner release a contested name
//! for as long as they hold; the stored claims stay.
//!
//! A server that had the tool when the operator added it contests the name: nobody decided between the two, so a call by
//! the bare name is refused while both offer it. A tool that a server adds later does not contest: no server makes the
//! name of another ambiguous by itself.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::SourceId;

/// The claim of one source on the bare name of one of its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameClaim {
    /// When the tool was approved first, in milliseconds since the Unix epoch.
    pub claimed_at: i64,
    /// The source that owned the name at that time; `None` if this one owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yields_to: Option<SourceId>,
    /// Whether the bare name is ambiguous while this source and the owner both offer it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contests: bool,
    /// Whether the operator gave the name to this source; no later claim contests it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_given: bool,
}

/// When a source claims a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimTime {
    /// With its first approved list: the operator just added it.
    FirstApproval,
    /// With a tool that it added later.
    Later,
}

/// The claims of all sources that a process knows. A pure table; the caller stores the claims.
#[derive(Debug)]
pub struct NameClaims {
    by_name: HashMap<Arc<str>, Vec<(SourceId, NameClaim)>>,
    sources: BTreeSet<SourceId>,
}

impl Default for NameClaims {
    /// No claims; the sources of native tools always exist.
    fn default() -> Self {
        Self { by_name: HashMap::new(), sources: SourceId::NATIVE_HINTS.map(SourceId::from).into() }
    }
}

impl NameClaims {
    /// Adds sources. A name that starts with the id of a source and a dot belongs to it.
    pub fn add_sources(&mut self, sources: impl IntoIterator<Item = SourceId>) {
        self.sources.extend(sources);
    }

    /// Removes a source with its claims. Claims that yield to it stay as they are.
    pub fn remove_source(&mut self, source: &SourceId) {
        self.sources.remove(source);
        self.by_name.retain(|_, claims| {
            claims.retain(|(id, _)| id != source);
            !claims.is_empty()
        });
    }

    /// Replaces the claim of a source with a stored one.
    pub fn restore(&mut self, name: &Arc<str>, source: &SourceId, claim: NameClaim) {
        let claims = self.claims_mut(name);
        match claims.iter_mut().find(|(id, _)| id == source) {
            Some((_, known)) => *known = claim,
            None => claims.push((source.clone(), claim)),
        }
    }

    /// The claim of a source.
    pub fn get(&self, name: &str, source: &SourceId) -> Option<&NameClaim> {
        self.claims(name).iter().find(|(id, _)| id == source).map(|(_, claim)| claim)
    }

    /// The claim of a source, made now if it has none. `outranked_by` is a source without claims, such as native tools,
    /// that has the name and precedes this one.
    pub fn claim(
        &mut self,
        name: &Arc<str>,
        source: &SourceId,
        outranked_by: Option<SourceId>,
        time: ClaimTime,
        now: i64,
    ) -> NameClaim {
        if let Some(known) = self.get(name, source) {
            return known.clone();
        }
        let contests = outranked_by.is_none()
            && time == ClaimTime::FirstApproval
            && self.prefix_owner(name, source).is_none()
            && !self.claims(name).iter().any(|(_, claim)| claim.is_given);
        let yields_to = outranked_by.or_else(|| self.holder(name, source).cloned());
        let contests = contests && yields_to.is_some();
        let claim = NameClaim { claimed_at: now, yields_to, contests, is_given: false };
        self.claims_mut(name).push((source.clone(), claim.clone()));
        claim
    }

    /// The source to which a new claim of `source` on the name would yield.
    pub fn holder(&self, name: &str, source: &SourceId) -> Option<&SourceId> {
        let prefix = self.prefix_owner(name, source);
        let contested = || self.claims(name).iter().find_map(|(_, claim)| claim.yields_to.as_ref());
        prefix.or_else(|| self.owner(name)).or_else(contested).filter(|owner| *owner != source)
    }

    /// The other source whose id and a dot the name starts with.
    fn prefix_owner(&self, name: &str, source: &SourceId) -> Option<&SourceId> {
        let dots = name.match_indices('.').filter_map(|(at, _)| name.get(..at));
        dots.filter_map(|prefix| self.sources.get(prefix)).find(|owner| *owner != source)
    }

    /// The source that owns the name: the first of those that yield to none.
    pub fn owner(&self, name: &str) -> Option<&SourceId> {
        let owners = self.claims(name).iter().filter(|(_, claim)| claim.yields_to.is_none());
        owners.min_by_key(|(id, claim)| (claim.claimed_at, id)).map(|(id, _)| id)
    }

    /// Gives the name to a source that has a claim on it, by decision of the operator. All other claims yield to it from
    /// now on. Returns the sources whose claims changed.
    pub fn give(&mut self, name: &str, to: &SourceId) -> Vec<SourceId> {
        let Some(claims) = self.by_name.get_mut(name) else { return Vec::new() };
        if !claims.iter().any(|(id, _)| id == to) {
            return Vec::new();
        }
        let mut changed = Vec::new();
        for (id, claim) in claims {
            let yields_to = (id != to).then(|| to.clone());
            let given =
                NameClaim { yields_to, contests: false, is_given: id == to, claimed_at: claim.claimed_at };
            if *claim != given {
                *claim = given;
                changed.push(id.clone());
            }
        }
        changed
    }

    fn claims(&self, name: &str) -> &[(SourceId, NameClaim)] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    fn claims_mut(&mut self, name: &Arc<str>) -> &mut Vec<(SourceId, NameClaim)> {
        // Most names have one claim.
        self.by_name.entry(Arc::clone(name)).or_insert_with(|| Vec::with_capacity(1))
    }
}

#[cfg(test)]
#[path = "name_claim_tests.rs"]
mod tests;
