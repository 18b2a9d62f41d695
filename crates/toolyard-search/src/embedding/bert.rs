//! BERT models: contextual embeddings. More accurate than static models and thousands of times slower.

use ndarray::{Array1, Array2, ArrayView2, Axis, concatenate};
use serde::Deserialize;

use super::error::EmbeddingError;
use super::tensors::{MODEL_FILE, Tensors};
use super::vectors::{Embedding, MAX_DIMENSIONS};
use super::wordpiece::WordPieceTokenizer;

/// Further tokens of a text are ignored: attention takes time quadratic in their number.
const MAX_TOKENS: usize = 128;

const MAX_LAYERS: usize = 48;

/// The dimensions of a model, from `config.json`.
#[derive(Debug, Deserialize)]
pub(super) struct BertConfig {
    hidden_size: usize,
    intermediate_size: usize,
    max_position_embeddings: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    vocab_size: usize,
    #[serde(default = "default_epsilon")]
    layer_norm_eps: f32,
    #[serde(default = "default_activation")]
    hidden_act: String,
}

fn default_epsilon() -> f32 {
    1e-12
}

fn default_activation() -> String {
    "gelu".to_owned()
}

/// How the vectors of all tokens are combined into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    Mean,
    /// The vector of `[CLS]`.
    FirstToken,
}

#[derive(Debug)]
pub(super) struct Bert {
    tokenizer: WordPieceTokenizer,
    cls_id: usize,
    sep_id: usize,
    unknown_id: usize,
    max_tokens: usize,
    token_embeddings: Array2<f32>,
    /// Includes the token type embedding, which is the same for all tokens.
    position_embeddings: Array2<f32>,
    norm: LayerNorm,
    layers: Vec<Layer>,
    head_size: usize,
    pooling: Pooling,
}

#[derive(Debug)]
struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attention_output: Linear,
    attention_norm: LayerNorm,
    intermediate: Linear,
    output: Linear,
    norm: LayerNorm,
}

#[derive(Debug)]
struct Linear {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

#[derive(Debug)]
struct LayerNorm {
    weight: Array1<f32>,
    bias: Array1<f32>,
    epsilon: f32,
}

impl Bert {
    pub(super) fn read(
        tensors: &Tensors<'_>,
        config: &BertConfig,
        tokenizer: WordPieceTokenizer,
        pooling: Pooling,
    ) -> Result<Self, EmbeddingError> {
        config.check()?;
        let loader = WeightLoader { tensors, config, prefix: WeightLoader::prefix(tensors) };
        let size = config.hidden_size;
        let token_embeddings = loader.matrix("embeddings.word_embeddings.weight", config.vocab_size, size)?;
        let position_embeddings =
            loader.matrix("embeddings.position_embeddings.weight", config.max_position_embeddings, size)?;
        let token_types = loader.any_matrix("embeddings.token_type_embeddings.weight")?;
        let token_type = token_types.axis_iter(Axis(0)).next().filter(|row| row.len() == size);
        let token_type = token_type.ok_or_else(|| wrong_shape("embeddings.token_type_embeddings.weight"))?;
        let special_tokens =
            [tokenizer.token_id("[CLS]"), tokenizer.token_id("[SEP]"), tokenizer.unknown_id()];
        let [Some(cls_id), Some(sep_id), Some(unknown_id)] = special_tokens else {
            return Err(EmbeddingError::unsupported("a vocabulary without [CLS], [SEP] and [UNK]"));
        };
        if tokenizer.vocabulary_size() > config.vocab_size {
            return Err(EmbeddingError::damaged(MODEL_FILE, "the tokenizer has tokens without a vector"));
        }
        let max_tokens = MAX_TOKENS.min(config.max_position_embeddings);
        Ok(Self {
            cls_id,
            sep_id,
            unknown_id,
            max_tokens,
            position_embeddings: &position_embeddings + &token_type,
            token_embeddings,
            norm: loader.norm("embeddings.LayerNorm")?,
            layers: (0..config.num_hidden_layers)
                .map(|index| loader.layer(index))
                .collect::<Result<_, _>>()?,
            head_size: size / config.num_attention_heads,
            pooling,
            tokenizer,
        })
    }

