//! Any text is a query.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidenote::search::query::Query;

fuzz_target!(|text: &str| {
    let query = Query::parse(text);
    assert!(query.words.len() + query.must.len() + query.must_not.len() <= text.len() + 1);
    let plain = Query::plain(text);
    assert!(plain.must.is_empty() && plain.must_not.is_empty());
});
