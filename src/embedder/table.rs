//! The rows of `model.safetensors`: 8 bits a number, used in place, or made 8-bit row by row.
//!
//! ```text
//! u64 bytes of the header, the header (JSON: name to dtype, shape, data_offsets), the data
//! ```
//!
//! Source: the safetensors format. Tensors that model2vec writes: `embeddings` (rows by dimensions), and optionally
//! `weights` (one for each token) and `mapping` (token to row).

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::ops::Range;

use serde::Deserialize;
use serde_json::json;

use super::model::ModelError;

/// A header beyond this is not a model of ours.
const HEADER_BYTES_MAX: u64 = 1 << 20;

const DIMENSIONS_MAX: usize = 4096;

/// Largest weight of a token and scale of a row; those of real models are near 1.
const WEIGHT_MAX: f32 = 1e5;

#[derive(Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

/// A table of vectors.
#[derive(Debug)]
pub(super) struct Table {
    dimensions: usize,
    bytes: Cow<'static, [u8]>,
    rows: Range<usize>,
    /// What a row's numbers are multiplied by, when rows differ.
    scales: Vec<f32>,
    /// What each token's row counts.
    weights: Vec<f32>,
    /// Token to row, when that is not the same.
    mapping: Vec<u32>,
}

impl Table {
    /// Over the bytes of a file whose table has 8 bits; nothing is copied.
    pub fn in_place(bytes: &'static [u8]) -> Result<Self, ModelError> {
        let (tensors, start) = read_header(&mut &*bytes, bytes.len() as u64)?;
        let embeddings = tensors.get("embeddings").filter(|tensor| tensor.dtype == "I8");
        let embeddings = embeddings.ok_or_else(|| broken("it has no 8-bit table"))?;
        let (dimensions, size) = shape(embeddings)?;
        let rows = data_range(embeddings, start, bytes.len(), size)?;
        let part = |range: Range<usize>| {
            let (from, to) = (start.checked_add(range.start)?, start.checked_add(range.end)?);
            bytes.get(from..to).map(<[u8]>::to_vec)
        };
        let (weights, mapping) = (weights(&tensors, part)?, mapping(&tensors, part)?);
        Self { dimensions, bytes: Cow::Borrowed(bytes), rows, scales: Vec::new(), weights, mapping }.checked()
    }

    /// From a file of `len` bytes, read from its start to its end. A table of more bits becomes 8-bit as it is read.
    pub fn read(mut file: impl Read, len: u64) -> Result<Self, ModelError> {
        let (tensors, start) = read_header(&mut file, len)?;
        let table = tensors
            .get("embeddings")
            .or_else(|| tensors.get("embedding.weight"))
            .or_else(|| tensors.get("0"));
        let table = table.ok_or_else(|| broken("it has no table"))?;
        let (dimensions, size) = shape(table)?;
        data_range(table, start, usize::try_from(len).map_err(|_| broken("it is too large"))?, size)?;
        let mut parts: Vec<(&str, &Tensor)> =
            tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        parts.sort_unstable_by_key(|(_, tensor)| tensor.data_offsets);
        let mut at = 0;
        let (mut numbers, mut scales) = (Vec::new(), Vec::new());
        let mut small: HashMap<[usize; 2], Vec<u8>> = HashMap::new();
        for (_, tensor) in parts {
            let [from, to] = tensor.data_offsets;
            if from < at || to < from {
                return Err(broken("its tensors overlap"));
            }
            skip(&mut file, from - at)?;
            at = to;
            if std::ptr::eq(tensor, table) {
                (numbers, scales) = quantized(&mut file, &tensor.dtype, dimensions, size)?;
            } else {
                small.insert([from, to], read_exact(&mut file, to - from)?);
            }
        }
        let part = |range: Range<usize>| small.get(&[range.start, range.end]).cloned();
        let (weights, mapping) = (weights(&tensors, part)?, mapping(&tensors, part)?);
        let rows = 0..numbers.len();
        Self { dimensions, bytes: Cow::Owned(numbers), rows, scales, weights, mapping }.checked()
    }

