//! What slows down those who try passphrases, and bounds what strangers can have done: by address, and in all. The memory
//! is bounded, and whoever waits long enough is let in again.

use std::collections::HashMap;
use std::net::IpAddr;

use sidenote_base::clock::Timestamp;

/// The addresses that are remembered. Beyond that, the one that was seen longest ago is forgotten.
const MAX_ADDRESSES: usize = 1024;
/// The wrong tries of an address that cost no time: a person mistypes.
const FREE_BY_ADDRESS: u32 = 5;
/// The wrong tries of all addresses that cost no time.
const FREE_IN_ALL: u32 = 20;
/// The longest wait of an address, in milliseconds.
const LONGEST_BY_ADDRESS: i64 = 15 * 60_000;
/// The longest wait of all addresses, in milliseconds. It is short, so that strangers cannot lock the owner out, and
/// leaves 8,640 tries a day.
const LONGEST_IN_ALL: i64 = 10_000;
/// The first tries of addresses without a wrong one that are looked at while all others wait, in each window of time: so
/// those who try from few addresses cannot keep the owner out.
const FIRST_TRIES: u32 = 10;
const FIRST_WINDOW: i64 = 10_000;
/// The time without a wrong try, in milliseconds, after which the tries before are forgotten.
const FORGET: i64 = 60 * 60_000;

/// An address, or the network that one subscriber has in IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) & !u128::from(u64::MAX)).into()),
        address @ IpAddr::V4(_) => address,
    }
}

/// Removes the address that was seen longest ago if there are too many.
fn make_room<T>(addresses: &mut HashMap<IpAddr, T>, seen: impl Fn(&T) -> i64) {
    if addresses.len() >= MAX_ADDRESSES
        && let Some(oldest) =
            addresses.iter().min_by_key(|(_, entry)| seen(entry)).map(|(address, _)| *address)
    {
        addresses.remove(&oldest);
    }
}

/// The wrong tries of one address, or of all.
#[derive(Debug, Clone, Copy, Default)]
struct Failures {
    count: u32,
    last: i64,
}

impl Failures {
    /// Returns how long the next try has to wait from now, in milliseconds.
    fn wait(self, free: u32, longest: i64, now: i64) -> i64 {
        let Some(beyond) = self.current(now).checked_sub(free) else { return 0 };
        let wait = 1_000_i64.checked_shl(beyond.min(20)).unwrap_or(longest).min(longest);
        // A clock that was set back makes nobody wait longer.
        (self.last + wait - now).clamp(0, wait)
    }

    fn current(self, now: i64) -> u32 {
        if now - self.last > FORGET { 0 } else { self.count }
    }

    fn add(&mut self, now: i64) {
        self.count = self.current(now).saturating_add(1);
        self.last = now;
    }
}

/// Slows down wrong tries of the passphrase.
#[derive(Debug, Default)]
pub(crate) struct Slowdown {
    addresses: HashMap<IpAddr, Failures>,
    all: Failures,
    /// The window of the last first tries, and their count.
    first: (i64, u32),
}

impl Slowdown {
    /// Begins a try, which counts as wrong until it is known to be right, so that several at a time gain nothing.
    ///
    /// # Errors
    /// The seconds to wait.
    pub(crate) fn begin(&mut self, address: IpAddr, now: Timestamp) -> Result<(), u64> {
        let (address, now) = (network(address), now.millis());
        let own = self.addresses.get(&address).copied().unwrap_or_default();
        let of_all = self.all.wait(FREE_IN_ALL, LONGEST_IN_ALL, now);
        let is_first = of_all > 0 && own.current(now) == 0 && self.take_first(now);
        let of_all = if is_first { 0 } else { of_all };
        let wait = own.wait(FREE_BY_ADDRESS, LONGEST_BY_ADDRESS, now).max(of_all);
        if wait > 0 {
            return Err(wait.unsigned_abs().div_ceil(1000));
        }
        if !self.addresses.contains_key(&address) {
            make_room(&mut self.addresses, |failures| failures.last);
        }
        self.addresses.entry(address).or_default().add(now);
        self.all.add(now);
        Ok(())
    }

    /// Takes one of the first tries that need not wait, and returns whether it was left.
    fn take_first(&mut self, now: i64) -> bool {
        let window = now.div_euclid(FIRST_WINDOW);
        if self.first.0 != window {
            self.first = (window, 0);
        }
        let is_left = self.first.1 < FIRST_TRIES;
        self.first.1 += u32::from(is_left);
        is_left
    }

    /// Ends a try that was right.
    pub(crate) fn succeed(&mut self, address: IpAddr) {
        self.addresses.remove(&network(address));
        self.all.count = self.all.count.saturating_sub(1);
    }
}

/// Bounds how often strangers can have something done, by address and in all, in each window of time.
#[derive(Debug)]
pub(crate) struct Quota {
    by_address: u32,
    in_all: u32,
    window: i64,
    addresses: HashMap<IpAddr, (i64, u32)>,
    all: (i64, u32),
}

impl Quota {
    /// Allows this many in each window of milliseconds.
    pub(crate) fn new(by_address: u32, in_all: u32, window: i64) -> Self {
        Self { by_address, in_all, window, addresses: HashMap::new(), all: (0, 0) }
    }

    /// Takes one, and returns whether it was left.
    pub(crate) fn take(&mut self, address: IpAddr, now: Timestamp) -> bool {
        let (address, window) = (network(address), now.millis().div_euclid(self.window.max(1)));
        let used = |(at, count): (i64, u32)| if at == window { count } else { 0 };
        let own = used(self.addresses.get(&address).copied().unwrap_or_default());
        if own >= self.by_address || used(self.all) >= self.in_all {
            return false;
        }
        if !self.addresses.contains_key(&address) {
            make_room(&mut self.addresses, |(at, _)| *at);
        }
        self.addresses.insert(address, (window, own + 1));
        self.all = (window, used(self.all) + 1);
        true
    }
}
