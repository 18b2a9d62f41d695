//! An OTLP receiver over HTTP, which decodes exports with the messages of the OpenTelemetry project.

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::{Span, span::SpanKind},
};
use parking_lot::Mutex;
use prost::Message as _;

/// A receiver on its own thread, which ends with the test.
pub(crate) struct Receiver {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    spans: Vec<ReceivedSpan>,
    /// The resource of the last export, and its header `authorization`.
    resource: HashMap<String, String>,
    authorization: String,
}

/// A span, with ids as in `traceparent`.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedSpan {
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
    /// Empty for a root.
    pub(crate) parent: String,
    pub(crate) attributes: HashMap<String, String>,
    pub(crate) is_error: bool,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve_connection(stream, &state));
            }
        });
        Self { address, state }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn spans(&self) -> Vec<ReceivedSpan> {
        self.state.lock().spans.clone()
    }

    pub(crate) fn resource(&self) -> HashMap<String, String> {
        self.state.lock().resource.clone()
    }

    pub(crate) fn authorization(&self) -> String {
        self.state.lock().authorization.clone()
    }

    /// The only span of this name that satisfies the condition; waits until it arrives.
    pub(crate) fn span(&self, name: &str, is_wanted: impl Fn(&ReceivedSpan) -> bool) -> ReceivedSpan {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let mut found: Vec<_> =
                self.spans().into_iter().filter(|span| span.name == name && is_wanted(span)).collect();
            if found.len() == 1 {
                return found.remove(0);
            }
            assert!(Instant::now() < deadline, "{} spans `{name}` in {:#?}", found.len(), self.spans());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The only child of this name.
    pub(crate) fn child(&self, parent: &ReceivedSpan, name: &str) -> ReceivedSpan {
        let child = self.span(name, |span| span.parent == parent.span_id);
        assert_eq!(child.trace_id, parent.trace_id);
        child
    }
}

/// Accepts exports until the client closes the connection.
fn serve_connection(mut stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut length, mut authorization, mut is_traces, mut line) =
            (0, String::new(), false, String::new());
        while reader.read_line(&mut line).unwrap_or(0) > 2 {
            is_traces |= line.starts_with("POST /v1/traces ");
            let (name, value) = line.split_once(':').unwrap_or_default();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap(),
                "authorization" => authorization = value.trim().to_owned(),
                _ => {}
            }
            line.clear();
        }
        let mut body = vec![0; length];
        if length == 0 || reader.read_exact(&mut body).is_err() {
            return;
        }
        assert!(is_traces);
        let export = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
        let mut state = state.lock();
        state.authorization = authorization;
        for resource_spans in export.resource_spans {
            state.resource = texts(resource_spans.resource.unwrap().attributes);
            let spans = resource_spans.scope_spans.into_iter().flat_map(|scope| scope.spans);
            state.spans.extend(spans.map(received));
        }
        drop(state);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    }
}

fn received(span: Span) -> ReceivedSpan {
    assert!(span.start_time_unix_nano > 0 && span.start_time_unix_nano <= span.end_time_unix_nano);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    ReceivedSpan {
        kind: span.kind(),
        name: span.name,
        trace_id: hex(&span.trace_id),
        span_id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        attributes: texts(span.attributes),
        is_error: span.status.is_some_and(|status| status.code == 2),
    }
}

fn texts(attributes: Vec<KeyValue>) -> HashMap<String, String> {
    let text = |attribute: KeyValue| {
        let value = match attribute.value.unwrap().value.unwrap() {
            Value::StringValue(text) => text,
            Value::IntValue(number) => number.to_string(),
            other => format!("{other:?}"),
        };
        (attribute.key, value)
    };
    attributes.into_iter().map(text).collect()
}
