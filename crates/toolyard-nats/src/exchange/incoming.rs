//! [`Incoming`]: the frames of the other side of an exchange, in order and without gaps, put together to messages. Pure.

use crate::{
    exchange::frame::{Frame, FrameKind},
    limits::MAX_MESSAGE_LENGTH,
    objects::ObjectReference,
};

/// What the frames received so far amount to.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    next_sequence: u32,
    parts: Vec<u8>,
}

/// What a frame means to the reader of an exchange.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// Nothing yet.
    Nothing,
    /// A message.
    Message(Vec<u8>),
    /// A message after which there is none.
    LastMessage(Vec<u8>),
    /// A message that must be read from the object store.
    Object(ObjectReference),
    /// Such a message, after which there is none.
    LastObject(ObjectReference),
    /// There are no more messages.
    End,
    /// Nothing was done, for this reason.
    Refused(String),
}

/// Frames that do not make up an exchange.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IncomingError {
    /// Messages between processes arrived with a gap, so the exchange was ended.
    ///
    /// Remedy: see the log of NATS for slow consumers; a slow network needs JetStream for long messages.
    #[error("messages got lost")]
    Gap,
    /// A message between processes exceeds the limit of arguments and results.
    ///
    /// Remedy: let the tool return less, or a reference to the data.
    #[error("a message is longer than 64 MiB")]
    TooLong,
    /// Another process sent a kind of message that this version does not know.
    ///
    /// Remedy: run the same version of Toolyard in all gateways and workers.
    #[error("unexpected kind of message")]
    UnexpectedKind,
    /// Another process sent a message that cannot be read.
    ///
    /// Remedy: run the same version of Toolyard in all gateways and workers; check who else may publish to the NATS
    /// subjects.
    #[error("a message is malformed")]
    Malformed,
}

impl Incoming {
    pub(crate) fn accept(&mut self, frame: &Frame) -> Result<Received, IncomingError> {
        if frame.kind == FrameKind::Heartbeat {
            // A heartbeat may be overtaken by messages that were sent after it.
            let ahead = frame.sequence.wrapping_sub(self.next_sequence);
            return if ahead == 0 || ahead > u32::MAX / 2 {
                Ok(Received::Nothing)
            } else {
                Err(IncomingError::Gap)
            };
        }
        if frame.sequence != self.next_sequence {
            return Err(IncomingError::Gap);
        }
        self.next_sequence = self.next_sequence.wrapping_add(1);
        match frame.kind {
            FrameKind::Heartbeat => Ok(Received::Nothing),
            FrameKind::Part => {
                self.append(&frame.payload)?;
                Ok(Received::Nothing)
            }
            FrameKind::Message => Ok(Received::Message(self.take(&frame.payload)?)),
            FrameKind::LastMessage => Ok(Received::LastMessage(self.take(&frame.payload)?)),
            FrameKind::Object => Ok(Received::Object(self.object(&frame.payload)?)),
            FrameKind::LastObject => Ok(Received::LastObject(self.object(&frame.payload)?)),
            FrameKind::End => Ok(Received::End),
            FrameKind::Refused => Ok(Received::Refused(String::from_utf8_lossy(&frame.payload).into_owned())),
            FrameKind::Open | FrameKind::OpenLong => Err(IncomingError::UnexpectedKind),
        }
    }

    fn take(&mut self, payload: &[u8]) -> Result<Vec<u8>, IncomingError> {
        if self.parts.is_empty() {
            return Ok(payload.to_vec());
        }
        self.append(payload)?;
        Ok(std::mem::take(&mut self.parts))
    }

    fn object(&self, payload: &[u8]) -> Result<ObjectReference, IncomingError> {
        if !self.parts.is_empty() {
            return Err(IncomingError::UnexpectedKind);
        }
        ObjectReference::decode(payload).ok_or(IncomingError::Malformed)
    }

    fn append(&mut self, payload: &[u8]) -> Result<(), IncomingError> {
        if self.parts.len().saturating_add(payload.len()) > MAX_MESSAGE_LENGTH {
            return Err(IncomingError::TooLong);
        }
        self.parts.extend_from_slice(payload);
        Ok(())
    }
}

/// The frames of one message, each with at most `max_payload` bytes in all.
pub(crate) fn split(message: &[u8], max_payload: usize) -> impl Iterator<Item = (bool, &[u8])> {
    let length = max_payload.saturating_sub(crate::exchange::frame::HEADER_LENGTH).max(1);
    let count = message.len().div_ceil(length).max(1);
    let empty = message.is_empty().then_some(message);
    message.chunks(length).chain(empty).enumerate().map(move |(index, part)| (index + 1 == count, part))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: FrameKind, sequence: u32, payload: &[u8]) -> Frame {
        Frame { kind, sequence, payload: payload.to_vec().into() }
    }

    proptest! {
        #[test]
        fn messages_are_put_together_from_their_parts(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..6), max_payload in 6_usize..20,
            lost in proptest::option::of(0_usize..30),
        ) {
            let (mut sequence, mut frames) = (0, Vec::new());
            for message in &messages {
                for (is_last, part) in split(message, max_payload) {
                    prop_assert!(part.len() + 5 <= max_payload);
                    frames.push(frame(if is_last { FrameKind::Message } else { FrameKind::Part }, sequence, part));
                    sequence += 1;
                }
            }
            frames.push(frame(FrameKind::End, sequence, b""));
            let lost = lost.filter(|lost| *lost < frames.len() - 1);
            if let Some(lost) = lost { frames.remove(lost); }
            let (mut incoming, mut received, mut is_faulty, mut is_ended) = (Incoming::default(), Vec::new(), false, false);
            for frame in &frames {
                match incoming.accept(frame) {
                    Ok(Received::Message(message)) => received.push(message),
                    Ok(Received::End) => is_ended = true,
                    Ok(_) => {}
                    Err(error) => { prop_assert_eq!(error, IncomingError::Gap); is_faulty = true; break; }
                }
            }
            prop_assert_eq!(is_faulty, lost.is_some());
            prop_assert_eq!(is_ended, lost.is_none());
            prop_assert!(messages.starts_with(&received) && (lost.is_some() || received == messages));
        }
    }

    #[test]
    fn a_heartbeat_tells_of_lost_messages() {
        let mut incoming = Incoming::default();
        assert_eq!(incoming.accept(&frame(FrameKind::Heartbeat, 0, b"")), Ok(Received::Nothing));
        assert_eq!(incoming.accept(&frame(FrameKind::Heartbeat, 1, b"")), Err(IncomingError::Gap));
    }

    #[test]
    fn a_reference_to_an_object_is_checked() {
        let accept = |kind, payload: &[u8]| Incoming::default().accept(&frame(kind, 0, payload));
        let reference = ObjectReference::decode(&[7; 56]).unwrap();
        assert_eq!(accept(FrameKind::Object, &[7; 56]), Ok(Received::Object(reference)));
        assert_eq!(accept(FrameKind::LastObject, &[7; 56]), Ok(Received::LastObject(reference)));
        assert_eq!(accept(FrameKind::Object, &[7; 55]), Err(IncomingError::Malformed));
        let mut incoming = Incoming::default();
        incoming.accept(&frame(FrameKind::Part, 0, b"a")).unwrap();
        let inside = incoming.accept(&frame(FrameKind::Object, 1, &[7; 56]));
        assert_eq!(inside, Err(IncomingError::UnexpectedKind), "an object is a whole message");
    }
}
