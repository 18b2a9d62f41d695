//! Where the large values of a text end, so that whoever walks over it again need not walk through them.

/// Brackets nested more deeply are not remembered: envelope, result, list, item is as deep as anyone looks.
const LEVELS: usize = 4;
/// Smaller values are as quick to walk through as to look up.
const WORTH: usize = 256;

/// Where the brackets of the outer levels begin and end, in the order of their beginnings.
#[derive(Debug, Clone, Default)]
pub(super) struct Jumps {
    places: Vec<(u32, u32)>,
    /// The places of those that are open.
    open: [usize; LEVELS],
}

impl Jumps {
    /// A bracket opens, after so many others did.
    #[inline]
    pub(super) fn open(&mut self, depth: usize, start: usize) {
        if let (Some(open), Ok(start)) = (self.open.get_mut(depth), u32::try_from(start)) {
            *open = self.places.len();
            self.places.push((start, 0));
        }
    }

    /// The bracket that was opened after so many others closes.
    #[inline]
    pub(super) fn close(&mut self, depth: usize, end: usize) {
        let Some(place) = self.open.get(depth) else { return };
        let (Some((start, stop)), Ok(end)) = (self.places.get_mut(*place), u32::try_from(end)) else {
            return;
        };
        if (end - *start) as usize >= WORTH {
            *stop = end;
        } else {
            // What stands in something small is small itself and was forgotten already.
            self.places.truncate(*place);
        }
    }

    /// Where the value ends that begins here, if that is known.
    pub(super) fn end_of(&self, start: usize) -> Option<usize> {
        let start = u32::try_from(start).ok()?;
        let place = self.places.binary_search_by_key(&start, |(start, _)| *start).ok()?;
        self.places.get(place).map(|(_, end)| *end as usize).filter(|end| *end > 0)
    }

    /// Whether a text of so many bytes has anything worth remembering.
    pub(super) fn are_worth(bytes: usize) -> bool {
        bytes >= 2 * WORTH
    }
}
