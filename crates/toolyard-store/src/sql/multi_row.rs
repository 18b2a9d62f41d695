//! Multi-row statements in a few fixed sizes, so that each is prepared once.

use std::fmt::Write as _;

use super::engine::Engine;

/// Splits rows into chunks of these sizes, largest first; the last size must be 1.
pub(crate) fn chunks<'r, T>(rows: &'r [T], sizes: &'r [usize]) -> impl Iterator<Item = &'r [T]> {
    let mut left = rows;
    std::iter::from_fn(move || {
        let size = sizes.iter().copied().find(|size| *size <= left.len()).unwrap_or(left.len());
        let (chunk, rest) = left.split_at_checked(size).filter(|(chunk, _)| !chunk.is_empty())?;
        left = rest;
        Some(chunk)
    })
}

/// Placeholders for `rows` rows of `values` values each: `($1, $2), ($3, $4)`. SQLite gets plain `?`, because it treats
/// `$1` as a name and searches all names for each value.
pub(crate) fn placeholders(engine: Engine, rows: usize, values: usize) -> String {
    let mut out = String::with_capacity(rows * (values * 3 + 4));
    for row in 0..rows {
        out.push_str(if row == 0 { "(" } else { ", (" });
        for value in 1..=values {
            out.push_str(if value == 1 { "" } else { ", " });
            out.push(if engine == Engine::Sqlite { '?' } else { '$' });
            if engine == Engine::Postgres {
                // Writing to a string cannot fail.
                let _ = write!(out, "{}", row * values + value);
            }
        }
        out.push(')');
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_value_has_a_placeholder() {
        assert_eq!(placeholders(Engine::Postgres, 2, 3), "($1, $2, $3), ($4, $5, $6)");
        assert_eq!(placeholders(Engine::Sqlite, 2, 3), "(?, ?, ?), (?, ?, ?)");
    }

    proptest! {
        #[test]
        fn chunks_are_all_rows_in_order_and_of_known_sizes(rows in 0..500_usize) {
            let (rows, sizes) = ((0..rows).collect::<Vec<_>>(), [32, 8, 1]);
            prop_assert!(chunks(&rows, &sizes).all(|chunk| sizes.contains(&chunk.len())));
            prop_assert_eq!(chunks(&rows, &sizes).collect::<Vec<_>>().concat(), rows);
        }
    }
}
