//! Lays out tables. Pure: the width is an input.

use unicode_width::UnicodeWidthStr as _;

use super::{fit_line, sanitize};

const GAP: usize = 2;
/// A column is not made narrower than this, if it is wider.
const MIN_COLUMN_WIDTH: usize = 8;
/// The last column, which describes the row, keeps at least a quarter of the width.
const LAST_COLUMN_DIVISOR: usize = 4;

/// The heading and the rows, sanitized, one line each. With a `width`, columns are shortened so that every line fits.
pub(crate) fn table_lines<const N: usize>(
    headings: [&str; N],
    rows: Vec<[String; N]>,
    width: Option<usize>,
) -> Vec<String> {
    let clean = |cell: &str| fit_line(&sanitize(cell), usize::MAX);
    let rows: Vec<[String; N]> = rows.into_iter().map(|row| row.map(|cell| clean(&cell))).collect();
    let rows: Vec<[String; N]> = std::iter::once(headings.map(str::to_owned)).chain(rows).collect();
    let natural: Vec<usize> = (0..N)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max())
        .map(Option::unwrap_or_default)
        .collect();
    let widths = width.map_or_else(|| natural.clone(), |width| fit_columns(&natural, width));
    rows.iter().map(|row| line(row, &widths)).collect()
}

/// Column widths that fit into `total`: the widest column is shortened first; the first one, which names the row, last. None is
/// shortened below its minimum.
fn fit_columns(natural: &[usize], total: usize) -> Vec<usize> {
    let room = total.saturating_sub(GAP * natural.len().saturating_sub(1));
    let mut widths: Vec<usize> = natural.iter().map(|width| *width.min(&room)).collect();
    let last = natural.len().saturating_sub(1);
    let minimum = |column: usize| match column == last {
        true => MIN_COLUMN_WIDTH.max(total / LAST_COLUMN_DIVISOR),
        false => MIN_COLUMN_WIDTH,
    };
    while widths.iter().sum::<usize>() > room {
        let widest = |columns: &mut dyn Iterator<Item = (usize, &usize)>| {
            let shortenable = columns.filter(|(column, width)| **width > minimum(*column));
            shortenable.max_by_key(|(_, width)| **width).map(|(column, _)| column)
        };
        let column = widest(&mut widths.iter().enumerate().skip(1))
            .or_else(|| widest(&mut widths.iter().enumerate().take(1)));
        match column.and_then(|column| widths.get_mut(column)) {
            Some(width) => *width -= 1,
            None => break,
        }
    }
    widths
}

fn line<const N: usize>(cells: &[String; N], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let cell = fit_line(cell, *width);
        let padding = width.saturating_sub(cell.width()) + GAP;
        line.push_str(&cell);
        line.extend(std::iter::repeat_n(' ', padding));
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_widest_column_is_shortened_and_pipes_get_everything() {
        let rows = || {
            vec![[
                "memory".to_owned(),
                "failed".to_owned(),
                "the server exited (exit code 1):\nno module named x".to_owned(),
                "npx -y @modelcontextprotocol/server-memory".to_owned(),
            ]]
        };
        let headings = ["NAME", "STATE", "NOTE", "ENDPOINT"];
        insta::assert_snapshot!(table_lines(headings, rows(), Some(60)).join("\n"), @r"
        NAME    STATE   NOTE                   ENDPOINT
        memory  failed  the server exited (e…  npx -y @modelcontext…
        ");
        insta::assert_snapshot!(table_lines(headings, rows(), None).join("\n"), @r"
        NAME    STATE   NOTE                                                ENDPOINT
        memory  failed  the server exited (exit code 1): no module named x  npx -y @modelcontextprotocol/server-memory
        ");
    }

    #[test]
    fn long_names_leave_room_for_the_description() {
        let natural = ["everything-2.trigger-long-running-operation".len(), 19, 10, 90];
        assert_eq!(fit_columns(&natural, 80), [38, 8, 8, 20]);
    }

    proptest! {
        #[test]
        fn every_line_fits_the_terminal(
            rows in proptest::collection::vec(proptest::array::uniform4(r"(\PC|\n){0,120}"), 0..8),
            width in 40_usize..200,
        ) {
            for line in table_lines(["NAME", "SOURCE", "EFFECT", "DESCRIPTION"], rows, Some(width)) {
                prop_assert!(line.width() <= width && !line.contains('\n'), "{line:?}");
            }
        }

        #[test]
        fn no_column_grows_and_narrow_ones_are_kept(natural in proptest::collection::vec(0_usize..300, 1..8), total in 80_usize..300) {
            let widths = fit_columns(&natural, total);
            for (width, natural) in widths.iter().zip(&natural) {
                prop_assert!(width <= natural && *width >= (*natural).min(MIN_COLUMN_WIDTH));
            }
            prop_assert!(widths.iter().sum::<usize>() + GAP * (natural.len() - 1) <= total);
        }
    }
}
