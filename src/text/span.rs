//! Byte ranges in the text of a file.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A half-open range of byte offsets in the raw file, byte order mark and carriage returns counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

impl Span {
    /// Makes a span of two offsets.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Counts the bytes.
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Says whether no byte lies inside.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Says whether `offset` lies inside.
    pub fn contains(self, offset: usize) -> bool {
        self.start <= offset && offset < self.end
    }

    /// Says whether `inner` lies wholly inside.
    pub fn encloses(self, inner: Span) -> bool {
        self.start <= inner.start && inner.end <= self.end
    }

    /// Cuts the span out of `text`; empty if it does not fit.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or("")
    }
}

impl From<std::ops::Range<usize>> for Span {
    fn from(range: std::ops::Range<usize>) -> Self {
        Self::new(range.start, range.end)
    }
}

impl Serialize for Span {
    /// Writes `[start, end]`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.start, self.end].serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Span {
    /// Reads `[start, end]`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let [start, end] = <[usize; 2]>::deserialize(deserializer)?;
        Ok(Self { start, end })
    }
}
