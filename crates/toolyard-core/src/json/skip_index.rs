//! Records where the large values of a JSON text end, so that later cursors can skip them.

/// Values nested more deeply are not recorded: callers look no deeper than message, result, list, item.
const MAX_LEVELS: usize = 4;
/// Smaller values are as fast to read as to look up.
const MIN_VALUE_BYTES: usize = 256;

/// Start and end of the objects and arrays of the outer levels, in order of their start.
#[derive(Debug, Clone, Default)]
pub(super) struct SkipIndex {
    ranges: Vec<(u32, u32)>,
    /// The position in `ranges` of each value that is open.
    open: [usize; MAX_LEVELS],
}

impl SkipIndex {
    /// Records the start of an object or array at this depth.
    #[inline]
    pub(super) fn open(&mut self, depth: usize, start: usize) {
        if let (Some(open), Ok(start)) = (self.open.get_mut(depth), u32::try_from(start)) {
            *open = self.ranges.len();
            self.ranges.push((start, 0));
        }
    }

    /// Records the end of the object or array that is open at this depth.
    #[inline]
    pub(super) fn close(&mut self, depth: usize, end: usize) {
        let Some(position) = self.open.get(depth) else { return };
        let (Some((start, stop)), Ok(end)) = (self.ranges.get_mut(*position), u32::try_from(end)) else {
            return;
        };
        if (end - *start) as usize >= MIN_VALUE_BYTES {
            *stop = end;
        } else {
            // Values inside a small value are small too and were dropped before.
            self.ranges.truncate(*position);
        }
    }

    /// The end of the value that starts here, if it was recorded.
    pub(super) fn end_of(&self, start: usize) -> Option<usize> {
        let start = u32::try_from(start).ok()?;
        let position = self.ranges.binary_search_by_key(&start, |(start, _)| *start).ok()?;
        self.ranges.get(position).map(|(_, end)| *end as usize).filter(|end| *end > 0)
    }

    /// Whether a text of this size can have values worth recording.
    pub(super) fn is_worthwhile(bytes: usize) -> bool {
        bytes >= 2 * MIN_VALUE_BYTES
    }
}
