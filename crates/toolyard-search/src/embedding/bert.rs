//! BERT models: contextual embeddings. More accurate than static models and hundreds of times slower.
//!
//! Texts are embedded in batches: the products with the weights are computed for the tokens of all texts of a batch at
//! once, because each product has a cost that does not depend on the number of tokens. Attention is per text.

use std::ops::Range;

use ndarray::{Array1, Array2, Axis, Slice, concatenate, linalg::general_mat_mul};
use serde::Deserialize;

use super::elementwise::{add, add_bias_gelu, normalize, softmax};
use super::error::EmbeddingError;
use super::tensors::{MODEL_FILE, Tensors};
use super::vectors::{Embedding, MAX_DIMENSIONS};
use super::wordpiece::WordPieceTokenizer;

/// Further tokens of a text are ignored: attention takes time quadratic in their number.
const MAX_TOKENS: usize = 128;

/// Texts are added to a batch until it has this many tokens; more gain nothing and take memory.
const BATCH_TOKENS: usize = 384;

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
    intermediate_size: usize,
    pooling: Pooling,
}

#[derive(Debug)]
struct Layer {
    /// Query, key and value in one matrix.
    query_key_value: Linear,
    attention_output: Linear,
    attention_norm: LayerNorm,
    intermediate: Linear,
    output: Linear,
    norm: LayerNorm,
}

/// A linear map, stored so that an input row is multiplied from the left.
#[derive(Debug)]
struct Linear {
    /// Inputs in rows, outputs in columns.
    weight: Array2<f32>,
    bias: Array1<f32>,
}

#[derive(Debug)]
struct LayerNorm {
    weight: Array1<f32>,
    bias: Array1<f32>,
    epsilon: f32,
}

/// The tokens of several texts, one after another.
#[derive(Debug, Default)]
struct Batch {
    tokens: Vec<usize>,
    /// The tokens of each text.
    sequences: Vec<Range<usize>>,
}

/// Intermediate results of a layer, allocated once per batch.
struct Buffers {
    query_key_value: Array2<f32>,
    context: Array2<f32>,
    intermediate: Array2<f32>,
    output: Array2<f32>,
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
            intermediate_size: config.intermediate_size,
            pooling,
            tokenizer,
        })
    }

    pub(super) fn dimensions(&self) -> usize {
        self.token_embeddings.ncols()
    }

    /// The embeddings of texts; `None` for a text without words.
    pub(super) fn embed(&self, texts: &[&str]) -> Vec<Option<Embedding>> {
        let mut embeddings = Vec::with_capacity(texts.len());
        let mut batch = Batch::default();
        for text in texts {
            batch.push(self.token_ids(text));
            if batch.tokens.len() >= BATCH_TOKENS {
                embeddings.extend(self.embed_batch(&batch));
                batch = Batch::default();
            }
        }
        embeddings.extend(self.embed_batch(&batch));
        embeddings
    }

    /// The tokens of a text between `[CLS]` and `[SEP]`; empty for a text without words.
    fn token_ids(&self, text: &str) -> Vec<usize> {
        let max_text_tokens = self.max_tokens.saturating_sub(2);
        let tokens = self.tokenizer.tokenize(text).take(max_text_tokens);
        let mut ids = vec![self.cls_id];
        ids.extend(tokens.map(|token| token.unwrap_or(self.unknown_id)));
        if ids.len() == 1 {
            return Vec::new();
        }
        ids.push(self.sep_id);
        ids
    }

    fn embed_batch(&self, batch: &Batch) -> Vec<Option<Embedding>> {
        if batch.tokens.is_empty() {
            return vec![None; batch.sequences.len()];
        }
        let mut state = self.token_embeddings.select(Axis(0), &batch.tokens);
        for sequence in &batch.sequences {
            let mut rows = state.slice_axis_mut(Axis(0), Slice::from(sequence.clone()));
            rows += &self.position_embeddings.slice_axis(Axis(0), Slice::from(..sequence.len()));
        }
        self.norm.apply(&mut state);
        let mut buffers = Buffers::new(state.dim(), self.intermediate_size);
        for layer in &self.layers {
            layer.apply(&mut state, &batch.sequences, self.head_size, &mut buffers);
        }
        let pool = |sequence: &Range<usize>| {
            let rows = state.slice_axis(Axis(0), Slice::from(sequence.clone()));
            let pooled = match self.pooling {
                Pooling::Mean => rows.mean_axis(Axis(0))?,
                Pooling::FirstToken => rows.rows().into_iter().next()?.to_owned(),
            };
            Embedding::new(pooled.to_vec())
        };
        batch.sequences.iter().map(pool).collect()
    }
}

