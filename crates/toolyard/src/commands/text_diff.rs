//! What changes in a settings file, line by line; values that go are not shown, they may be secrets.

/// Longer files are shown as what goes and what comes, without looking for what stays in between.
const MOST_CELLS: usize = 4_000_000;

/// Lines with `+` before what comes and `-` before what goes.
pub(super) fn changed_lines(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (old.get(start..).unwrap_or_default(), new.get(start..).unwrap_or_default());
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let old = old.get(..old.len() - end).unwrap_or_default();
    let new = new.get(..new.len() - end).unwrap_or_default();
    let kept = if old.len().saturating_mul(new.len()) > MOST_CELLS { Vec::new() } else { common(old, new) };
    let mut lines = Vec::new();
    let (mut before, mut after) = (old.iter(), new.iter());
    for stays in kept.iter().map(Some).chain([None]) {
        let is_other = |line: &&&str| Some(*line) != stays;
        lines.extend(before.by_ref().take_while(is_other).map(|line| format!("- {}", without_value(line))));
        lines.extend(after.by_ref().take_while(is_other).map(|line| format!("+ {line}")));
    }
    lines
}

/// The longest common run of lines, in order.
fn common<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<&'a str> {
    // Row by row from the end: how many lines two ends have in common.
    let mut rows = vec![vec![0_u32; new.len() + 1]];
    for old_line in old.iter().rev() {
        let below = rows.last().cloned().unwrap_or_default();
        let mut row = vec![0_u32; new.len() + 1];
        let mut right = 0;
        for (at, new_line) in new.iter().enumerate().rev() {
            let here = if old_line == new_line {
                below.get(at + 1).copied().unwrap_or(0) + 1
            } else {
                below.get(at).copied().unwrap_or(0).max(right)
            };
            if let Some(cell) = row.get_mut(at) {
                *cell = here;
            }
            right = here;
        }
        rows.push(row);
    }
    let length = |from_old: usize, from_new: usize| {
        let row = old.len().checked_sub(from_old).and_then(|row| rows.get(row));
        row.and_then(|row| row.get(from_new)).copied().unwrap_or(0)
    };
    let (mut at, mut found) = ((0, 0), Vec::new());
    while let (Some(old_line), Some(new_line)) = (old.get(at.0), new.get(at.1)) {
        if old_line == new_line {
            found.push(*old_line);
            at = (at.0 + 1, at.1 + 1);
        } else if length(at.0 + 1, at.1) >= length(at.0, at.1 + 1) {
            at.0 += 1;
        } else {
            at.1 += 1;
        }
    }
    found
}

/// The name of a field or a table; whatever else stands there may be a value.
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
    fn what_comes_and_what_goes() {
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