    fn checked(self) -> Result<Self, ModelError> {
        let rows = self.rows.len() / self.dimensions;
        if self.mapping.iter().any(|&row| row as usize >= rows) {
            return Err(broken("its mapping names a row that it does not have"));
        }
        // Beyond that the sum of a text could leave what 32 bits hold.
        let is_usable = |weight: &f32| weight.abs() <= WEIGHT_MAX;
        if !self.weights.iter().chain(&self.scales).all(is_usable) {
            return Err(broken("it has numbers that are too large or not finite"));
        }
        Ok(self)
    }

    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// How many tokens have a row.
    pub fn tokens(&self) -> usize {
        let rows = self.rows.len() / self.dimensions;
        if self.mapping.is_empty() { rows } else { self.mapping.len() }
    }

    pub fn heap_bytes(&self) -> usize {
        let table = match &self.bytes {
            Cow::Borrowed(_) => 0,
            Cow::Owned(bytes) => bytes.capacity(),
        };
        table + (self.scales.capacity() + self.weights.capacity() + self.mapping.capacity()) * 4
    }

    /// Writes it as `model.safetensors` with 8 bits a number. What a row and a token are multiplied by becomes one
    /// weight a token, so the vectors that come back are the same.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let weights: Vec<u8> = (0..self.tokens())
            .flat_map(|token| {
                let row = self.mapping.get(token).map_or(token, |&row| row as usize);
                let scale = self.scales.get(row).copied().unwrap_or(1.0);
                (scale * self.weights.get(token).copied().unwrap_or(1.0)).to_le_bytes()
            })
            .collect();
        let mapping: Vec<u8> = self.mapping.iter().flat_map(|&row| i64::from(row).to_le_bytes()).collect();
        let rows = self.rows.len() / self.dimensions;
        let mut tensors = serde_json::Map::new();
        let mut end = 0;
        let parts = [
            ("embeddings", "I8", vec![rows, self.dimensions], self.rows.len()),
            ("weights", "F32", vec![self.tokens()], weights.len()),
            ("mapping", "I64", vec![self.mapping.len()], mapping.len()),
        ];
        for (name, dtype, shape, len) in parts.into_iter().filter(|part| part.3 > 0) {
            let tensor = json!({"dtype": dtype, "shape": shape, "data_offsets": [end, end + len]});
            tensors.insert(name.to_owned(), tensor);
            end += len;
        }
        let header = serde_json::Value::Object(tensors).to_string();
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(header.as_bytes())?;
        out.write_all(&self.bytes[self.rows.clone()])?;
        out.write_all(&weights)?;
        out.write_all(&mapping)
    }

    /// Adds each token's vector to `sum`, one after the other; an unknown token adds nothing.
    pub fn add_all(&self, tokens: &[u32], sum: &mut [f32]) {
        /// Bytes that come from memory at once.
        const LINE: usize = 64;
        let row_of = self.row_of();
        let mut rows: Vec<(&[u8], f32)> = Vec::with_capacity(tokens.len());
        for &token in tokens {
            if let Some(row) = row_of(token) {
                rows.push(row);
            }
        }
        // Rows lie anywhere in tens of megabytes. Asked for together they arrive together, rather than one after the other.
        let mut touched = 0;
        for (numbers, _) in &rows {
            for line in numbers.chunks(LINE) {
                touched ^= line[0];
            }
        }
        std::hint::black_box(touched);
        pulp::Arch::new().dispatch(AddRows { rows: &rows, sum });
    }

    /// Gives each token's numbers, and what they are multiplied by.
    fn row_of<'t>(&'t self) -> impl Fn(u32) -> Option<(&'t [u8], f32)> {
        let rows = &self.bytes[self.rows.clone()];
        move |token| {
            let token = token as usize;
            let row = match self.mapping.get(token) {
                Some(&row) => row as usize,
                None if self.mapping.is_empty() => token,
                None => return None,
            };
            let start = row.checked_mul(self.dimensions)?;
            let numbers = rows.get(start..)?.get(..self.dimensions)?;
            let weight = self.weights.get(token).copied().unwrap_or(1.0);
            Some((numbers, self.scales.get(row).copied().unwrap_or(1.0) * weight))
        }
    }
}

