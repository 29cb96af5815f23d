//! A table of the records of a vector log by the key of their passage. It is built in two passes, since a process that
//! searches once builds it for that search.

/// The average number of records in a bucket.
const RECORDS_IN_BUCKET: usize = 2;

/// The records of a log by key: buckets of record numbers. The keys themselves are those of the log, which every call is
/// given.
#[derive(Debug)]
pub(super) struct KeyTable {
    /// By how many bits a mixed key is shifted to get its bucket.
    shift: u32,
    /// Where each bucket begins among `records`, and where the last one ends.
    starts: Vec<u32>,
    /// The numbers of the records, by bucket, in the order of the log.
    records: Vec<u32>,
}

impl KeyTable {
    /// Makes the table of the records for which `is_sound` is true.
    pub(super) fn of(keys: &[i64], is_sound: impl Fn(usize) -> bool) -> Self {
        let buckets = (keys.len() / RECORDS_IN_BUCKET).next_power_of_two().max(2);
        let shift = u64::BITS - buckets.trailing_zeros();
        let mut table = Self { shift, starts: vec![0; buckets + 1], records: Vec::new() };
        let sound = || (0..keys.len()).zip(keys).filter(|(at, _)| is_sound(*at));
        // A bucket is counted one place behind its own, so that the sums are where the buckets begin.
        for (_, key) in sound() {
            let bucket = table.bucket(*key);
            if let Some(count) = table.starts.get_mut(bucket + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut table.starts {
            sum += *start;
            *start = sum;
        }
        table.records = vec![0; sum as usize];
        let mut next = table.starts.clone();
        for (at, key) in sound() {
            let bucket = table.bucket(*key);
            let Some(next) = next.get_mut(bucket) else { continue };
            if let (Some(place), Ok(at)) = (table.records.get_mut(*next as usize), u32::try_from(at)) {
                *place = at;
            }
            *next += 1;
        }
        table
    }

    /// Returns the bucket of a key. Keys are part of a hash; multiplying spreads those that are not.
    fn bucket(&self, key: i64) -> usize {
        ((key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// Returns the newest record of a key.
    pub(super) fn get(&self, keys: &[i64], key: i64) -> Option<usize> {
        let bucket = self.bucket(key);
        let (start, end) = (*self.starts.get(bucket)?, *self.starts.get(bucket + 1)?);
        let records = self.records.get(start as usize..end as usize)?;
        records.iter().rev().map(|at| *at as usize).find(|at| keys.get(*at) == Some(&key))
    }
}
