//! Spreadsheets of Excel.

use crate::package::{Package, by_id};
use crate::properties::{self, Date};
use crate::writer::Writer;
use crate::xml::{self, Node};
use crate::{AttachmentText, PlaceKind, Unreadable};

/// Reads a spreadsheet: a place for each sheet, a line for each row.
pub(crate) fn read(bytes: &[u8]) -> Result<AttachmentText, Unreadable> {
    let mut package = Package::open(bytes)?;
    let workbook = package.need("xl/workbook.xml")?;
    let parts = by_id(package.relations("xl/workbook.xml")?);
    let mut sheets = Vec::new();
    let mut from_1904 = false;
    xml::walk(&workbook, |node| {
        if let Node::Start(element) = node {
            match element.name() {
                "sheet" => {
                    if let Some(part) = element.prefixed("r:id").and_then(|id| parts.get(&id)) {
                        sheets.push((element.attribute("name"), part.clone()));
                    }
                }
                // Extensions have an element of this name, too.
                "workbookPr" => {
                    from_1904 |= matches!(element.attribute("date1904").as_deref(), Some("1" | "true"));
                }
                _ => {}
            }
        }
        true
    });
    let strings =
        package.read("xl/sharedStrings.xml")?.map(|bytes| shared_strings(&bytes)).unwrap_or_default();
    let formats = package.read("xl/styles.xml")?.map(|bytes| formats(&bytes)).unwrap_or_default();
    let mut writer = Writer::new(PlaceKind::Sheet);
    for (name, part) in sheets {
        if let Some(bytes) = package.read(&part)? {
            write(&bytes, &mut writer, &strings, &formats, from_1904);
        }
        writer.end_as(name);
        if writer.is_full() {
            break;
        }
    }
    let stated = package
        .read("docProps/core.xml")?
        .map(|core| properties::read(&core, Date::Modified))
        .unwrap_or_default();
    Ok(AttachmentText { places: writer.finish()?, ..stated })
}

/// Reads the texts that cells share.
fn shared_strings(bytes: &[u8]) -> Vec<String> {
    let mut strings = Vec::new();
    let mut text = String::new();
    let (mut in_text, mut in_reading) = (false, false);
    xml::walk(bytes, |node| {
        match node {
            Node::Start(element) => match element.name() {
                "si" => text.clear(),
                // How Japanese characters are read is no part of the cell.
                "rPh" => in_reading = true,
                "t" => in_text = !in_reading,
                _ => {}
            },
            Node::Text(part) if in_text => text.push_str(&part),
            Node::Text(_) => {}
            Node::End(name) => match name.as_str() {
                "si" => strings.push(std::mem::take(&mut text)),
                "rPh" => in_reading = false,
                "t" => in_text = false,
                _ => {}
            },
        }
        true
    });
    strings
}

/// What the number in a cell is shown as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Number,
    Percent,
    Date,
}

/// Reads the formats of the styles of cells.
fn formats(bytes: &[u8]) -> Vec<Format> {
    let mut own = std::collections::BTreeMap::new();
    let mut formats = Vec::new();
    let mut in_cells = false;
    xml::walk(bytes, |node| {
        match node {
            Node::Start(element) => match element.name() {
                "numFmt" => {
                    if let (Some(id), Some(code)) =
                        (element.attribute("numFmtId"), element.attribute("formatCode"))
                    {
                        own.insert(id, of_code(&code));
                    }
                }
                "cellXfs" => in_cells = true,
                "xf" if in_cells => {
                    let id = element.attribute("numFmtId").unwrap_or_default();
                    formats.push(own.get(&id).copied().unwrap_or_else(|| match id.parse().unwrap_or(0) {
                        9 | 10 => Format::Percent,
                        14..=22 | 27..=36 | 45..=47 | 50..=58 => Format::Date,
                        _ => Format::Number,
                    }));
                }
                _ => {}
            },
            Node::End(name) if name == "cellXfs" => in_cells = false,
            _ => {}
        }
        true
    });
    formats
}