/// Adds rows: compiled for each width of instructions, of which this machine's widest runs. Sums are the same in each.
struct AddRows<'a> {
    rows: &'a [(&'a [u8], f32)],
    sum: &'a mut [f32],
}

impl pulp::NullaryFnOnce for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let (blocks, rest) = self.sum.as_chunks_mut::<BLOCK>();
        let rest_start = blocks.len() * BLOCK;
        for (at, block) in blocks.iter_mut().enumerate() {
            // So few numbers stay in registers from the first row to the last.
            let mut lanes = *block;
            for (numbers, scale) in self.rows {
                if let Some(numbers) = numbers.as_chunks::<BLOCK>().0.get(at) {
                    for place in 0..BLOCK {
                        lanes[place] += scale * f32::from(numbers[place] as i8);
                    }
                }
            }
            *block = lanes;
        }
        if rest.is_empty() {
            return;
        }
        for (numbers, scale) in self.rows {
            for (place, &number) in rest.iter_mut().zip(&numbers[rest_start..]) {
                *place += scale * f32::from(number as i8);
            }
        }
    }
}

/// Numbers of a sum that are worked on together.
const BLOCK: usize = 32;

fn broken(why: &str) -> ModelError {
    ModelError::Table(why.to_owned())
}

fn read_header(file: &mut impl Read, len: u64) -> Result<(HashMap<String, Tensor>, usize), ModelError> {
    let size = u64::from_le_bytes(read_exact(file, 8)?.try_into().expect("eight bytes were read"));
    if size > HEADER_BYTES_MAX || size + 8 > len {
        return Err(broken("its header is too large"));
    }
    let header = read_exact(file, size as usize)?;
    let mut values: HashMap<String, serde_json::Value> =
        serde_json::from_slice(&header).map_err(|error| ModelError::Table(error.to_string()))?;
    values.remove("__metadata__");
    let tensors = values.into_iter().map(|(name, value)| Ok((name, serde_json::from_value(value)?)));
    let tensors: Result<_, serde_json::Error> = tensors.collect();
    Ok((tensors.map_err(|error| ModelError::Table(error.to_string()))?, size as usize + 8))
}

/// The dimensions and the bytes of a table.
fn shape(tensor: &Tensor) -> Result<(usize, usize), ModelError> {
    let [rows, dimensions] = tensor.shape[..] else { return Err(broken("its table has not two dimensions")) };
    if dimensions == 0 || dimensions > DIMENSIONS_MAX || rows == 0 {
        return Err(broken("its table is empty or too wide"));
    }
    let size =
        rows.checked_mul(dimensions).and_then(|numbers| numbers.checked_mul(number_bytes(&tensor.dtype)?));
    Ok((dimensions, size.ok_or_else(|| broken("its table has a number type that is not supported"))?))
}

fn number_bytes(dtype: &str) -> Option<usize> {
    match dtype {
        "I8" => Some(1),
        "F16" => Some(2),
        "F32" | "I32" => Some(4),
        "F64" | "I64" => Some(8),
        _ => None,
    }
}

fn data_range(tensor: &Tensor, start: usize, len: usize, size: usize) -> Result<Range<usize>, ModelError> {
    let [from, to] = tensor.data_offsets;
    let range = start.checked_add(from).zip(start.checked_add(to)).map(|(from, to)| from..to);
    range
        .filter(|range| range.start <= range.end && range.end <= len && range.len() == size)
        .ok_or_else(|| broken("its table does not lie where its header says"))
}

fn numbers(tensor: &Tensor, bytes: &[u8]) -> Option<Vec<f64>> {
    let size = number_bytes(&tensor.dtype)?;
    let count = tensor.shape.iter().try_fold(1_usize, |count, &length| count.checked_mul(length))?;
    if bytes.len() != count.checked_mul(size)? {
        return None;
    }
    bytes.chunks_exact(size).map(|number| number_from(&tensor.dtype, number)).collect()
}

fn number_from(dtype: &str, bytes: &[u8]) -> Option<f64> {
    Some(match dtype {
        "I8" => f64::from(*bytes.first()? as i8),
        "F16" => f64::from(half(u16::from_le_bytes(bytes.try_into().ok()?))),
        "F32" => f64::from(f32::from_le_bytes(bytes.try_into().ok()?)),
        "F64" => f64::from_le_bytes(bytes.try_into().ok()?),
        "I32" => f64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
        "I64" => i64::from_le_bytes(bytes.try_into().ok()?) as f64,
        _ => return None,
    })
}

