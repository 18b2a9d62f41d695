//! A BERT model: every word is read in the light of the others. Better than a static model, and thousands of times slower.

use ndarray::{Array1, Array2, ArrayView2, Axis, concatenate};
use serde::Deserialize;

use super::error::EmbeddingError;
use super::tensors::{FILE, Tensors};
use super::vector::{MAX_DIMENSIONS, Vector};
use super::word_pieces::WordPieces;

/// Attention costs the square of a text's length; a description says what it says in this many pieces.
const MAX_PIECES: usize = 128;

const MAX_LAYERS: usize = 48;

/// What `config.json` says about the model's form.
#[derive(Debug, Deserialize)]
pub(super) struct BertConfig {
    hidden_size: usize,
    intermediate_size: usize,
    max_position_embeddings: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    vocab_size: usize,
    #[serde(default = "usual_epsilon")]
    layer_norm_eps: f32,
    #[serde(default = "usual_activation")]
    hidden_act: String,
}

fn usual_epsilon() -> f32 {
    1e-12
}

fn usual_activation() -> String {
    "gelu".to_owned()
}

/// How the vectors of a text's pieces become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    Mean,
    FirstPiece,
}

#[derive(Debug)]
pub(super) struct Bert {
    pieces: WordPieces,
    start: usize,
    end: usize,
    unknown: usize,
    limit: usize,
    words: Array2<f32>,
    /// Positions, with what every text of its own adds to all of them.
    positions: Array2<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    head_size: usize,
    pooling: Pooling,
}

#[derive(Debug)]
struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attended: Linear,
    attended_norm: Norm,
    wide: Linear,
    narrow: Linear,
    norm: Norm,
}

#[derive(Debug)]
struct Linear {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

#[derive(Debug)]
struct Norm {
    weight: Array1<f32>,
    bias: Array1<f32>,
    epsilon: f32,
}

impl Bert {
    pub(super) fn read(
        tensors: &Tensors<'_>,
        config: &BertConfig,
        pieces: WordPieces,
        pooling: Pooling,
    ) -> Result<Self, EmbeddingError> {
        config.check()?;
        let source = Source { tensors, config, prefix: Source::prefix(tensors) };
        let size = config.hidden_size;
        let words = source.table("embeddings.word_embeddings.weight", config.vocab_size, size)?;
        let positions =
            source.table("embeddings.position_embeddings.weight", config.max_position_embeddings, size)?;
        let kinds = source.array2("embeddings.token_type_embeddings.weight")?;
        let only_kind = kinds.axis_iter(Axis(0)).next().filter(|row| row.len() == size);
        let only_kind = only_kind.ok_or_else(|| wrong_shape("embeddings.token_type_embeddings.weight"))?;
        let marks = [pieces.number("[CLS]"), pieces.number("[SEP]"), pieces.unknown()];
        let [Some(start), Some(end), Some(unknown)] = marks else {
            return Err(EmbeddingError::unsupported("a vocabulary without [CLS], [SEP] and [UNK]"));
        };
        if pieces.count() > config.vocab_size {
            return Err(EmbeddingError::damaged(FILE, "the tokenizer has pieces without a vector"));
        }
        let limit = MAX_PIECES.min(config.max_position_embeddings);
        Ok(Self {
            start,
            end,
            unknown,
            limit,
            positions: &positions + &only_kind,
            words,
            norm: source.norm("embeddings.LayerNorm")?,
            layers: (0..config.num_hidden_layers)
                .map(|number| source.layer(number))
                .collect::<Result<_, _>>()?,
            head_size: size / config.num_attention_heads,
            pooling,
            pieces,
        })
    }

    pub(super) fn dimensions(&self) -> usize {
        self.words.ncols()
    }

