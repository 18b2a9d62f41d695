//! Reads the numbers of a `model.safetensors` file, whatever way they were written.

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};

use super::error::EmbeddingError;

pub(super) const FILE: &str = "model.safetensors";

/// The tensors of one file.
pub(super) struct Tensors<'a> {
    tensors: SafeTensors<'a>,
}

/// One tensor: its shape, and its numbers row by row.
pub(super) struct Numbers<T> {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<T>,
}

impl<'a> Tensors<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, EmbeddingError> {
        let tensors =
            SafeTensors::deserialize(bytes).map_err(|error| EmbeddingError::damaged(FILE, error))?;
        Ok(Self { tensors })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.tensor(name).is_ok()
    }

    /// The bytes of a tensor, where it holds small whole numbers.
    pub(super) fn bytes(&self, name: &str) -> Result<Option<Numbers<i8>>, EmbeddingError> {
        let view = self.view(name)?;
        if view.dtype() != Dtype::I8 {
            return Ok(None);
        }
        let values = view.data().iter().map(|byte| byte.cast_signed()).collect();
        Ok(Some(Numbers { shape: view.shape().to_vec(), values }))
    }

    /// A tensor as `f32`.
    pub(super) fn floats(&self, name: &str) -> Result<Numbers<f32>, EmbeddingError> {
        let view = self.view(name)?;
        let values: Vec<f32> = match view.dtype() {
            Dtype::F32 => words(view.data()).map(f32::from_le_bytes).collect(),
            Dtype::F16 => words(view.data()).map(|word| f16::from_le_bytes(word).to_f32()).collect(),
            Dtype::BF16 => words(view.data()).map(|word| bf16::from_le_bytes(word).to_f32()).collect(),
            #[expect(clippy::cast_possible_truncation, reason = "models are used in single precision")]
            Dtype::F64 => words(view.data()).map(|word| f64::from_le_bytes(word) as f32).collect(),
            other => return Err(EmbeddingError::unsupported(format!("tensor `{name}` of type {other:?}"))),
        };
        if values.iter().any(|value| !value.is_finite()) {
            return Err(EmbeddingError::damaged(
                FILE,
                format!("tensor `{name}` holds numbers that are not finite"),
            ));
        }
        Ok(Numbers { shape: view.shape().to_vec(), values })
    }

    /// A tensor of whole numbers that are not negative.
    pub(super) fn places(&self, name: &str) -> Result<Vec<usize>, EmbeddingError> {
        let view = self.view(name)?;
        let values: Option<Vec<usize>> = match view.dtype() {
            Dtype::I64 => words(view.data()).map(|word| i64::from_le_bytes(word).try_into().ok()).collect(),
            Dtype::U64 => words(view.data()).map(|word| u64::from_le_bytes(word).try_into().ok()).collect(),
            Dtype::I32 => words(view.data()).map(|word| i32::from_le_bytes(word).try_into().ok()).collect(),
            Dtype::U32 => words(view.data()).map(|word| u32::from_le_bytes(word).try_into().ok()).collect(),
            other => return Err(EmbeddingError::unsupported(format!("tensor `{name}` of type {other:?}"))),
        };
        values.ok_or_else(|| EmbeddingError::damaged(FILE, format!("tensor `{name}` holds negative places")))
    }

    fn view(&self, name: &str) -> Result<safetensors::tensor::TensorView<'a>, EmbeddingError> {
        self.tensors
            .tensor(name)
            .map_err(|_| EmbeddingError::damaged(FILE, format!("there is no tensor `{name}`")))
    }
}

fn words<const SIZE: usize>(data: &[u8]) -> impl Iterator<Item = [u8; SIZE]> {
    data.as_chunks().0.iter().copied()
}
