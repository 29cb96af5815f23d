//! The dump of an index: all its facts as text, by which two indexes are compared.

use std::collections::HashMap;

use sidenote_base::error::Result;
use sidenote_links::dialect::LinkDialect;

use crate::Index;

impl Index {
    /// Describes the whole index in sorted lines, one for each fact. Equal indexes give equal lines.
    pub fn dump(&self) -> Result<Vec<String>> {
        let snapshot = self.snapshot()?;
        let digests = snapshot.bm25.digests()?;
        let catalog = self.catalog();
        let paths: HashMap<i64, String> =
            catalog.paths().all()?.into_iter().map(|(path, id)| (id, path.as_str().to_owned())).collect();
        let name = |id: i64| paths.get(&id).cloned().unwrap_or_else(|| format!("#{id}"));
        let mut lines = Vec::new();
        for row in catalog.rows(&paths.keys().copied().collect::<Vec<i64>>())? {
            let path = row.path.as_str();
            let hash =
                row.hash.map_or_else(String::new, |hash| blake3::Hash::from_bytes(hash).to_hex().to_string());
            let tags = catalog.tags_of(row.id)?.join(",");
            let (properties, problems) = catalog.properties().with_problems(row.id)?.unwrap_or_default();
            lines.push(format!(
                "file {path} {hash} {} {} {tags} {} {problems}",
                row.note_id,
                row.title,
                serde_json::Value::Object(properties)
            ));
            if let Some(sections) = catalog.sections_of(row.id)? {
                lines.push(format!("sections {path} {sections:?}"));
            }
            for link in catalog.links().outgoing(row.id)? {
                let target = link.target.map_or_else(|| "-".to_owned(), name);
                lines.push(format!(
                    "link {path}:{} #{} {} -> {target}",
                    link.position.line, link.position.ord, link.linkpath
                ));
            }
            for passage in catalog.passages().of(row.id)? {
                lines.push(format!("passage {path} {passage:016x}"));
            }
        }
        lines.extend(digests.iter().map(|(file, digest)| format!("terms {} {digest:016x}", name(*file))));
        lines.push(format!("count links {}", catalog.totals().links()?));
        lines.push(format!("count passages {}", catalog.totals().passages()?));
        let by_dialect = catalog.links().dialect_counts()?;
        let count =
            |dialect: LinkDialect| format!("count {} links {}", dialect.name(), by_dialect.of(dialect));
        lines.extend(LinkDialect::ALL.map(count));
        lines.sort_unstable();
        Ok(lines)
    }
}