impl Batch {
    fn push(&mut self, tokens: Vec<usize>) {
        let start = self.tokens.len();
        self.tokens.extend(tokens);
        self.sequences.push(start..self.tokens.len());
    }
}

impl Buffers {
    fn new((rows, size): (usize, usize), intermediate_size: usize) -> Self {
        let zeros = |columns| Array2::zeros((rows, columns));
        Self {
            query_key_value: zeros(3 * size),
            context: zeros(size),
            intermediate: zeros(intermediate_size),
            output: zeros(size),
        }
    }
}

impl Layer {
    fn apply(
        &self,
        state: &mut Array2<f32>,
        sequences: &[Range<usize>],
        head_size: usize,
        buffers: &mut Buffers,
    ) {
        let Buffers { query_key_value, context, intermediate, output } = buffers;
        self.query_key_value.apply(state, query_key_value);
        for sequence in sequences {
            attend(query_key_value, context, sequence, head_size);
        }
        self.attention_output.apply(context, output);
        add(state, output);
        self.attention_norm.apply(state);

        self.intermediate.multiply(state, intermediate);
        add_bias_gelu(intermediate, &self.intermediate.bias);
        self.output.apply(intermediate, output);
        add(state, output);
        self.norm.apply(state);
    }
}

/// Scaled dot-product attention of all heads over the tokens of one text.
fn attend(
    query_key_value: &Array2<f32>,
    context: &mut Array2<f32>,
    sequence: &Range<usize>,
    head_size: usize,
) {
    let size = context.ncols();
    let rows = query_key_value.slice_axis(Axis(0), Slice::from(sequence.clone()));
    let mut targets = context.slice_axis_mut(Axis(0), Slice::from(sequence.clone()));
    for start in (0..size).step_by(head_size) {
        let head = |start: usize| rows.slice_axis(Axis(1), Slice::from(start..start + head_size));
        let mut attention: Array2<f32> = head(start).dot(&head(size + start).t());
        softmax(&mut attention, head_size);
        let mut target = targets.slice_axis_mut(Axis(1), Slice::from(start..start + head_size));
        general_mat_mul(1.0, &attention, &head(2 * size + start), 0.0, &mut target);
    }
}

impl Linear {
    /// One map with the outputs of several.
    fn concatenate(maps: &[Self]) -> Option<Self> {
        let weights: Vec<_> = maps.iter().map(|map| map.weight.view()).collect();
        let biases: Vec<_> = maps.iter().map(|map| map.bias.view()).collect();
        Some(Self {
            weight: concatenate(Axis(1), &weights).ok()?.as_standard_layout().into_owned(),
            bias: concatenate(Axis(0), &biases).ok()?,
        })
    }

    fn apply(&self, input: &Array2<f32>, output: &mut Array2<f32>) {
        self.multiply(input, output);
        *output += &self.bias;
    }

    fn multiply(&self, input: &Array2<f32>, output: &mut Array2<f32>) {
        general_mat_mul(1.0, input, &self.weight, 0.0, output);
    }
}

impl LayerNorm {
    fn apply(&self, state: &mut Array2<f32>) {
        normalize(state, &self.weight, &self.bias, self.epsilon);
    }
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
            query_key_value: Linear::concatenate(&[
                linear("attention.self.query", size, size)?,
                linear("attention.self.key", size, size)?,
                linear("attention.self.value", size, size)?,
            ])
            .ok_or_else(|| wrong_shape("attention.self"))?,
            attention_output: linear("attention.output.dense", size, size)?,
            attention_norm: norm("attention.output.LayerNorm")?,
            intermediate: linear("intermediate.dense", intermediate, size)?,
            output: linear("output.dense", size, intermediate)?,
            norm: norm("output.LayerNorm")?,
        })
    }

    fn linear(&self, name: &str, rows: usize, columns: usize) -> Result<Linear, EmbeddingError> {
        let weight = self.matrix(&format!("{name}.weight"), rows, columns)?;
        Ok(Linear {
            weight: weight.t().as_standard_layout().into_owned(),
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
