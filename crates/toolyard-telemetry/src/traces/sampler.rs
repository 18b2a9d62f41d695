//! [`Sampler`]: which traces are recorded.

use std::num::NonZeroU128;

use toolyard_core::telemetry::{SpanContext, root_span_id};

/// Decides which traces are recorded. All spans of a trace agree, here and in other processes with the same ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// A trace is recorded if the lower 64 bits of its id, shifted right by one, are below this, as in the SDKs of OpenTelemetry.
    threshold: u64,
    /// Whether the decision of the parent counts.
    follows_parent: bool,
}

impl Sampler {
    /// Follows the parent; without one, records this share of the traces.
    pub fn parent_based(ratio: f64) -> Self {
        Self { follows_parent: true, ..Self::by_ratio(ratio) }
    }

    /// Records this share of the traces, whatever the parent says.
    pub fn by_ratio(ratio: f64) -> Self {
        const LIMIT: f64 = (1_u64 << 63) as f64;
        let ratio = if ratio.is_nan() { 0.0 } else { ratio.clamp(0.0, 1.0) };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 2^63, and rounding is harmless"
        )]
        let threshold = (ratio * LIMIT) as u64;
        Self { threshold, follows_parent: false }
    }

    /// By `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`; none for a name that the specification does not have.
    pub fn from_variables(name: &str, argument: Option<&str>) -> Option<Self> {
        let ratio = argument.and_then(|argument| argument.trim().parse().ok()).unwrap_or(1.0);
        Some(match name.trim() {
            "always_on" => Self::by_ratio(1.0),
            "always_off" => Self::by_ratio(0.0),
            "traceidratio" => Self::by_ratio(ratio),
            "parentbased_always_on" => Self::parent_based(1.0),
            "parentbased_always_off" => Self::parent_based(0.0),
            "parentbased_traceidratio" => Self::parent_based(ratio),
            _ => return None,
        })
    }

    /// The context of a new span.
    pub(super) fn start_span(&self, parent: Option<&SpanContext>) -> SpanContext {
        let Some(parent) = parent else {
            let root = SpanContext::root();
            return SpanContext { is_sampled: self.samples(root.trace_id), ..root };
        };
        let is_sampled = if self.follows_parent { parent.is_sampled } else { self.samples(parent.trace_id) };
        // A span that is not recorded needs no id of its own: its parent is passed on.
        if is_sampled {
            SpanContext { is_sampled, ..parent.child() }
        } else {
            SpanContext { is_sampled, ..*parent }
        }
    }

    /// The context of the root of this trace.
    pub(super) fn start_trace(&self, trace_id: NonZeroU128) -> SpanContext {
        SpanContext { trace_id, span_id: root_span_id(trace_id), is_sampled: self.samples(trace_id) }
    }

    fn samples(&self, trace_id: NonZeroU128) -> bool {
        let low_bits = trace_id.get() & u128::from(u64::MAX);
        low_bits >> 1 < u128::from(self.threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_of_roots(sampler: Sampler) -> f64 {
        let sampled = (0..10_000).filter(|_| sampler.start_span(None).is_sampled).count();
        f64::from(u32::try_from(sampled).unwrap()) / 10_000.0
    }

    #[test]
    fn the_ratio_of_traces_is_recorded() {
        assert!((share_of_roots(Sampler::parent_based(0.25)) - 0.25).abs() < 0.05);
        assert_eq!(share_of_roots(Sampler::parent_based(1.0)), 1.0);
        for ratio in [0.0, -1.0, f64::NAN] {
            assert_eq!(share_of_roots(Sampler::by_ratio(ratio)), 0.0, "{ratio}");
        }
    }

    #[test]
    fn the_parent_decides_unless_the_sampler_ignores_it() {
        let sampled = SpanContext::root();
        let unsampled = SpanContext { is_sampled: false, ..sampled };
        let never = Sampler::parent_based(0.0);
        assert!(never.start_span(Some(&sampled)).is_sampled);
        assert_eq!(Sampler::parent_based(1.0).start_span(Some(&unsampled)), unsampled, "passed on unchanged");
        assert!(Sampler::by_ratio(1.0).start_span(Some(&unsampled)).is_sampled);
        assert!(!Sampler::by_ratio(0.0).start_span(Some(&sampled)).is_sampled);
        let trace_id = sampled.trace_id;
        assert_eq!(Sampler::by_ratio(1.0).start_trace(trace_id).trace_id, trace_id);
    }

    #[test]
    fn decisions_are_those_of_the_opentelemetry_sdks() {
        let samples = |ratio: f64, id: u128| Sampler::by_ratio(ratio).samples(NonZeroU128::new(id).unwrap());
        for (id, is_sampled) in [
            (0x4bf9_2f35_77b3_4da6_7fff_ffff_ffff_ffff, true),
            // The highest of the lower 64 bits counts, the lowest does not.
            (0x4bf9_2f35_77b3_4da6_8000_0000_0000_0000, false),
            (0x4bf9_2f35_77b3_4da6_8000_0000_0000_0001, false),
            (0xffff_ffff_ffff_ffff_0000_0000_0000_0001, true),
        ] {
            assert_eq!(samples(0.5, id), is_sampled, "{id:x}");
            assert!(samples(1.0, id) && !samples(0.0, id));
        }
    }

    #[test]
    fn a_trace_that_is_started_by_its_id_has_one_root_everywhere() {
        let trace_id = NonZeroU128::new(0x0192_0000_0000_0000_0000_0000_0000_0007).unwrap();
        let roots = [Sampler::by_ratio(1.0), Sampler::parent_based(1.0)].map(|it| it.start_trace(trace_id));
        assert_eq!(roots[0], roots[1]);
        assert_eq!(roots[0].span_id.get(), 7);
    }

    #[test]
    fn the_names_of_the_specification_are_known() {
        let by_name = Sampler::from_variables;
        assert_eq!(by_name("parentbased_traceidratio", Some("0.5")), Some(Sampler::parent_based(0.5)));
        assert_eq!(by_name("always_off", None), Some(Sampler::by_ratio(0.0)));
        assert_eq!(by_name("traceidratio", Some("x")), Some(Sampler::by_ratio(1.0)));
        assert_eq!(by_name("jaeger_remote", None), None);
    }
}
