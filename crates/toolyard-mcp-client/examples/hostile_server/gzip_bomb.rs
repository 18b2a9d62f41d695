//! A small gzip file that is large when decompressed.

/// About `megabytes` of zeros as gzip, some 150 times smaller: one literal, then copies of 258 bytes from one byte back.
pub(crate) fn gzip_megabytes(megabytes: usize) -> Vec<u8> {
    let mut bits =
        BitWriter { bytes: vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255], pending: 0, pending_bits: 0 };
    // The header of the last block, with fixed Huffman codes.
    bits.push(0b011, 3);
    // One zero byte.
    bits.push_code(0b0011_0000, 8);
    for _ in 0..megabytes * ((1 << 20) / 258) {
        // The length 258 and the distance 1.
        bits.push_code(0b1100_0101, 8);
        bits.push_code(0, 5);
    }
    // The end of the block. Checksum and size are wrong, which a client notices only at the end.
    bits.push_code(0, 7);
    bits.push(0, 7);
    bits.bytes.extend([0; 8]);
    bits.bytes
}

struct BitWriter {
    bytes: Vec<u8>,
    pending: u32,
    pending_bits: u32,
}

impl BitWriter {
    fn push(&mut self, value: u32, length: u32) {
        self.pending |= value << self.pending_bits;
        self.pending_bits += length;
        while self.pending_bits >= 8 {
            self.bytes.push(self.pending.to_le_bytes().first().copied().unwrap_or_default());
            self.pending >>= 8;
            self.pending_bits -= 8;
        }
    }

    /// Huffman codes are written with their first bit first.
    fn push_code(&mut self, code: u32, length: u32) {
        self.push(code.reverse_bits() >> (32 - length), length);
    }
}
