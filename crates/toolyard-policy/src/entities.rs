//! Callers and tools as Cedar entities.

use std::collections::{BTreeSet, HashMap, HashSet};

use cedar_policy::{
    Entities, Entity, EntityId, EntityTypeName, EntityUid, RestrictedExpression as Expression,
};
use toolyard_core::{CallerIdentity, Capability, PolicySubject, PolicyTool, SourceKind};

use crate::values::record_of_map;

/// The id of the person at this machine: the command line, stdio, the library, or the gateway's own token.
const LOCAL_CALLER: &str = "local";
/// The id of callers of a gateway that needs no credential.
const ANONYMOUS_CALLER: &str = "anonymous";

/// The types of entities, parsed once.
#[derive(Debug)]
pub(crate) struct EntityTypes {
    caller: EntityTypeName,
    group: EntityTypeName,
    agent: EntityTypeName,
    profile: EntityTypeName,
    source: EntityTypeName,
    tool: EntityTypeName,
    pub(crate) action: EntityUid,
}

/// The caller or the tool cannot be written as a Cedar entity; the call is denied.
///
/// Remedy: see the text; groups and claims come from the issuer: a claim that a policy reads has at most 32 nested levels and
/// 10,000 values. Report it with the call if the values look harmless.
#[derive(Debug, thiserror::Error)]
#[error("the caller or the tool cannot be compared with the policies: {0}")]
pub(crate) struct EntityError(String);

/// What a request is about: entities and their attributes.
#[derive(Debug)]
pub(crate) struct RequestEntities {
    pub(crate) principal: EntityUid,
    pub(crate) resource: EntityUid,
    pub(crate) agent: Option<EntityUid>,
    pub(crate) profile: EntityUid,
    pub(crate) entities: Entities,
}

impl EntityTypes {
    /// `None` only if Cedar does not accept its own syntax.
    pub(crate) fn new() -> Option<Self> {
        let parse = |name: &str| name.parse::<EntityTypeName>().ok();
        Some(Self {
            caller: parse("Caller")?,
            group: parse("Group")?,
            agent: parse("Agent")?,
            profile: parse("Profile")?,
            source: parse("Source")?,
            tool: parse("Tool")?,
            action: entity(&parse("Action")?, "call"),
        })
    }

    pub(crate) fn request_entities(
        &self,
        subject: &PolicySubject<'_>,
        tool: &PolicyTool,
        claims: &BTreeSet<String>,
    ) -> Result<RequestEntities, EntityError> {
        let caller = self.caller(subject.identity.map(AsRef::as_ref), claims)?;
        let tool = self.tool(tool)?;
        let (principal, resource) = (caller.uid(), tool.uid());
        let entities = Entities::from_entities([caller, tool], None).map_err(describe)?;
        let agent = subject.agent.map(|agent| entity(&self.agent, agent));
        Ok(RequestEntities {
            principal,
            resource,
            agent,
            profile: entity(&self.profile, subject.profile),
            entities,
        })
    }

    fn caller(
        &self,
        identity: Option<&CallerIdentity>,
        claims: &BTreeSet<String>,
    ) -> Result<Entity, EntityError> {
        let uid = entity(&self.caller, &caller_id(identity));
        let nobody = CallerIdentity::anonymous();
        let identity = identity.unwrap_or(&nobody);
        let attributes = HashMap::from([
            ("issuer".to_owned(), text(&identity.issuer)),
            ("subject".to_owned(), text(&identity.subject)),
            ("name".to_owned(), text(&identity.name)),
            ("groups".to_owned(), texts(identity.groups.iter().map(String::as_str))),
            ("scopes".to_owned(), texts(identity.scopes.iter().map(String::as_str))),
            ("claims".to_owned(), record_of_map(&identity.claims, claims).map_err(describe)?),
        ]);
        let groups: HashSet<EntityUid> =
            identity.groups.iter().map(|group| entity(&self.group, group)).collect();
        Entity::new(uid, attributes, groups).map_err(describe)
    }

    fn tool(&self, tool: &PolicyTool) -> Result<Entity, EntityError> {
        let source = tool.source.as_str();
        let flag = Expression::new_bool;
        let attributes = HashMap::from([
            ("name".to_owned(), text(&tool.name)),
            ("source".to_owned(), text(source)),
            ("kind".to_owned(), text(&tool.kind.to_string())),
            ("trusted".to_owned(), flag(tool.trusted)),
            ("read_only".to_owned(), flag(tool.hints.read_only)),
            ("destructive".to_owned(), flag(tool.hints.destructive)),
            ("idempotent".to_owned(), flag(tool.hints.idempotent)),
            ("open_world".to_owned(), flag(is_open_world(tool))),
            ("capabilities".to_owned(), texts(tool.capabilities.iter().map(Capability::as_str))),
        ]);
        let id = entity(&self.tool, &format!("{}@{source}", tool.name));
        Entity::new(id, attributes, HashSet::from([entity(&self.source, source)])).map_err(describe)
    }
}

/// The id of a caller in policies: `ISSUER#SUBJECT`, [`LOCAL_CALLER`] or [`ANONYMOUS_CALLER`]. An issuer contains no `#`.
fn caller_id(identity: Option<&CallerIdentity>) -> String {
    match identity {
        Some(identity) if identity.is_distinguished() => format!("{}#{}", identity.issuer, identity.subject),
        Some(identity) if identity.is_anonymous() => ANONYMOUS_CALLER.to_owned(),
        _ => LOCAL_CALLER.to_owned(),
    }
}

/// Whether a tool may pass its arguments outside; assumed of servers and skills that declare nothing.
pub(crate) fn is_open_world(tool: &PolicyTool) -> bool {
    tool.hints.open_world.unwrap_or(tool.kind != SourceKind::Native)
}

fn entity(type_name: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(type_name.clone(), EntityId::new(id))
}

fn text(text: &str) -> Expression {
    Expression::new_string(text.to_owned())
}

fn texts<'a>(texts: impl Iterator<Item = &'a str>) -> Expression {
    Expression::new_set(texts.map(text))
}

#[expect(clippy::needless_pass_by_value, reason = "map_err passes errors by value")]
fn describe(error: impl ToString) -> EntityError {
    EntityError(error.to_string())
}
