//! RSA keys of any size, and signatures with SHA-1 and SHA-256.
//!
//! ring cannot generate RSA keys, or sign with SHA-1 or with a key of 1024 bits. The operations take time that depends
//! on the key, so these keys must not outlive a test.

use num_bigint::BigUint;
use ring::digest;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::Error;

/// The digest of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digest {
    Sha1,
    Sha256,
}

pub(crate) struct PrivateKey {
    /// The larger prime is the first.
    primes: [BigUint; 2],
    modulus: BigUint,
    exponent: BigUint,
}

/// Generates an RSA private key for tests, and returns it as PKCS #1 DER.
///
/// # Errors
/// Returns an error if the operating system does not provide random bytes.
pub fn rsa_private_key(bits: u16) -> Result<Vec<u8>, Error> {
    Ok(PrivateKey::generate(bits)?.der())
}

impl PrivateKey {
    pub(crate) fn generate(bits: u16) -> Result<Self, Error> {
        let one = BigUint::from(1_u8);
        loop {
            let (p, q) = (prime(bits / 2)?, prime(bits / 2)?);
            if p <= q {
                continue;
            }
            if let Some(exponent) = public_exponent().modinv(&((&p - &one) * (&q - &one))) {
                return Ok(Self { modulus: &p * &q, primes: [p, q], exponent });
            }
        }
    }

    /// Returns the public key as PKCS #1 DER.
    pub(crate) fn public_der(&self) -> Vec<u8> {
        sequence(&[&self.modulus, &public_exponent()])
    }

    fn der(&self) -> Vec<u8> {
        let one = BigUint::from(1_u8);
        let [p, q] = &self.primes;
        let coefficient = q.modinv(p).unwrap_or_default();
        sequence(&[
            &BigUint::ZERO, // the version
            &self.modulus,
            &public_exponent(),
            &self.exponent,
            p,
            q,
            &(&self.exponent % (p - &one)),
            &(&self.exponent % (q - &one)),
            &coefficient,
        ])
    }

    /// Signs `message` with RSASSA-PKCS1-v1_5.
    ///
    /// Source: RFC 8017, section 8.2.1.
    pub(crate) fn sign(&self, message: &[u8], digest: Digest) -> Vec<u8> {
        let length = self.modulus.to_bytes_be().len();
        let info = digest.info(message);
        let mut encoded = vec![0x00, 0x01];
        encoded.resize(length.saturating_sub(info.len() + 1), 0xff);
        encoded.push(0x00);
        encoded.extend(info);
        let signature = BigUint::from_bytes_be(&encoded).modpow(&self.exponent, &self.modulus).to_bytes_be();
        [vec![0; length - signature.len()], signature].concat()
    }
}

impl Digest {
    /// Returns the DER encoding of a `DigestInfo`.
    ///
    /// Source: RFC 8017, section 9.2, note 1.
    fn info(self, message: &[u8]) -> Vec<u8> {
        const SHA1: [u8; 15] = [0x30, 0x21, 0x30, 9, 6, 5, 0x2b, 0x0e, 3, 2, 0x1a, 5, 0, 4, 0x14];
        const SHA256: [u8; 19] =
            [0x30, 0x31, 0x30, 0x0d, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1, 5, 0, 4, 0x20];
        let (prefix, algorithm) = match self {
            Self::Sha1 => (SHA1.as_slice(), &digest::SHA1_FOR_LEGACY_USE_ONLY),
            Self::Sha256 => (SHA256.as_slice(), &digest::SHA256),
        };
        [prefix, digest::digest(algorithm, message).as_ref()].concat()
    }
}

fn public_exponent() -> BigUint {
    BigUint::from(65_537_u32)
}

