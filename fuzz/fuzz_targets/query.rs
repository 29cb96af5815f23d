//! Any text is a query, or an error that points at its mistake.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidenote::search::query::Query;

fuzz_target!(|text: &str| {
    for all in [false, true] {
        match Query::parse(text, all) {
            Ok(query) => assert!(query.words.len() <= text.len() + 1),
            Err(error) => assert!(error.to_string().contains('^') && error.hint().is_some()),
        }
    }
    assert!(Query::plain(text).condition.is_none());
});
