//! Makes the weights of a model a quarter as large: one byte per number and one scale per row.

use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use super::{
    error::EmbeddingError,
    model_files::is_bert_config,
    tensors::{MODEL_FILE, SCALE_SUFFIX},
};

/// The largest code of a weight.
const MAX_CODE: f32 = 127.0;

/// A tensor to be written.
struct StoredTensor {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// The `model.safetensors` of a BERT model with the matrices quantized to one byte per number. Other models are returned
/// as they are: static ones are small.
pub fn compact_weights(config: &[u8], model: Vec<u8>) -> Result<Vec<u8>, EmbeddingError> {
    if !is_bert_config(config)? {
        return Ok(model);
    }
    let damaged = |error| EmbeddingError::damaged(MODEL_FILE, error);
    let tensors = SafeTensors::deserialize(&model).map_err(damaged)?;
    let mut stored = Vec::new();
    for (name, view) in tensors.iter() {
        match (view.dtype(), view.shape()) {
            (Dtype::F32, &[rows, columns]) if rows > 0 && columns > 0 => {
                stored.extend(quantize_rows(name, rows, columns, view.data()));
            }
            (dtype, shape) => {
                let (shape, bytes) = (shape.to_vec(), view.data().to_vec());
                stored.push(StoredTensor { name: name.to_owned(), dtype, shape, bytes });
            }
        }
    }
    let views = stored
        .iter()
        .map(|tensor| {
            Ok((&*tensor.name, TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.bytes)?))
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(damaged)?;
    safetensors::serialize(views, None).map_err(damaged)
}

/// The codes of a matrix and the scales of its rows.
fn quantize_rows(name: &str, rows: usize, columns: usize, data: &[u8]) -> [StoredTensor; 2] {
    let values: Vec<f32> = data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let mut codes = Vec::with_capacity(values.len());
    let mut scales = Vec::with_capacity(rows * 4);
    for row in values.chunks_exact(columns) {
        let max = row.iter().fold(0.0f32, |max, value| value.abs().max(max));
        // A number that is not finite makes the scale not finite, which is refused when the model is opened.
        let is_finite = row.iter().all(|value| value.is_finite());
        let scale = if is_finite { max / MAX_CODE } else { f32::NAN };
        scales.extend_from_slice(&scale.to_le_bytes());
        codes.extend(row.iter().map(|value| quantize(value / scale)));
    }
    [
        StoredTensor { name: name.to_owned(), dtype: Dtype::I8, shape: vec![rows, columns], bytes: codes },
        StoredTensor {
            name: format!("{name}{SCALE_SUFFIX}"),
            dtype: Dtype::F32,
            shape: vec![rows],
            bytes: scales,
        },
    ]
}

/// A row of zeros has the scale 0; its codes are 0.
fn quantize(value: f32) -> u8 {
    #[expect(clippy::cast_possible_truncation, reason = "clamped to the largest code; NaN becomes 0")]
    let code = value.round().clamp(-MAX_CODE, MAX_CODE) as i8;
    code.cast_unsigned()
}
