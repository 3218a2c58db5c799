//! [`Catalog`]: one listing's tools with their index.

use super::tool::IndexedTool;
use crate::search::Index;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The tools of one listing in the upstream's order. Immutable, shared by all callers with that listing.
pub struct Catalog {
    tools: Box<[Arc<IndexedTool>]>,
    /// Indexes into `tools`, sorted by name; equal names in the upstream's order.
    by_name: Box<[u32]>,
    index: Index,
    instructions: Option<Box<str>>,
    left_out: usize,
    bytes: usize,
    counter: Arc<AtomicUsize>,
}

/// The definitions that share one name: usually one.
#[derive(Clone, Copy)]
pub struct Named<'a> {
    catalog: &'a Catalog,
    indexes: &'a [u32],
}

impl Catalog {
    pub(super) fn new(
        tools: Vec<Arc<IndexedTool>>,
        index: Index,
        instructions: Option<String>,
        left_out: usize,
        counter: &Arc<AtomicUsize>,
    ) -> Self {
        let count = u32::try_from(tools.len()).expect("a listing has fewer tools than 2^32");
        let mut by_name: Vec<u32> = (0..count).collect();
        by_name.sort_by_key(|&index| tools[index as usize].name());
        let bytes = size_of::<Self>()
            + tools.len() * (size_of::<Arc<IndexedTool>>() + size_of::<u32>())
            + index.heap_bytes()
            + instructions.as_ref().map_or(0, String::len);
        counter.fetch_add(bytes, Ordering::Relaxed);
        Self {
            tools: tools.into(),
            by_name: by_name.into(),
            index,
            instructions: instructions.map(String::into_boxed_str),
            left_out,
            bytes,
            counter: Arc::clone(counter),
        }
    }

    /// The tools in the upstream's order, as the index counts them.
    pub fn tools(&self) -> &[Arc<IndexedTool>] {
        &self.tools
    }

    /// The search index over [`Self::tools`].
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The upstream's instructions, unchanged.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// How many listed definitions were left out since no call could name them or the protocol forbids them.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The tools of exactly that name.
    ///
    /// # Cost
    /// A binary search.
    pub fn named(&self, name: &str) -> Option<Named<'_>> {
        let name_of = |index: &u32| self.tools[*index as usize].name();
        let start = self.by_name.partition_point(|index| name_of(index) < name);
        let count = self.by_name[start..].partition_point(|index| name_of(index) == name);
        let indexes = &self.by_name[start..start + count];
        (!indexes.is_empty()).then_some(Named { catalog: self, indexes })
    }

    /// All names, sorted; a name that is listed twice comes twice.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.iter().map(|&index| self.tools[index as usize].name())
    }
}

impl Drop for Catalog {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl<'a> Named<'a> {
    /// The definitions in the upstream's order; never empty.
    pub fn tools(self) -> impl Iterator<Item = &'a Arc<IndexedTool>> {
        self.indexes.iter().map(move |&index| &self.catalog.tools[index as usize])
    }

    /// The first definition.
    pub fn first(self) -> &'a Arc<IndexedTool> {
        &self.catalog.tools[self.indexes[0] as usize]
    }

    /// Whether every definition of the name is read-only: a name listed both ways is a write.
    pub fn is_read_only(self) -> bool {
        self.tools().all(|tool| tool.is_read_only())
    }
}
