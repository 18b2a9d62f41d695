//! Text analysis: splits text into tokens ([`tokenizer`]) and reduces tokens to terms ([`stemmer`]). [`noise`] lowers the
//! weight of filler words, [`bigram`] hashes pairs of adjacent terms.

pub(crate) mod bigram;
pub(crate) mod noise;
pub(crate) mod stemmer;
pub(crate) mod tokenizer;
