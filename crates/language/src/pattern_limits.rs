//! Limits for untrusted regular expressions: compilers recurse by the depth of groups, and
//! multiply the counts of repetitions.

/// The most bytes of a pattern.
const MAX_BYTES: usize = 2_000;
/// The most groups of a pattern, which cannot be nested deeper.
const MAX_GROUPS: usize = 100;
/// The largest product of the counts in a pattern, such as `{1000}`.
const MOST_REPETITIONS: u64 = 1_000_000_000;

/// Checks that a regular expression is small enough to be compiled.
///
/// # Errors
/// Returns a sentence on what is too large.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    if pattern.len() > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    if pattern.matches('(').count() > MAX_GROUPS {
        return Err(format!("it has more than {MAX_GROUPS} groups"));
    }
    let counts = pattern.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(count, _)| {
        let numbers = count.split(',').filter_map(|number| number.trim().parse::<u64>().ok());
        numbers.max().unwrap_or(1).max(1)
    });
    if counts.fold(1, u64::saturating_mul) > MOST_REPETITIONS {
        return Err("its repetitions are too many when they are multiplied".to_owned());
    }
    Ok(())
}