    pub(super) fn dimensions(&self) -> usize {
        self.token_embeddings.ncols()
    }

    pub(super) fn embed(&self, text: &str) -> Option<Embedding> {
        // Without [CLS] and [SEP].
        let max_text_tokens = self.max_tokens.saturating_sub(2);
        let tokens: Vec<usize> = self
            .tokenizer
            .tokenize(text)
            .take(max_text_tokens)
            .map(|token| token.unwrap_or(self.unknown_id))
            .collect();
        if tokens.is_empty() {
            return None;
        }
        let sequence: Vec<usize> =
            std::iter::once(self.cls_id).chain(tokens).chain(std::iter::once(self.sep_id)).collect();
        let mut state = self.token_embeddings.select(Axis(0), &sequence);
        for (mut row, position) in state.rows_mut().into_iter().zip(self.position_embeddings.rows()) {
            row += &position;
        }
        self.norm.apply(&mut state);
        for layer in &self.layers {
            state = layer.apply(&state, self.head_size)?;
        }
        let pooled = match self.pooling {
            Pooling::Mean => state.mean_axis(Axis(0))?,
            Pooling::FirstToken => state.rows().into_iter().next()?.to_owned(),
        };
        Embedding::new(pooled.to_vec())
    }
}

impl Layer {
    fn apply(&self, state: &Array2<f32>, head_size: usize) -> Option<Array2<f32>> {
        let (query, key, value) = (self.query.apply(state), self.key.apply(state), self.value.apply(state));
        let heads = query
            .axis_chunks_iter(Axis(1), head_size)
            .zip(key.axis_chunks_iter(Axis(1), head_size))
            .zip(value.axis_chunks_iter(Axis(1), head_size));
        let heads: Vec<Array2<f32>> =
            heads.map(|((query, key), value)| attend(&query, &key, &value, head_size)).collect();
        let views: Vec<ArrayView2<'_, f32>> = heads.iter().map(|head| head.view()).collect();
        let mut attention_output = self.attention_output.apply(&concatenate(Axis(1), &views).ok()?);
        attention_output += state;
        self.attention_norm.apply(&mut attention_output);

        let mut intermediate = self.intermediate.apply(&attention_output);
        intermediate.mapv_inplace(gelu);
        let mut next = self.output.apply(&intermediate);
        next += &attention_output;
        self.norm.apply(&mut next);
        Some(next)
    }
}

/// Scaled dot-product attention of one head.
fn attend(
    query: &ArrayView2<'_, f32>,
    key: &ArrayView2<'_, f32>,
    value: &ArrayView2<'_, f32>,
    head_size: usize,
) -> Array2<f32> {
    #[expect(clippy::cast_precision_loss, reason = "a head has at most a few thousand dimensions")]
    let scale = (head_size as f32).sqrt().recip();
    let mut attention = query.dot(&key.t());
    for mut row in attention.rows_mut() {
        // Softmax; subtracting the maximum avoids overflow.
        let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row.mapv_inplace(|score| ((score - max) * scale).exp());
        let sum = row.sum();
        row /= sum;
    }
    attention.dot(value)
}

impl Linear {
    fn apply(&self, input: &Array2<f32>) -> Array2<f32> {
        input.dot(&self.weight.t()) + &self.bias
    }
}

impl LayerNorm {
    fn apply(&self, state: &mut Array2<f32>) {
        for mut row in state.rows_mut() {
            let mean = row.mean().unwrap_or_default();
            row -= mean;
            let variance = row.iter().map(|value| value * value).sum::<f32>() * reciprocal(row.len());
            row /= (variance + self.epsilon).sqrt();
            row *= &self.weight;
            row += &self.bias;
        }
    }
}

fn reciprocal(length: usize) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "at most a few thousand")]
    let length = length as f32;
    length.recip()
}

/// x · Φ(x), with the error function from Abramowitz and Stegun, 7.1.26 (exact to 2e-7).
fn gelu(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let series =
        t * (0.254_829_6 + t * (-0.284_496_74 + t * (1.421_413_8 + t * (-1.453_152 + t * 1.061_405_4))));
    let tail = 0.5 * series * (-z * z).exp();
    if x < 0.0 { x * tail } else { x * (1.0 - tail) }
}

