//! Skills that the suite reads: two small ones, one with a folder of references.

use aws_lc_rs::digest;
use serde_json::{Value, json};
use toolyard_mcp::{RpcError, error_code};

const MANIFEST: &str = "text/markdown";
const FOLDER: &str = "inode/directory";

/// The files of all skills: URI, name, MIME type, text.
const FILES: [(&str, &str); 3] = [
    (
        "skill://count-words/SKILL.md",
        "---\nname: count-words\ndescription: Counts the words of a text\n---\n# Count words\n\nSee references/rules.md.\n",
    ),
    ("skill://count-words/references/rules.md", "# Rules\n\nA word is what stands between two blanks.\n"),
    (
        "skill://greet/SKILL.md",
        "---\nname: greet\ndescription: Greets somebody by name\n---\n# Greet\n\nSay hello, and the name.\n",
    ),
];

/// The skills: name and description.
const SKILLS: [(&str, &str); 2] =
    [("count-words", "Counts the words of a text"), ("greet", "Greets somebody by name")];

/// The list of skills.
pub(crate) fn entries() -> Vec<Value> {
    SKILLS.into_iter().map(|(name, about)| entry(name, about)).collect()
}

fn entry(name: &str, about: &str) -> Value {
    let root = format!("skill://{name}/");
    let files = FILES.into_iter().filter(|(uri, _)| uri.starts_with(&root));
    let resources: Vec<Value> =
        files.map(|(uri, text)| json!({"uri": uri, "digest": digest_of(text), "size": text.len()})).collect();
    json!({
        "uri": format!("{root}SKILL.md"),
        "frontmatter": {"name": name, "description": about},
        "resources": resources
    })
}

fn digest_of(text: &str) -> String {
    let hash = digest::digest(&digest::SHA256, text.as_bytes());
    let digits: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// The files and folders of skills as resources.
pub(crate) fn resources() -> Vec<Value> {
    let manifests = SKILLS.into_iter().map(|(name, about)| {
        json!({"uri": format!("skill://{name}/SKILL.md"), "name": name, "description": about, "mimeType": MANIFEST})
    });
    let others = FILES.into_iter().filter(|(uri, _)| !uri.ends_with("/SKILL.md")).map(|(uri, _)| {
        json!({"uri": uri, "name": last_of(uri), "description": "Belongs to a skill", "mimeType": MANIFEST})
    });
    manifests.chain(others).collect()
}

/// One skill by the address of its manifest.
pub(crate) fn get(uri: &str) -> Option<Result<Value, RpcError>> {
    let found = SKILLS.into_iter().find(|(name, _)| uri == format!("skill://{name}/SKILL.md"));
    Some(found.map(|(name, about)| json!({"skill": entry(name, about)})).ok_or_else(|| not_there(uri)))
}

/// One file.
pub(crate) fn read(uri: &str) -> Option<Result<Value, RpcError>> {
    let (uri, text) = FILES.into_iter().find(|(known, _)| *known == uri)?;
    Some(Ok(json!({"contents": [{"uri": uri, "mimeType": MANIFEST, "text": text}]})))
}

/// What is directly in a folder.
pub(crate) fn directory(uri: &str) -> Option<Result<Value, RpcError>> {
    let root = format!("{}/", uri.trim_end_matches('/'));
    let mut children: Vec<Value> = Vec::new();
    for (file, _) in FILES {
        let Some(rest) = file.strip_prefix(&root) else { continue };
        let child = match rest.split_once('/') {
            Some((folder, _)) => {
                json!({"uri": format!("{root}{folder}"), "name": folder, "mimeType": FOLDER})
            }
            None => json!({"uri": file, "name": rest, "mimeType": MANIFEST}),
        };
        if !children.contains(&child) {
            children.push(child);
        }
    }
    let is_there = !children.is_empty() && uri.starts_with("skill://");
    Some(if is_there { Ok(json!({"resources": children})) } else { Err(not_there(uri)) })
}

fn last_of(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap_or(uri)
}

fn not_there(uri: &str) -> RpcError {
    let data = Some(toolyard_core::RawJson::from_value(&json!({"uri": uri})));
    RpcError { code: error_code::INVALID_PARAMS, message: format!("`{uri}` does not exist"), data }
}