/// IEEE 754 half precision.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f32::from(bits & 0x3ff) / 1024.0;
    sign * match exponent {
        0 => fraction * 2.0_f32.powi(-14),
        31 => f32::INFINITY,
        _ => (1.0 + fraction) * 2.0_f32.powi(exponent - 15),
    }
}

type Part<'a> = &'a HashMap<String, Tensor>;

fn weights(
    tensors: Part<'_>,
    part: impl Fn(Range<usize>) -> Option<Vec<u8>>,
) -> Result<Vec<f32>, ModelError> {
    let Some(tensor) = tensors.get("weights") else { return Ok(Vec::new()) };
    let bytes = part(tensor.data_offsets[0]..tensor.data_offsets[1])
        .ok_or_else(|| broken("its weights lie outside it"))?;
    let values = numbers(tensor, &bytes).ok_or_else(|| broken("its weights are not numbers"))?;
    Ok(values.into_iter().map(|weight| weight as f32).collect())
}

fn mapping(
    tensors: Part<'_>,
    part: impl Fn(Range<usize>) -> Option<Vec<u8>>,
) -> Result<Vec<u32>, ModelError> {
    let Some(tensor) = tensors.get("mapping") else { return Ok(Vec::new()) };
    let bytes = part(tensor.data_offsets[0]..tensor.data_offsets[1])
        .ok_or_else(|| broken("its mapping lies outside it"))?;
    let values = numbers(tensor, &bytes).ok_or_else(|| broken("its mapping is not numbers"))?;
    let rows = values.into_iter().map(|row| (row >= 0.0 && row <= f64::from(u32::MAX)).then_some(row as u32));
    rows.collect::<Option<_>>().ok_or_else(|| broken("its mapping names a row that it does not have"))
}

/// Reads a table row by row into 8 bits, with a scale for each row unless it has 8 bits already.
fn quantized(
    file: &mut impl Read,
    dtype: &str,
    dimensions: usize,
    size: usize,
) -> Result<(Vec<u8>, Vec<f32>), ModelError> {
    if dtype == "I8" {
        return Ok((read_exact(file, size)?, Vec::new()));
    }
    let number =
        number_bytes(dtype).ok_or_else(|| broken("its table has a number type that is not supported"))?;
    let rows = size / number / dimensions;
    let (mut all, mut scales) = (Vec::with_capacity(rows * dimensions), Vec::with_capacity(rows));
    let mut row = vec![0; dimensions * number];
    let mut values = vec![0.0_f32; dimensions];
    for _ in 0..rows {
        file.read_exact(&mut row).map_err(|error| ModelError::Table(error.to_string()))?;
        for (value, bytes) in values.iter_mut().zip(row.chunks_exact(number)) {
            *value = number_from(dtype, bytes).unwrap_or(0.0) as f32;
        }
        let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
        all.extend(values.iter().map(|value| (value / scale).round() as i8 as u8));
        scales.push(scale);
    }
    Ok((all, scales))
}

fn read_exact(file: &mut impl Read, len: usize) -> Result<Vec<u8>, ModelError> {
    let mut bytes = Vec::new();
    file.take(len as u64).read_to_end(&mut bytes).map_err(|error| ModelError::Table(error.to_string()))?;
    if bytes.len() < len {
        return Err(broken("it ends too early"));
    }
    Ok(bytes)
}

