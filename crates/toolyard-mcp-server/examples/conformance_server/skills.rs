//! Skills that the suite reads: two small ones, one with a folder of references.

use aws_lc_rs::digest;
use serde_json::{Value, json};
use toolyard_mcp::{RpcError, error_code};

const MARKDOWN_TYPE: &str = "text/markdown";
const FOLDER_TYPE: &str = "inode/directory";

/// The files of all skills: URI and text.
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
    SKILLS.into_iter().map(|(name, description)| entry(name, description)).collect()
}

fn entry(name: &str, description: &str) -> Value {
    let root = format!("skill://{name}/");
    let files = FILES.into_iter().filter(|(uri, _)| uri.starts_with(&root));
    let resources: Vec<Value> =
        files.map(|(uri, text)| json!({"uri": uri, "digest": digest_of(text), "size": text.len()})).collect();
    json!({
        "uri": format!("{root}SKILL.md"),
        "frontmatter": {"name": name, "description": description},
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
    let manifests = SKILLS.into_iter().map(|(name, description)| {
        json!({"uri": format!("skill://{name}/SKILL.md"), "name": name, "description": description, "mimeType": MARKDOWN_TYPE})
    });
    let others = FILES.into_iter().filter(|(uri, _)| !uri.ends_with("/SKILL.md")).map(|(uri, _)| {
        json!({"uri": uri, "name": file_name(uri), "description": "Belongs to a skill", "mimeType": MARKDOWN_TYPE})
    });
    manifests.chain(others).collect()
}

/// One skill by the URI of its manifest.
pub(crate) fn get(uri: &str) -> Option<Result<Value, RpcError>> {
    let found = SKILLS.into_iter().find(|(name, _)| uri == format!("skill://{name}/SKILL.md"));
    Some(
        found
            .map(|(name, description)| json!({"skill": entry(name, description)}))
            .ok_or_else(|| not_found(uri)),
    )
}

/// One file.
pub(crate) fn read(uri: &str) -> Option<Result<Value, RpcError>> {
    let (uri, text) = FILES.into_iter().find(|(known, _)| *known == uri)?;
    Some(Ok(json!({"contents": [{"uri": uri, "mimeType": MARKDOWN_TYPE, "text": text}]})))
}

/// What is directly in a folder.
pub(crate) fn directory(uri: &str) -> Option<Result<Value, RpcError>> {
    let root = format!("{}/", uri.trim_end_matches('/'));
    let mut children: Vec<Value> = Vec::new();
    for (file, _) in FILES {
        let Some(rest) = file.strip_prefix(&root) else { continue };
        let child = match rest.split_once('/') {
            Some((folder, _)) => {
                json!({"uri": format!("{root}{folder}"), "name": folder, "mimeType": FOLDER_TYPE})
            }
            None => json!({"uri": file, "name": rest, "mimeType": MARKDOWN_TYPE}),
        };
        if !children.contains(&child) {
            children.push(child);
        }
    }
    let exists = !children.is_empty() && uri.starts_with("skill://");
    Some(if exists { Ok(json!({"resources": children})) } else { Err(not_found(uri)) })
}

fn file_name(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap_or(uri)
}

fn not_found(uri: &str) -> RpcError {
    let data = Some(toolyard_core::RawJson::from_value(&json!({"uri": uri})));
    RpcError { code: error_code::INVALID_PARAMS, message: format!("`{uri}` does not exist"), data }
}
