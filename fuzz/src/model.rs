//! A model's files, whatever is in them.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use toolsearch_proxy::embedder::{StaticModel, convert_tokenizer};

/// In memory where there is such a folder; removed by nobody but the next run, which has its own.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = folder.join(format!("toolsearch-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for the model");
    folder
});

/// The first byte says how the vocabulary comes (as a tokenizer, or in its compact form), the next two how long it is; the
/// rest is the table.
pub fn model(data: &[u8]) {
    let [form, high, low, rest @ ..] = data else { return };
    let (vocabulary, table) = rest.split_at((usize::from(*high) * 256 + usize::from(*low)).min(rest.len()));
    let compact = FOLDER.join("vocabulary.bin");
    let written = if form % 2 == 0 {
        let Ok(converted) = convert_tokenizer(vocabulary) else { return };
        fs::write(&compact, converted)
    } else {
        fs::write(&compact, vocabulary)
    };
    written
        .and_then(|()| fs::write(FOLDER.join("model.safetensors"), table))
        .expect("the folder takes files");
    let opened = StaticModel::open(&FOLDER);
    if let Ok(model) = opened {
        let vector = model.encode("Send an e-mail ☃ to žirafa");
        assert!(vector.iter().all(|number| number.is_finite()), "{vector:?}");
    }
}
