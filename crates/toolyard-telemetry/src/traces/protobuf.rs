//! The wire format of protobuf, as far as OTLP needs it: <https://protobuf.dev/programming-guides/encoding/>.

/// Wire types.
const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;
const FIXED_32: u32 = 5;

/// The bytes of a field with a length: its tag, its length and `length` bytes.
pub(super) fn field_length(field: u32, length: usize) -> usize {
    varint_length(u64::from(field << 3)) + varint_length(as_u64(length)) + length
}

pub(super) fn write_bytes(output: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    output.reserve(field_length(field, bytes.len()));
    write_header(output, field, bytes.len());
    output.extend_from_slice(bytes);
}

/// The start of a field with a length. The caller writes the `length` bytes.
pub(super) fn write_header(output: &mut Vec<u8>, field: u32, length: usize) {
    write_varint(output, u64::from(field << 3 | LENGTH_DELIMITED));
    write_varint(output, as_u64(length));
}

pub(super) fn write_uint(output: &mut Vec<u8>, field: u32, value: u64) {
    write_varint(output, u64::from(field << 3 | VARINT));
    write_varint(output, value);
}

/// The bytes of a field that [`write_uint`] writes.
pub(super) fn uint_length(field: u32, value: u64) -> usize {
    varint_length(u64::from(field << 3)) + varint_length(value)
}

pub(super) fn write_fixed_64(output: &mut Vec<u8>, field: u32, value: u64) {
    write_varint(output, u64::from(field << 3 | FIXED_64));
    output.extend_from_slice(&value.to_le_bytes());
}

pub(super) fn write_fixed_32(output: &mut Vec<u8>, field: u32, value: u32) {
    write_varint(output, u64::from(field << 3 | FIXED_32));
    output.extend_from_slice(&value.to_le_bytes());
}

fn write_varint(output: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        output.push(low_bits(value) | 0x80);
        value >>= 7;
    }
    output.push(low_bits(value));
}

fn low_bits(value: u64) -> u8 {
    (value & 0x7f) as u8
}

fn varint_length(value: u64) -> usize {
    let bits = u64::BITS - (value | 1).leading_zeros();
    usize::try_from(bits.div_ceil(7)).unwrap_or(usize::MAX)
}

fn as_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A field of a message that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field<'a> {
    Uint(u64),
    Bytes(&'a [u8]),
}

/// Removes the next field from the message. `None` at its end, or if it is malformed.
pub(super) fn read_field<'a>(message: &mut &'a [u8]) -> Option<(u32, Field<'a>)> {
    let tag = u32::try_from(read_varint(message)?).ok()?;
    let value = match tag & 7 {
        VARINT => Field::Uint(read_varint(message)?),
        LENGTH_DELIMITED => {
            let length = usize::try_from(read_varint(message)?).ok()?;
            let (value, rest) = message.split_at_checked(length)?;
            *message = rest;
            Field::Bytes(value)
        }
        _ => return None,
    };
    Some((tag >> 3, value))
}

fn read_varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_can_be_read_and_has_the_computed_length(
            field in 1_u32..1 << 20,
            number: u64,
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut output = Vec::new();
            write_uint(&mut output, field, number);
            prop_assert_eq!(output.len(), uint_length(field, number));
            write_bytes(&mut output, field, &bytes);
            prop_assert_eq!(output.len(), uint_length(field, number) + field_length(field, bytes.len()));
            let mut rest = output.as_slice();
            prop_assert_eq!(read_field(&mut rest), Some((field, Field::Uint(number))));
            prop_assert_eq!(read_field(&mut rest), Some((field, Field::Bytes(&bytes))));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn malformed_messages_are_no_fields(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut rest = bytes.as_slice();
            while let Some((_, _)) = read_field(&mut rest) {}
        }
    }
}