impl BertConfig {
    fn check(&self) -> Result<(), EmbeddingError> {
        if self.hidden_act != "gelu" {
            return Err(EmbeddingError::unsupported(format!("the activation `{}`", self.hidden_act)));
        }
        let heads_divide_size =
            self.num_attention_heads > 0 && self.hidden_size.is_multiple_of(self.num_attention_heads);
        if !heads_divide_size || !(1..=MAX_DIMENSIONS).contains(&self.hidden_size) {
            return Err(EmbeddingError::damaged("config.json", "the dimensions are inconsistent"));
        }
        // Three positions: [CLS], one token and [SEP].
        if self.num_hidden_layers > MAX_LAYERS || self.max_position_embeddings < 3 {
            return Err(EmbeddingError::unsupported("a model of this size"));
        }
        Ok(())
    }
}

/// Loads tensors by name and checks their shapes.
struct WeightLoader<'a> {
    tensors: &'a Tensors<'a>,
    config: &'a BertConfig,
    prefix: &'static str,
}

impl WeightLoader<'_> {
    /// Models fine-tuned for a task store their encoder under `bert.`.
    fn prefix(tensors: &Tensors<'_>) -> &'static str {
        if tensors.has("bert.embeddings.word_embeddings.weight") { "bert." } else { "" }
    }

    fn layer(&self, index: usize) -> Result<Layer, EmbeddingError> {
        let size = self.config.hidden_size;
        let intermediate = self.config.intermediate_size;
        let linear =
            |name: &str, rows, columns| self.linear(&format!("encoder.layer.{index}.{name}"), rows, columns);
        let norm = |name: &str| self.norm(&format!("encoder.layer.{index}.{name}"));
        Ok(Layer {
            query: linear("attention.self.query", size, size)?,
            key: linear("attention.self.key", size, size)?,
            value: linear("attention.self.value", size, size)?,
            attention_output: linear("attention.output.dense", size, size)?,
            attention_norm: norm("attention.output.LayerNorm")?,
            intermediate: linear("intermediate.dense", intermediate, size)?,
            output: linear("output.dense", size, intermediate)?,
            norm: norm("output.LayerNorm")?,
        })
    }

    fn linear(&self, name: &str, rows: usize, columns: usize) -> Result<Linear, EmbeddingError> {
        Ok(Linear {
            weight: self.matrix(&format!("{name}.weight"), rows, columns)?,
            bias: self.vector(&format!("{name}.bias"), rows)?,
        })
    }

    fn norm(&self, name: &str) -> Result<LayerNorm, EmbeddingError> {
        let size = self.config.hidden_size;
        let weight = self.vector(&format!("{name}.weight"), size)?;
        let bias = self.vector(&format!("{name}.bias"), size)?;
        Ok(LayerNorm { weight, bias, epsilon: self.config.layer_norm_eps })
    }

    fn vector(&self, name: &str, length: usize) -> Result<Array1<f32>, EmbeddingError> {
        let tensor = self.tensors.float32(&format!("{}{name}", self.prefix))?;
        if tensor.shape != [length] {
            return Err(wrong_shape(name));
        }
        Ok(Array1::from_vec(tensor.values))
    }

    fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Array2<f32>, EmbeddingError> {
        let matrix = self.any_matrix(name)?;
        if matrix.dim() == (rows, columns) { Ok(matrix) } else { Err(wrong_shape(name)) }
    }

    /// A matrix of any shape.
    fn any_matrix(&self, name: &str) -> Result<Array2<f32>, EmbeddingError> {
        let tensor = self.tensors.float32(&format!("{}{name}", self.prefix))?;
        let &[rows, columns] = tensor.shape.as_slice() else { return Err(wrong_shape(name)) };
        Array2::from_shape_vec((rows, columns), tensor.values).map_err(|_| wrong_shape(name))
    }
}

fn wrong_shape(name: &str) -> EmbeddingError {
    EmbeddingError::damaged(
        MODEL_FILE,
        format!("tensor `{name}` does not have the shape given by config.json"),
    )
}
