//! Reads the tensors of a `model.safetensors` file in any of its number formats.

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use super::error::EmbeddingError;

pub(super) const MODEL_FILE: &str = "model.safetensors";

/// A matrix of type `i8` has one scale per row, in a tensor of its name with this suffix.
pub(super) const SCALE_SUFFIX: &str = ".scale";

pub(super) struct Tensors<'a> {
    tensors: SafeTensors<'a>,
}

/// A tensor in row-major order.
pub(super) struct Tensor<T> {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<T>,
}

impl<'a> Tensors<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, EmbeddingError> {
        let tensors =
            SafeTensors::deserialize(bytes).map_err(|error| EmbeddingError::damaged(MODEL_FILE, error))?;
        Ok(Self { tensors })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.tensor(name).is_ok()
    }

    /// A tensor of type `i8`; `None` if it has another type.
    pub(super) fn int8(&self, name: &str) -> Result<Option<Tensor<i8>>, EmbeddingError> {
        let view = self.view(name)?;
        if view.dtype() != Dtype::I8 {
            return Ok(None);
        }
        let values = view.data().iter().map(|byte| byte.cast_signed()).collect();
        Ok(Some(Tensor { shape: view.shape().to_vec(), values }))
    }

    /// A tensor of floating-point numbers, converted to `f32`.
    pub(super) fn float32(&self, name: &str) -> Result<Tensor<f32>, EmbeddingError> {
        let view = self.view(name)?;
        let values: Vec<f32> = match view.dtype() {
            Dtype::F32 => chunks(view.data()).map(f32::from_le_bytes).collect(),
            Dtype::F16 => chunks(view.data()).map(|chunk| f16::from_le_bytes(chunk).to_f32()).collect(),
            Dtype::BF16 => chunks(view.data()).map(|chunk| bf16::from_le_bytes(chunk).to_f32()).collect(),
            #[expect(clippy::cast_possible_truncation, reason = "models are used in single precision")]
            Dtype::F64 => chunks(view.data()).map(|chunk| f64::from_le_bytes(chunk) as f32).collect(),
            Dtype::I8 => self.dequantize(name, &view)?,
            other => return Err(EmbeddingError::unsupported(format!("tensor `{name}` of type {other:?}"))),
        };
        if values.iter().any(|value| !value.is_finite()) {
            return Err(EmbeddingError::damaged(
                MODEL_FILE,
                format!("tensor `{name}` holds non-finite numbers"),
            ));
        }
        Ok(Tensor { shape: view.shape().to_vec(), values })
    }

    /// A matrix of codes with one scale per row.
    fn dequantize(&self, name: &str, view: &TensorView<'_>) -> Result<Vec<f32>, EmbeddingError> {
        let scale_name = format!("{name}{SCALE_SUFFIX}");
        let scales = self.view(&scale_name)?;
        let &[rows, columns] = view.shape() else {
            return Err(EmbeddingError::unsupported(format!("tensor `{name}` of type I8")));
        };
        if scales.dtype() != Dtype::F32 || scales.shape() != [rows] || columns == 0 {
            return Err(EmbeddingError::damaged(MODEL_FILE, format!("tensor `{scale_name}` does not fit")));
        }
        let mut values = Vec::with_capacity(view.data().len());
        for (row, scale) in view.data().chunks_exact(columns).zip(chunks(scales.data())) {
            let scale = f32::from_le_bytes(scale);
            values.extend(row.iter().map(|code| f32::from(code.cast_signed()) * scale));
        }
        Ok(values)
    }

    /// A tensor of non-negative integers.
    pub(super) fn indices(&self, name: &str) -> Result<Vec<usize>, EmbeddingError> {
        let view = self.view(name)?;
        let values: Option<Vec<usize>> = match view.dtype() {
            Dtype::I64 => {
                chunks(view.data()).map(|chunk| i64::from_le_bytes(chunk).try_into().ok()).collect()
            }
            Dtype::U64 => {
                chunks(view.data()).map(|chunk| u64::from_le_bytes(chunk).try_into().ok()).collect()
            }
            Dtype::I32 => {
                chunks(view.data()).map(|chunk| i32::from_le_bytes(chunk).try_into().ok()).collect()
            }
            Dtype::U32 => {
                chunks(view.data()).map(|chunk| u32::from_le_bytes(chunk).try_into().ok()).collect()
            }
            other => return Err(EmbeddingError::unsupported(format!("tensor `{name}` of type {other:?}"))),
        };
        values.ok_or_else(|| {
            EmbeddingError::damaged(MODEL_FILE, format!("tensor `{name}` holds negative indices"))
        })
    }

    fn view(&self, name: &str) -> Result<TensorView<'a>, EmbeddingError> {
        self.tensors
            .tensor(name)
            .map_err(|_| EmbeddingError::damaged(MODEL_FILE, format!("tensor `{name}` is missing")))
    }
}

fn chunks<const SIZE: usize>(data: &[u8]) -> impl Iterator<Item = [u8; SIZE]> {
    data.as_chunks().0.iter().copied()
}
