//! [`AddressRange`]: addresses in CIDR notation, such as `10.0.0.0/8`.

use std::{fmt, net::IpAddr, str::FromStr};

/// An item of `[serve.proxy_identity] trusted_addresses` is neither an address nor a range.
///
/// Remedy: write `10.0.0.5` or `10.0.0.0/8`; names of hosts are not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a range of addresses: use an address such as 127.0.0.1, or a range such as 10.0.0.0/8")]
pub struct InvalidAddressRange(String);

/// A range of addresses, such as `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    network: IpAddr,
    prefix_bits: u32,
}

impl AddressRange {
    /// Whether an address is in the range. An IPv4 address in IPv6 notation counts as the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - self.prefix_bits).unwrap_or(0);
                network.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - self.prefix_bits).unwrap_or(0);
                network.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        }
    }
}

impl FromStr for AddressRange {
    type Err = InvalidAddressRange;

    fn from_str(text: &str) -> Result<Self, InvalidAddressRange> {
        let invalid = || InvalidAddressRange(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let network: IpAddr = address.parse().map_err(|_| invalid())?;
        let all_bits = if network.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match bits {
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().map_err(|_| invalid())?
            }
            Some(_) => return Err(invalid()),
            None => all_bits,
        };
        if prefix_bits > all_bits { Err(invalid()) } else { Ok(Self { network, prefix_bits }) }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix_bits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_contain_their_addresses_only() {
        let contains = |range: &str, address: &str| {
            range.parse::<AddressRange>().unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("127.0.0.1", "127.0.0.1") && !contains("127.0.0.1", "127.0.0.2"));
        assert!(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(contains("fd00::/8", "fd12::1") && !contains("fd00::/8", "fe80::1"));
        assert!(contains("0.0.0.0/0", "1.2.3.4") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("::/0", "::1") && !contains("::/0", "1.2.3.4"));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "/",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "localhost",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "1.2.3.4/-1",
        ] {
            assert!(text.parse::<AddressRange>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_range_contains_an_address_if_the_first_bits_are_equal(network: u32, address: u32, bits in 0_u32..=32) {
            let range: AddressRange = format!("{}/{bits}", IpAddr::from(network.to_be_bytes())).parse().unwrap();
            let expected = (network ^ address).leading_zeros() >= bits;
            prop_assert_eq!(range.contains(IpAddr::from(address.to_be_bytes())), expected);
        }
    }
}
