//! Reads claims of a token.

use serde_json::{Map, Value};

const MAX_GROUPS: usize = 256;
const MAX_NAME_CHARS: usize = 128;

pub(super) type Claims = Map<String, Value>;

/// A time in seconds since 1970 (`NumericDate`); `Ok(None)` if absent, an error if it is not a time.
pub(super) fn time(claims: &Claims, name: &str) -> Result<Option<i64>, ()> {
    /// The year 9999. Larger values overflow sooner or later.
    const MAX_SECONDS: f64 = 253_402_300_799.0;
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|seconds| (0.0..=MAX_SECONDS).contains(seconds)).ok_or(())?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the range was checked; fractions of a second do not count"
    )]
    Ok(Some(seconds as i64))
}

/// Whether the audience is one of these; an error if it is malformed.
pub(super) fn has_audience(claims: &Claims, accepted: &[String]) -> Result<bool, ()> {
    let is_accepted = |audience: &str| accepted.iter().any(|accepted| accepted == audience);
    match claims.get("aud") {
        Some(Value::String(audience)) => Ok(is_accepted(audience)),
        Some(Value::Array(audiences)) => {
            let audiences: Option<Vec<&str>> = audiences.iter().map(Value::as_str).collect();
            Ok(audiences.ok_or(())?.into_iter().any(is_accepted))
        }
        _ => Err(()),
    }
}

/// The scopes: `scope` (RFC 9068), or `scp` as some issuers call it.
pub(super) fn scopes(claims: &Claims) -> Vec<String> {
    let value = claims.get("scope").or_else(|| claims.get("scp"));
    value.map(texts).unwrap_or_default()
}

/// The groups in a claim, whose name may lead into objects: `realm_access.roles`. None if the claim is absent.
///
/// # Errors
/// If there are groups that cannot be read or are too many: a policy may forbid something to a group, so that they must not count as none.
pub(super) fn groups(claims: &Claims, name: &str) -> Result<Vec<String>, &'static str> {
    // OpenID Connect Core, section 5.6.2: the claim is elsewhere, as Microsoft Entra does with many groups.
    let is_elsewhere =
        claims.get("_claim_names").and_then(Value::as_object).is_some_and(|names| names.contains_key(name));
    if is_elsewhere {
        return Err("the groups of the caller are not in the token");
    }
    let groups: Option<Vec<String>> = match lookup(claims, name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) => Some(text.split_whitespace().map(str::to_owned).collect()),
        Some(Value::Array(items)) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    };
    let groups = groups.ok_or("the groups in the token are not texts")?;
    if groups.len() > MAX_GROUPS { Err("the token has more than 256 groups") } else { Ok(groups) }
}

/// A name for the audit log, without control characters; `None` if the claim is absent or not a text.
pub(super) fn name(claims: &Claims, claim: &str) -> Option<String> {
    let name = lookup(claims, claim)?.as_str()?;
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(MAX_NAME_CHARS).collect();
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// A claim by its name, else by the path that its name is.
fn lookup<'a>(claims: &'a Claims, name: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(name) {
        return Some(value);
    }
    let (first, rest) = name.split_once('.')?;
    lookup(claims.get(first)?.as_object()?, rest)
}

/// The texts of a list, or the words of a text.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.split_whitespace().map(str::to_owned).collect(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(value: Value) -> Claims {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn groups_and_scopes_have_several_forms() {
        let claims = claims(json!({
            "groups": ["dev", "ops"], "realm_access": {"roles": ["admin"]}, "https://x.example/g": "a b",
            "scope": "read write",
        }));
        assert_eq!(groups(&claims, "groups").unwrap(), ["dev", "ops"]);
        assert_eq!(groups(&claims, "realm_access.roles").unwrap(), ["admin"]);
        assert_eq!(groups(&claims, "https://x.example/g").unwrap(), ["a", "b"]);
        assert!(groups(&claims, "a.b.c").unwrap().is_empty());
        assert_eq!(scopes(&claims), ["read", "write"]);
        assert_eq!(scopes(&self::claims(json!({"scp": ["a", "b"]}))), ["a", "b"]);
    }

    #[test]
    fn groups_that_cannot_be_read_do_not_count_as_none() {
        let many: Vec<String> = (0..257).map(|number| format!("group{number}")).collect();
        for value in [
            json!({"groups": ["dev", 7]}),
            json!({"groups": {"dev": true}}),
            json!({"groups": 7}),
            json!({"groups": many}),
            json!({"_claim_names": {"groups": "src1"}}),
        ] {
            assert!(groups(&claims(value.clone()), "groups").is_err(), "{value}");
        }
        assert_eq!(groups(&claims(json!({"groups": null})), "groups"), Ok(Vec::new()));
    }

    #[test]
    fn names_have_no_control_characters() {
        let claims = claims(json!({"email": "a\u{1b}[31m\n@x", "empty": "\n", "number": 7}));
        assert_eq!(name(&claims, "email").as_deref(), Some("a[31m@x"));
        assert_eq!((name(&claims, "empty"), name(&claims, "number"), name(&claims, "x")), (None, None, None));
    }
}
