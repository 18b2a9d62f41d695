//! Which servers of another client are in our own settings, so that the hub can stand in for them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolyard_mcp::config::{
    Place, ServerSettings,
    import::{Client, read},
};

use super::connect_edit::alone;

/// How a server is reached, whatever variables stand for its secrets.
type Reach = (Option<String>, Vec<String>, Option<String>, Option<String>, Vec<(String, String)>);

/// Servers of a client by name, with those of ours that are the same. Each of ours stands for one of theirs: the one of the
/// same name first. Where more of theirs look alike than we have (two accounts of one program), the rest stays theirs.
pub(super) fn taken_over<'t, 'a>(
    client: Client,
    theirs: &'t Map<String, Value>,
    ours: &'a BTreeMap<String, ServerSettings>,
) -> BTreeMap<&'t str, &'a ServerSettings> {
    let mut alike: BTreeMap<Reach, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for (name, server) in theirs {
        let Ok(read) = read(client, &alone(client, name, server), Place::default()) else { continue };
        if let Some(one) = read.servers.first() {
            alike.entry(reach(&one.settings)).or_default().0.push(name);
        }
    }
    for (name, settings) in ours {
        if let Some((_, known)) = alike.get_mut(&reach(settings)) {
            known.push(name);
        }
    }
    let pairs = alike.into_values().flat_map(|(wanted, known)| paired(&wanted, &known));
    pairs.filter_map(|(theirs, own)| Some((theirs, ours.get(own)?))).collect()
}

/// Names that look alike, paired: equal names, then the others if there are enough of ours for all of them.
fn paired<'t, 'a>(wanted: &[&'t str], known: &[&'a str]) -> Vec<(&'t str, &'a str)> {
    let same = |name: &&'t str| known.iter().find(|own| **own == *name).map(|own| (*name, *own));
    let mut pairs: Vec<(&str, &str)> = wanted.iter().filter_map(same).collect();
    let others: Vec<&str> = wanted.iter().filter(|name| !known.contains(*name)).copied().collect();
    let free: Vec<&str> = known.iter().filter(|own| !wanted.contains(*own)).copied().collect();
    if others.len() <= free.len() {
        pairs.extend(others.into_iter().zip(free));
    }
    pairs
}

fn reach(settings: &ServerSettings) -> Reach {
    let ServerSettings { command, args, cwd, url, env, headers, .. } = settings;
    let pairs = env.iter().chain(headers).map(|(name, value)| (name.clone(), without_references(value)));
    let url = url.as_deref().map(|url| without_references(url.trim_end_matches('/')));
    let args = args.iter().map(|text| without_references(text)).collect();
    (command.clone(), args, cwd.clone(), url, pairs.collect())
}

/// The text with every `${…}` made the same.
fn without_references(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        out.push_str("${}");
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_ours_stands_for_one_of_theirs() {
        assert_eq!(
            paired(&["github-home", "github-work"], &["github-work"]),
            [("github-work", "github-work")]
        );
        assert_eq!(paired(&["a"], &["b"]), [("a", "b")], "renamed when it was taken over");
        assert_eq!(paired(&["a", "b"], &["c"]), [], "nobody knows which of the two it is");
        assert_eq!(paired(&["a", "b"], &["b", "c"]), [("b", "b"), ("a", "c")]);
    }
}
