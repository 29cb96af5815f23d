//! Reads the items of a JSON list one by one, so that a list of any length takes the memory of its longest item.

use std::fmt;
use std::io::Read;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use sidenote_base::error::{Error, Result};

use super::export_files::ReadCount;

/// What to do about an export that cannot be read.
const HINT: &str = "download the export again, or name the program that wrote it";

/// Reads a list of items, or one item alone, and gives each to `take` with its number from 1.
///
/// # Errors
/// `Invalid`, naming the place, if the text is no JSON or has other values; those of `take`, with the place before them.
pub(super) fn each_item<T: DeserializeOwned>(
    reader: &mut dyn Read,
    (place, what): (&str, &str),
    count: &ReadCount,
    take: &mut dyn FnMut(T) -> Result<()>,
) -> Result<()> {
    let mut json = serde_json::Deserializer::from_reader(reader);
    let mut failed = None;
    let mut number = 0;
    let list = ItemList { what, count, take, failed: &mut failed, number: &mut number, item: PhantomData };
    let read = list.deserialize(&mut json).and_then(|()| json.end());
    let Err(error) = read else { return Ok(()) };
    let at = if number > 0 { format!("{place}, {what} {number}") } else { place.to_owned() };
    if let Some(error) = failed {
        let named = Error::new(error.kind(), format!("{at}: {}", error.message()));
        return Err(match error.hint() {
            Some(hint) => named.with_hint(hint.to_owned()),
            None => named.with_hint(HINT),
        });
    }
    // Errors of a list have the line and the column in their text.
    let wrong = if error.is_io() { Error::invalid(format!("{at}: {error}")) } else { no_json(&at, &error) };
    Err(wrong.with_hint(HINT))
}

fn no_json(at: &str, error: &serde_json::Error) -> Error {
    let kind = if error.is_data() { "another form than expected" } else { "no sound JSON" };
    Error::invalid(format!("{at} is {kind}: {error}"))
}

/// The list, which is read into nothing.
struct ItemList<'a, T> {
    what: &'a str,
    count: &'a ReadCount,
    take: &'a mut dyn FnMut(T) -> Result<()>,
    failed: &'a mut Option<Error>,
    number: &'a mut usize,
    item: PhantomData<T>,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for ItemList<'_, T> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> std::result::Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<T: DeserializeOwned> ItemList<'_, T> {
    fn give<E: serde::de::Error>(&mut self, item: T) -> std::result::Result<(), E> {
        (self.take)(item).map_err(|error| {
            let said = E::custom(error.message());
            *self.failed = Some(error);
            said
        })?;
        self.count.begin_item();
        Ok(())
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for ItemList<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list with an object for each {}", self.what)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> std::result::Result<(), A::Error> {
        loop {
            *self.number += 1;
            let Some(item) = list.next_element_seed(Item(PhantomData))? else {
                *self.number = 0;
                return Ok(());
            };
            self.give(item)?;
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, map: A) -> std::result::Result<(), A::Error> {
        let item = T::deserialize(MapAccessDeserializer::new(map))?;
        self.give(item)
    }
}

/// An item of the list, which must be an object: serde would read the fields of a struct from a list as well.
struct Item<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for Item<T> {
    type Value = T;

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> std::result::Result<T, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for Item<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}
