//! How much of a ranking is asked for.

/// How many of the ranked notes a search returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Those that the pages up to the requested one need.
    Pages,
    /// All, with a trace of the stages. The first ones are in the order of [`Extent::Pages`].
    All,
}
