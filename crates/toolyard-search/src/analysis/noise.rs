//! Filler words: words of requests whose match says little about a tool, such as "please".

use std::{collections::HashMap, sync::LazyLock};

static PENALTIES: LazyLock<HashMap<&'static str, f32>> = LazyLock::new(|| {
    include_str!("noise.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (term, penalty) = line.split_once(' ')?;
            Some((term, penalty.parse().ok()?))
        })
        .collect()
});

/// Added to the weight of a term: 0 for most terms, negative for filler words such as `pleas` and `help`.
pub(crate) fn noise_penalty(term: &str) -> f32 {
    PENALTIES.get(term).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polite_words_are_penalized() {
        assert!(noise_penalty("pleas") < -1.0);
        assert!(noise_penalty("excel").abs() < f32::EPSILON);
        assert!(PENALTIES.len() > 100 && PENALTIES.values().all(|penalty| (-6.0..=0.0).contains(penalty)));
    }
}
