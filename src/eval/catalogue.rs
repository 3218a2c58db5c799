//! A catalogue of tools to measure on: from a file, or as an upstream lists it.

use super::EvalError;
use crate::catalog::analyze_definition;
use crate::search::{AnalyzedDocument, Ranker};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Analyzed tools in the order in which they are listed.
pub struct Catalogue {
    names: Vec<String>,
    documents: Vec<Arc<AnalyzedDocument>>,
    positions: HashMap<String, usize>,
}

impl Catalogue {
    /// From a file: `{"tools": [..]}` or `[..]`.
    ///
    /// # Errors
    /// When the file can't be read or holds something else.
    pub fn read(path: &Path, ranker: &Ranker) -> Result<Self, EvalError> {
        #[derive(Deserialize)]
        struct Listed<'a> {
            #[serde(borrow)]
            tools: Vec<&'a RawValue>,
        }
        let bytes = fs::read(path).map_err(|source| EvalError::Read { path: path.to_owned(), source })?;
        let bytes = Bytes::from(bytes);
        let tools = if bytes.trim_ascii_start().starts_with(b"[") {
            serde_json::from_slice::<Vec<&RawValue>>(&bytes)
        } else {
            serde_json::from_slice::<Listed<'_>>(&bytes).map(|listed| listed.tools)
        };
        let tools = tools
            .map_err(|error| EvalError::Catalogue { path: path.to_owned(), reason: error.to_string() })?;
        Ok(Self::new(tools.iter().map(|tool| bytes.slice_ref(tool.get().as_bytes())), ranker))
    }

    /// From definitions as an upstream lists them. Those that no call could name are left out, as in the proxy.
    pub fn new(definitions: impl IntoIterator<Item = Bytes>, ranker: &Ranker) -> Self {
        let (mut names, mut documents) = (Vec::new(), Vec::new());
        let mut positions = HashMap::new();
        for (name, document) in definitions.into_iter().filter_map(|tool| analyze_definition(&tool, ranker)) {
            positions.entry(name.clone()).or_insert(names.len());
            names.push(name);
            documents.push(Arc::new(document));
        }
        Self { names, documents, positions }
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The name of the tool at `position`.
    pub fn name(&self, position: usize) -> &str {
        &self.names[position]
    }

    /// Where the tool of that name is first listed.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    /// All tools, analyzed.
    pub fn documents(&self) -> &[Arc<AnalyzedDocument>] {
        &self.documents
    }
}
