//! Many rows in one statement, in a few numbers of rows only, so that each statement is prepared once.

use std::fmt::Write as _;

use crate::engine::Engine;

/// Cuts rows into pieces of these sizes, the largest first; the last size is 1.
pub(crate) fn chunks<'r, T>(rows: &'r [T], sizes: &'r [usize]) -> impl Iterator<Item = &'r [T]> {
    let mut left = rows;
    std::iter::from_fn(move || {
        let size = sizes.iter().copied().find(|size| *size <= left.len()).unwrap_or(left.len());
        let (chunk, rest) = left.split_at_checked(size).filter(|(chunk, _)| !chunk.is_empty())?;
        left = rest;
        Some(chunk)
    })
}

/// The places of so many rows with so many values each: `($1, $2), ($3, $4)`, and for SQLite without numbers. Those would be
/// names to SQLite, and each value would be looked for among all names.
pub(crate) fn places(engine: Engine, rows: usize, values: usize) -> String {
    let mut places = String::with_capacity(rows * (values * 3 + 4));
    for row in 0..rows {
        places.push_str(if row == 0 { "(" } else { ", (" });
        for value in 1..=values {
            places.push_str(if value == 1 { "" } else { ", " });
            places.push(if engine == Engine::Sqlite { '?' } else { '$' });
            if engine == Engine::Postgres {
                // Writing to a text cannot fail.
                let _ = write!(places, "{}", row * values + value);
            }
        }
        places.push(')');
    }
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_value_has_a_place() {
        assert_eq!(places(Engine::Postgres, 2, 3), "($1, $2, $3), ($4, $5, $6)");
        assert_eq!(places(Engine::Sqlite, 2, 3), "(?, ?, ?), (?, ?, ?)");
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
