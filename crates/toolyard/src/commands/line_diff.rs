//! Changes of a settings file, line by line. Removed values are hidden: they may be secrets.

use similar::{ChangeTag, TextDiff};

/// Added lines after `+`, removed ones after `-` without their values.
pub(super) fn changed_lines(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let diff = TextDiff::from_slices(&old, &new);
    let diff_line = |change: similar::Change<&str>| match change.tag() {
        ChangeTag::Equal => None,
        ChangeTag::Delete => Some(format!("- {}", without_value(change.value()))),
        ChangeTag::Insert => Some(format!("+ {}", change.value())),
    };
    diff.iter_all_changes().filter_map(diff_line).collect()
}

/// The name of a key or table; everything else on the line may be a value and becomes `…`.
pub(super) fn without_value(line: &str) -> String {
    let is_plain =
        |text: &str| text.chars().all(|letter| letter.is_alphanumeric() || "_-.[]{}, \t".contains(letter));
    if is_plain(line) {
        return line.to_owned();
    }
    if let Some((name, _)) = line.split_once('=').filter(|(name, _)| is_plain(name)) {
        return format!("{name}= …");
    }
    let quoted = line.split_once("\":").filter(|(name, _)| is_plain(&name.replacen('"', "", 1)));
    match quoted {
        Some((name, value)) if is_plain(value) => format!("{name}\":{value}"),
        Some((name, _)) => format!("{name}\": …"),
        None => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_listed_without_removed_values() {
        let old = "a = 1\n[servers.x]\ncommand = 'old'\nkey = 'Swordfish'\n[z]\n";
        let new = "a = 1\n[servers.x]\ncommand = 'new'\n[servers.y]\nurl = 'u'\n[z]\n";
        let lines = changed_lines(old, new);
        assert_eq!(
            lines,
            ["- command = …", "- key = …", "+ command = 'new'", "+ [servers.y]", "+ url = 'u'"]
        );
        assert_eq!(changed_lines("a\nb\nc\nd\n", "x\nb\nd\ny\n"), ["- a", "+ x", "- c", "+ y"]);
        assert!(changed_lines(old, old).is_empty());
        let json = "{\n  \"a\": {\n    \"key\": \"Swordfish\",\n    \"n\": [\"Swordfish\"]\n  }\n}\n";
        assert_eq!(
            changed_lines(json, "{\n}\n"),
            ["-   \"a\": {", "-     \"key\": …", "-     \"n\": …", "-   }"]
        );
        assert_eq!(changed_lines("args = [\n  '--key=Swordfish',\n]\n", ""), ["- args = …", "- …", "- ]"]);
    }
}
