//! Makes `vocabulary.bin` beside a model folder's `tokenizer.json`: `cargo run --release --example convert_tokenizer -- model/builtin`.
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("name the model's folder")?);
    let compact =
        toolsearch_proxy::embedder::convert_tokenizer(&std::fs::read(folder.join("tokenizer.json"))?)?;
    println!("{} bytes", compact.len());
    std::fs::write(folder.join("vocabulary.bin"), compact)?;
    Ok(())
}
