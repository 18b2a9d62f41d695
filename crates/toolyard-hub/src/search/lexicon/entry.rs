//! Entries of a CC-CEDICT dictionary, line by line: `Traditional Simplified [pin1 yin1] /gloss/gloss/`.

/// One word of a dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// As it is written in Taiwan and Hong Kong.
    pub traditional: String,
    /// As it is written on the mainland.
    pub simplified: String,
    /// How it is said; a capital letter tells a proper name.
    pub pinyin: String,
    /// What it means, in the dictionary's own words.
    pub definitions: Vec<String>,
}

/// The entries of a dictionary; lines that are none, such as comments, are passed over.
pub fn entries(text: &str) -> impl Iterator<Item = Entry> {
    text.lines().filter_map(entry)
}

fn entry(line: &str) -> Option<Entry> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let (traditional, rest) = line.split_once(' ')?;
    let (simplified, rest) = rest.split_once(" [")?;
    let (pinyin, rest) = rest.split_once("] /")?;
    let definitions: Vec<String> = rest
        .split('/')
        .map(str::trim)
        .filter(|definition| !definition.is_empty())
        .map(str::to_owned)
        .collect();
    let whole = ![traditional, simplified].iter().any(|word| word.is_empty() || word.contains(' '));
    (whole && !definitions.is_empty()).then(|| Entry {
        traditional: traditional.to_owned(),
        simplified: simplified.to_owned(),
        pinyin: pinyin.to_owned(),
        definitions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_and_comments_are_passed_over() {
        let text =
            "# CC-CEDICT\r\n#! version=1\r\n刪除 删除 [shan1 chu2] /to delete/to cancel/\r\nnonsense\r\n";
        let read: Vec<Entry> = entries(text).collect();
        assert_eq!(
            read,
            [Entry {
                traditional: "刪除".to_owned(),
                simplified: "删除".to_owned(),
                pinyin: "shan1 chu2".to_owned(),
                definitions: vec!["to delete".to_owned(), "to cancel".to_owned()],
            }]
        );
    }

    #[test]
    fn what_is_no_entry_gives_none() {
        for line in
            ["", "刪除", "刪除 删除", "刪除 删除 [shan1 chu2]", "刪除 删除 [shan1 chu2] //", " 删除 [a] /x/"]
        {
            assert_eq!(entries(line).count(), 0, "{line:?}");
        }
    }
}