    pub(super) fn embed(&self, text: &str) -> Option<Vector> {
        let room = self.limit.saturating_sub(2);
        let pieces: Vec<usize> =
            self.pieces.of(text).take(room).map(|piece| piece.unwrap_or(self.unknown)).collect();
        if pieces.is_empty() {
            return None;
        }
        let sequence: Vec<usize> =
            std::iter::once(self.start).chain(pieces).chain(std::iter::once(self.end)).collect();
        let mut state = self.words.select(Axis(0), &sequence);
        for (mut row, position) in state.rows_mut().into_iter().zip(self.positions.rows()) {
            row += &position;
        }
        self.norm.apply(&mut state);
        for layer in &self.layers {
            state = layer.apply(&state, self.head_size)?;
        }
        let pooled = match self.pooling {
            Pooling::Mean => state.mean_axis(Axis(0))?,
            Pooling::FirstPiece => state.rows().into_iter().next()?.to_owned(),
        };
        Vector::new(pooled.to_vec())
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
        let mut attended = self.attended.apply(&concatenate(Axis(1), &views).ok()?);
        attended += state;
        self.attended_norm.apply(&mut attended);

        let mut wide = self.wide.apply(&attended);
        wide.mapv_inplace(gelu);
        let mut next = self.narrow.apply(&wide);
        next += &attended;
        self.norm.apply(&mut next);
        Some(next)
    }
}

/// One head: every piece takes from the others as much as it has to do with them.
fn attend(
    query: &ArrayView2<'_, f32>,
    key: &ArrayView2<'_, f32>,
    value: &ArrayView2<'_, f32>,
    head_size: usize,
) -> Array2<f32> {
    #[expect(clippy::cast_precision_loss, reason = "a head has at most a few thousand dimensions")]
    let scale = (head_size as f32).sqrt().recip();
    let mut shares = query.dot(&key.t());
    for mut row in shares.rows_mut() {
        let most = row.iter().fold(f32::NEG_INFINITY, |most, score| most.max(*score));
        row.mapv_inplace(|score| ((score - most) * scale).exp());
        let sum = row.sum();
        row /= sum;
    }
    shares.dot(value)
}

impl Linear {
    fn apply(&self, input: &Array2<f32>) -> Array2<f32> {
        input.dot(&self.weight.t()) + &self.bias
    }
}

impl Norm {
    fn apply(&self, state: &mut Array2<f32>) {
        for mut row in state.rows_mut() {
            let mean = row.mean().unwrap_or_default();
            row -= mean;
            let spread = row.iter().map(|value| value * value).sum::<f32>() * row_share(row.len());
            row /= (spread + self.epsilon).sqrt();
            row *= &self.weight;
            row += &self.bias;
        }
    }
}

fn row_share(length: usize) -> f32 {
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
        let divides =
            self.num_attention_heads > 0 && self.hidden_size.is_multiple_of(self.num_attention_heads);
        if !divides || !(1..=MAX_DIMENSIONS).contains(&self.hidden_size) {
            return Err(EmbeddingError::damaged("config.json", "its sizes do not fit one another"));
        }
        if self.num_hidden_layers > MAX_LAYERS || self.max_position_embeddings < 3 {
            return Err(EmbeddingError::unsupported("a model of this size"));
        }
        Ok(())
    }
}

/// The tensors by their names in the file, each checked against the size it must have.
struct Source<'a> {
    tensors: &'a Tensors<'a>,
    config: &'a BertConfig,
    prefix: &'static str,
}

impl Source<'_> {
    /// Models that were trained for a task have their BERT under a name of its own.
    fn prefix(tensors: &Tensors<'_>) -> &'static str {
        if tensors.has("bert.embeddings.word_embeddings.weight") { "bert." } else { "" }
    }

    fn layer(&self, number: usize) -> Result<Layer, EmbeddingError> {
        let size = self.config.hidden_size;
        let wide = self.config.intermediate_size;
        let linear =
            |name: &str, rows, columns| self.linear(&format!("encoder.layer.{number}.{name}"), rows, columns);
        let norm = |name: &str| self.norm(&format!("encoder.layer.{number}.{name}"));
        Ok(Layer {
            query: linear("attention.self.query", size, size)?,
            key: linear("attention.self.key", size, size)?,
            value: linear("attention.self.value", size, size)?,
            attended: linear("attention.output.dense", size, size)?,
            attended_norm: norm("attention.output.LayerNorm")?,
            wide: linear("intermediate.dense", wide, size)?,
            narrow: linear("output.dense", size, wide)?,
            norm: norm("output.LayerNorm")?,
        })
    }

    fn linear(&self, name: &str, rows: usize, columns: usize) -> Result<Linear, EmbeddingError> {
        Ok(Linear {
            weight: self.table(&format!("{name}.weight"), rows, columns)?,
            bias: self.row(&format!("{name}.bias"), rows)?,
        })
    }

    fn norm(&self, name: &str) -> Result<Norm, EmbeddingError> {
        let size = self.config.hidden_size;
        let weight = self.row(&format!("{name}.weight"), size)?;
        let bias = self.row(&format!("{name}.bias"), size)?;
        Ok(Norm { weight, bias, epsilon: self.config.layer_norm_eps })
    }

    fn row(&self, name: &str, length: usize) -> Result<Array1<f32>, EmbeddingError> {
        let numbers = self.tensors.floats(&format!("{}{name}", self.prefix))?;
        if numbers.shape != [length] {
            return Err(wrong_shape(name));
        }
        Ok(Array1::from_vec(numbers.values))
    }

    fn table(&self, name: &str, rows: usize, columns: usize) -> Result<Array2<f32>, EmbeddingError> {
        let table = self.array2(name)?;
        if table.dim() == (rows, columns) { Ok(table) } else { Err(wrong_shape(name)) }
    }

    fn array2(&self, name: &str) -> Result<Array2<f32>, EmbeddingError> {
        let numbers = self.tensors.floats(&format!("{}{name}", self.prefix))?;
        let &[rows, columns] = numbers.shape.as_slice() else { return Err(wrong_shape(name)) };
        Array2::from_shape_vec((rows, columns), numbers.values).map_err(|_| wrong_shape(name))
    }
}

fn wrong_shape(name: &str) -> EmbeddingError {
    EmbeddingError::damaged(FILE, format!("tensor `{name}` has not the size that config.json says"))
}
