//! Schemas and arguments: no pair makes the check fail, overflow the stack of a worker, or take long.

use crate::two_parts;
use serde_json::value::RawValue;
use toolsearch_proxy::tools::ArgumentSchema;

/// Half of what a worker's stack has, plus what the instrumentation needs.
const STACK_BYTES: usize = 2 << 20;

/// The first line is the schema, the rest the arguments.
pub fn schema(data: &[u8]) {
    let (schema, arguments) = two_parts(data);
    let Ok(schema) = serde_json::from_slice::<&RawValue>(schema) else { return };
    let arguments = serde_json::from_slice::<&RawValue>(arguments).ok();
    std::thread::scope(|scope| {
        let check = || {
            let compiled = ArgumentSchema::compile(schema);
            let Some(arguments) = arguments else { return };
            let Err(violations) = compiled.check(arguments) else { return };
            assert!((1..=10).contains(&violations.len()));
            assert!(violations.iter().all(|violation| violation.message.len() <= 2048));
        };
        let worker = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, check);
        worker.unwrap().join().unwrap();
    });
}