/// Returns a random prime whose highest two bits are set, so that a product of two has twice as many bits.
fn prime(bits: u16) -> Result<BigUint, Error> {
    /// How far above a random number to search: for 1,024 bits, every 355th odd number is a prime on average.
    const RANGE: u32 = 10_000;

    let small: Vec<u32> =
        (3..2_000).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0)).collect();
    let mut bytes = vec![0; usize::from(bits).div_ceil(8)];
    loop {
        SystemRandom::new().fill(&mut bytes).map_err(|_unspecified| Error::NoRandomBytes)?;
        let mut start = BigUint::from_bytes_be(&bytes) >> (bytes.len() * 8 - usize::from(bits));
        for bit in [0, u64::from(bits) - 1, u64::from(bits) - 2] {
            start.set_bit(bit, true);
        }
        let remainders: Vec<(u32, u32)> = small
            .iter()
            .map(|prime| (*prime, (&start % prime).to_u32_digits().first().copied().unwrap_or_default()))
            .collect();
        let found = (0..RANGE)
            .step_by(2)
            .filter(|step| {
                remainders.iter().all(|(prime, remainder)| !(remainder + step).is_multiple_of(*prime))
            })
            .map(|step| &start + step)
            .find(is_prime);
        if let Some(prime) = found.filter(|prime| prime.bits() == u64::from(bits)) {
            return Ok(prime);
        }
    }
}

/// Decides by the Miller-Rabin test whether a random odd number is a prime.
///
/// Source: FIPS 186-5, appendix B.3.1. For random numbers of 512 bits, 7 rounds make an error less likely than 2^-100.
fn is_prime(candidate: &BigUint) -> bool {
    let one = BigUint::from(1_u8);
    let below = candidate - &one;
    let twos = below.trailing_zeros().unwrap_or_default();
    let odd = &below >> twos;
    [2_u32, 3, 5, 7, 11, 13, 17, 19].into_iter().all(|base| {
        let mut power = BigUint::from(base).modpow(&odd, candidate);
        power == one
            || (0..twos).any(|_| {
                let is_last = power == below;
                power = &power * &power % candidate;
                is_last
            })
    })
}

/// Encodes non-negative integers as a DER sequence.
fn sequence(integers: &[&BigUint]) -> Vec<u8> {
    let content = integers.iter().flat_map(|integer| {
        let mut bytes = integer.to_bytes_be();
        if bytes.first().is_some_and(|byte| *byte >= 0x80) {
            bytes.insert(0, 0); // the sign
        }
        element(2, &bytes)
    });
    element(0x30, &content.collect::<Vec<u8>>())
}

/// Encodes a DER element.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut encoded = vec![tag];
    match significant.as_slice() {
        [] => encoded.push(0),
        [short] if *short < 0x80 => encoded.push(*short),
        long => {
            encoded.push(0x80 | long.len().to_le_bytes().first().copied().unwrap_or_default());
            encoded.extend(long);
        }
    }
    encoded.extend(content);
    encoded
}

#[cfg(test)]
mod tests {
    use ring::signature::{self, RsaKeyPair, UnparsedPublicKey};

    use super::*;

    #[test]
    fn signatures_are_valid() {
        for (bits, digest, algorithm) in [
            (1024, Digest::Sha256, &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY),
            (1024, Digest::Sha1, &signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY),
            (2048, Digest::Sha256, &signature::RSA_PKCS1_2048_8192_SHA256),
        ] {
            let key = PrivateKey::generate(bits).unwrap();
            assert_eq!(key.modulus.bits(), u64::from(bits));
            let signed = key.sign(b"message", digest);
            let public = UnparsedPublicKey::new(algorithm, key.public_der());
            public.verify(b"message", &signed).unwrap();
            public.verify(b"another message", &signed).unwrap_err();
        }
    }

    #[test]
    fn ring_reads_private_keys() {
        let key = PrivateKey::generate(2048).unwrap();
        let read = RsaKeyPair::from_der(&key.der()).unwrap();
        assert_eq!(read.public().as_ref(), key.public_der());
    }

    #[test]
    fn primes_are_told_from_composite_numbers() {
        // 3,215,031,751 passes the test with the bases 2, 3, 5, and 7; 561 is a Carmichael number.
        for (number, expected) in [
            (101_u64, true),
            (561, false),
            (3_215_031_751, false),
            (2_147_483_647, true),
            (1_000_003 * 1_000_033, false),
        ] {
            assert_eq!(is_prime(&BigUint::from(number)), expected, "{number}");
        }
    }
}
