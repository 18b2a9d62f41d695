//! [`Frame`]: one NATS message of an exchange. A kind, a sequence number, and the payload.

use bytes::{BufMut as _, Bytes, BytesMut};

/// Bytes before the payload.
pub(crate) const HEADER_LENGTH: usize = 5;

/// A flag in the sequence number of a frame that opens an exchange, and in the first byte of a heartbeat's payload: its sender
/// reads messages from the object store.
pub(crate) const READS_OBJECTS: u8 = 1;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// A whole message, or the last part of one.
    Message = 1,
    /// A part of a message that does not fit into one frame.
    Part = 2,
    /// A message after which the exchange is over.
    LastMessage = 3,
    /// The exchange is over.
    End = 4,
    /// The other side is alive. Its number is that of the next frame.
    Heartbeat = 5,
    /// The request was not accepted: nothing was done. The payload says why.
    Refused = 6,
    /// Opens an exchange; the payload is the request.
    Open = 7,
    /// Opens an exchange; the request follows as a message, because it is long.
    OpenLong = 8,
    /// A message that is an object of the object store; the payload is its reference.
    Object = 9,
    /// Such a message, after which the exchange is over.
    LastObject = 10,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::Message,
            Self::Part,
            Self::LastMessage,
            Self::End,
            Self::Heartbeat,
            Self::Refused,
            Self::Open,
            Self::OpenLong,
            Self::Object,
            Self::LastObject,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

/// A NATS message of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) sequence: u32,
    pub(crate) payload: Bytes,
}

impl Frame {
    pub(crate) fn encode(kind: FrameKind, sequence: u32, payload: &[u8]) -> Bytes {
        let mut bytes = BytesMut::with_capacity(HEADER_LENGTH + payload.len());
        bytes.put_u8(kind as u8);
        bytes.put_u32(sequence);
        bytes.put_slice(payload);
        bytes.freeze()
    }

    /// Whether its sender reads messages from the object store; none if the frame does not say.
    pub(crate) fn reads_objects(&self) -> Option<bool> {
        let flags = match self.kind {
            FrameKind::Open | FrameKind::OpenLong => self.sequence,
            FrameKind::Heartbeat => self.payload.first().copied().unwrap_or(0).into(),
            _ => return None,
        };
        Some(flags & u32::from(READS_OBJECTS) != 0)
    }

    /// None if this is not a frame.
    pub(crate) fn decode(bytes: &Bytes) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let sequence = u32::from_be_bytes(*rest.first_chunk()?);
        Some(Self { kind: FrameKind::from_byte(*kind)?, sequence, payload: bytes.slice(HEADER_LENGTH..) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_frame_is_read_back(kind in 1_u8..11, sequence: u32, payload: Vec<u8>) {
            let kind = FrameKind::from_byte(kind).unwrap();
            let frame = Frame::decode(&Frame::encode(kind, sequence, &payload)).unwrap();
            prop_assert_eq!(frame, Frame { kind, sequence, payload: payload.into() });
        }

        #[test]
        fn anything_else_is_no_frame_and_no_panic(bytes: Vec<u8>) {
            let is_frame = Frame::decode(&bytes.clone().into()).is_some();
            prop_assert_eq!(is_frame, bytes.len() >= HEADER_LENGTH && (1..11).contains(&bytes[0]));
        }
    }
}
