//! Words that people say whatever they want: how little their match says about a tool.

use std::{collections::HashMap, sync::LazyLock};

static NOISE: LazyLock<HashMap<&'static str, f32>> = LazyLock::new(|| {
    include_str!("noise.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (term, weight) = line.split_once(' ')?;
            Some((term, weight.parse().ok()?))
        })
        .collect()
});

/// What is taken from the weight of a term: 0 for most, less for words such as `pleas` and `help`.
pub(crate) fn noise(term: &str) -> f32 {
    NOISE.get(term).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polite_words_say_little() {
        assert!(noise("pleas") < -1.0);
        assert!(noise("excel").abs() < f32::EPSILON);
        assert!(NOISE.len() > 100 && NOISE.values().all(|weight| (-6.0..=0.0).contains(weight)));
    }
}