fn skip(file: &mut impl Read, len: usize) -> Result<(), ModelError> {
    let skipped = io::copy(&mut file.take(len as u64), &mut io::sink());
    match skipped {
        Ok(skipped) if skipped == len as u64 => Ok(()),
        Ok(_) => Err(broken("it ends too early")),
        Err(error) => Err(ModelError::Table(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    /// What both ways of reading say of a file.
    fn refusals(bytes: &[u8]) -> [Option<String>; 2] {
        let kept: &'static [u8] = Box::leak(bytes.to_vec().into_boxed_slice());
        let why = |table: Result<Table, ModelError>| table.err().map(|error| error.to_string());
        [why(Table::read(bytes, bytes.len() as u64)), why(Table::in_place(kept))]
    }

    #[test]
    fn rows_of_any_length_are_added_whole() {
        for dimensions in [1, 31, 32, 33, 64, 70, 224] {
            let numbers: Vec<u8> = (0..3 * dimensions).map(|i| (i * 37 % 251) as u8).collect();
            let header = format!(
                r#"{{"embeddings":{{"dtype":"I8","shape":[3,{dimensions}],"data_offsets":[0,{}]}}}}"#,
                3 * dimensions
            );
            let bytes = file(&header, &numbers);
            let table = Table::read(&bytes[..], bytes.len() as u64).unwrap();
            let mut sum = vec![0.5; dimensions];
            // The second is no token of this table.
            table.add_all(&[2, 9, 0], &mut sum);
            let at = |row: usize, i: usize| f32::from(numbers[row * dimensions + i] as i8);
            let expected: Vec<f32> = (0..dimensions).map(|i| 0.5 + at(2, i) + at(0, i)).collect();
            assert_eq!(sum, expected, "{dimensions}");
        }
    }

    const SOUND: &str = r#""embeddings":{"dtype":"I8","shape":[2,4],"data_offsets":[0,8]}"#;

    #[test]
    fn t_s4_a_table_that_lies_about_itself_is_refused() {
        assert_eq!(refusals(&file(&format!("{{{SOUND}}}"), &[1; 8])), [None, None]);
        let far = u64::MAX;
        let mut liars = vec![
            vec![],
            vec![1; 7],
            (1_u64 << 63).to_le_bytes().to_vec(),
            [&far.to_le_bytes()[..], b"{}"].concat(),
            file("{", &[]),
            file("[]", &[]),
            file("{}", &[]),
            file(&"x".repeat(2 << 20), &[]),
            file(&format!("{{{SOUND}}}"), &[1; 7]),
        ];
        for lie in [
            r#""embeddings":{"dtype":"I8","shape":[4611686018427387904,4],"data_offsets":[0,8]}"#,
            r#""embeddings":{"dtype":"I8","shape":[2,4],"data_offsets":[8,0]}"#,
            r#""embeddings":{"dtype":"I8","shape":[2,4],"data_offsets":[18446744073709551607,18446744073709551615]}"#,
            r#""embeddings":{"dtype":"I8","shape":[8,0],"data_offsets":[0,8]}"#,
            r#""embeddings":{"dtype":"I8","shape":[1,2,4],"data_offsets":[0,8]}"#,
            r#""embeddings":{"dtype":"BF16","shape":[2,4],"data_offsets":[0,8]}"#,
            r#""embeddings":7"#,
        ] {
            liars.push(file(&format!("{{{lie}}}"), &[1; 8]));
        }
        for lie in [
            r#""weights":{"dtype":"F32","shape":[4611686018427387904,8],"data_offsets":[8,16]}"#,
            r#""weights":{"dtype":"F32","shape":[2],"data_offsets":[18446744073709551607,18446744073709551615]}"#,
            r#""weights":{"dtype":"F32","shape":[3],"data_offsets":[8,16]}"#,
            r#""weights":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}"#,
            r#""mapping":{"dtype":"I32","shape":[2],"data_offsets":[8,16]}"#,
        ] {
            // As numbers these bytes are 2147483647, and not a number.
            liars.push(file(
                &format!("{{{SOUND},{lie}}}"),
                &[&[1; 8], &[255, 255, 255, 127].repeat(2)[..]].concat(),
            ));
        }
        for bytes in liars {
            let [read, in_place] = refusals(&bytes);
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
            assert!(read.is_some() && in_place.is_some(), "{shown}: {read:?} {in_place:?}");
        }
        let weights = r#""weights":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}"#;
        for number in [f32::NAN, f32::INFINITY, 1e38, -1e38] {
            let data = [&[1; 8][..], &number.to_le_bytes(), &1_f32.to_le_bytes()].concat();
            assert!(
                refusals(&file(&format!("{{{SOUND},{weights}}}"), &data)).iter().all(Option::is_some),
                "{number}"
            );
        }
    }
}
