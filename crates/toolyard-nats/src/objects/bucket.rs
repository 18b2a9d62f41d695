//! [`Bucket`]: the names of a bucket and of the subjects of its objects.

use std::{fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE};

use crate::objects::reference::ObjectName;

/// A bucket of the JetStream object store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Bucket(Arc<str>);

/// How objects of an exchange get to the other side.
#[derive(Debug, Clone)]
pub(crate) struct ObjectRoute {
    /// Where objects of both directions are.
    pub(crate) bucket: Bucket,
    /// What the subjects begin with at which the other side receives objects, if it is a worker, which cannot ask for them.
    pub(crate) worker_subjects: Option<Arc<str>>,
}

impl Bucket {
    /// What gateways of a cluster send each other.
    pub(crate) fn of_gateways(prefix: &str) -> Self {
        Self(format!("{}_gateways", escaped(prefix)).into())
    }

    /// What gateways and workers of a group send each other.
    pub(crate) fn of_group(prefix: &str, group: &str) -> Self {
        Self(format!("{}_worker_{group}", escaped(prefix)).into())
    }

    /// The stream that holds the bucket.
    pub(super) fn stream(&self) -> String {
        format!("OBJ_{}", self.0)
    }

    /// The subject of an object's chunks.
    pub(super) fn chunks(&self, object: ObjectName) -> String {
        format!("$O.{}.C.{object}", self.0)
    }

    /// The subject of an object's metadata.
    pub(super) fn metadata(&self, object: ObjectName) -> String {
        format!("$O.{}.M.{}", self.0, URL_SAFE.encode(object.to_string()))
    }

    /// All subjects of the bucket.
    pub(super) fn subjects(&self) -> [String; 2] {
        [format!("$O.{}.C.>", self.0), format!("$O.{}.M.>", self.0)]
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A prefix without dots, which names of buckets must not have. Different prefixes stay different, also with what follows them:
/// an underscore of the result is followed by `_` or `d`.
fn escaped(prefix: &str) -> String {
    prefix.replace('_', "__").replace('.', "_d")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn buckets_of_different_clusters_and_groups_have_different_names() {
        assert_eq!(Bucket::of_gateways("toolyard").to_string(), "toolyard_gateways");
        assert_eq!(Bucket::of_group("toolyard", "office").to_string(), "toolyard_worker_office");
        let prefixes = ["a", "a.b", "a_b", "a_db", "a-b", "a_worker_b", "a.worker.b", "a__b", "a._b"];
        let groups = ["b", "gateways", "b_worker_b", "worker_b", "_gateways"];
        let mut names = HashSet::new();
        for prefix in prefixes {
            assert!(names.insert(Bucket::of_gateways(prefix)), "{prefix}");
            for group in groups {
                assert!(names.insert(Bucket::of_group(prefix, group)), "{prefix} {group}");
            }
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        assert!(names.iter().all(|bucket| bucket.0.bytes().all(is_plain)), "{names:?}");
    }
}