fn of_code(code: &str) -> Format {
    // Texts in quotes and colours in brackets say nothing.
    let (mut quoted, mut bracketed, mut escaped) = (false, false, false);
    let mut format = Format::Number;
    for c in code.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '[' => bracketed = true,
            ']' => bracketed = false,
            _ if quoted || bracketed => {}
            ';' => break,
            'y' | 'Y' | 'd' | 'D' | 'h' | 'H' | 's' | 'S' => return Format::Date,
            'm' | 'M' => format = Format::Date,
            '%' if format == Format::Number => format = Format::Percent,
            _ => {}
        }
    }
    format
}

fn write(bytes: &[u8], writer: &mut Writer, strings: &[String], formats: &[Format], from_1904: bool) {
    let mut value = String::new();
    let mut kind = String::new();
    let mut format = Format::Number;
    let (mut in_value, mut in_reading) = (false, false);
    xml::walk(bytes, |node| {
        match node {
            Node::Start(element) => match element.name() {
                "c" => {
                    value.clear();
                    kind = element.attribute("t").unwrap_or_default();
                    let style = element.attribute("s").and_then(|style| style.parse::<usize>().ok());
                    format = style.and_then(|style| formats.get(style)).copied().unwrap_or(Format::Number);
                }
                "rPh" => in_reading = true,
                "v" | "t" => in_value = !in_reading,
                _ => {}
            },
            Node::Text(part) if in_value => value.push_str(&part),
            Node::Text(_) => {}
            Node::End(name) => match name.as_str() {
                "rPh" => in_reading = false,
                "v" | "t" => in_value = false,
                "c" if !value.is_empty() => {
                    let shown = match kind.as_str() {
                        "s" => value.trim().parse::<usize>().ok().and_then(|at| strings.get(at)).cloned(),
                        "b" => Some(if value.trim() == "1" { "TRUE" } else { "FALSE" }.to_owned()),
                        "str" | "inlineStr" | "e" | "d" => Some(value.clone()),
                        _ => Some(number(&value, format, from_1904)),
                    };
                    writer.cell();
                    writer.push_collapsed(&shown.unwrap_or_default());
                    value.clear();
                }
                "row" => writer.line(),
                _ => {}
            },
        }
        !writer.is_full()
    });
}

/// Returns a number as it is shown.
fn number(value: &str, format: Format, from_1904: bool) -> String {
    let Ok(number) = value.trim().parse::<f64>() else {
        return value.to_owned();
    };
    match format {
        Format::Date => date(number, from_1904).unwrap_or_else(|| rounded(number)),
        Format::Percent => format!("{}%", rounded(number * 100.0)),
        Format::Number => rounded(number),
    }
}

/// Writes a number with the 15 digits that Excel keeps.
fn rounded(number: f64) -> String {
    let kept = format!("{number:.14e}").parse::<f64>().unwrap_or(number);
    if kept != 0.0 && !(1e-9..1e15).contains(&kept.abs()) { format!("{kept:E}") } else { format!("{kept}") }
}

/// Returns the date of a number of days as ISO 8601; below one day it is a time.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn date(days: f64, from_1904: bool) -> Option<String> {
    // The last day that Excel knows is in the year 9999.
    if !(0.0..2_958_466.0).contains(&days) {
        return None;
    }
    let seconds = (days * 86_400.0).round() as i64;
    let (mut day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let time = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    if day == 0 && !from_1904 {
        return Some(time);
    }
    if from_1904 {
        day += 1462;
    } else if day < 60 {
        // Excel has a 29 February 1900, as Lotus had.
        day += 1;
    }
    let (year, month, of_month) = civil(day - 25_569);
    let date = format!("{year:04}-{month:02}-{of_month:02}");
    Some(if second == 0 { date } else { format!("{date}T{time}") })
}

/// Returns the date of a day since 1970, by Hinnant's algorithm.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}
