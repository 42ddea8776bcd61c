//! Native copies of masks, written from their documentation: what is compared is not the guest with itself.

/// The environment variable that the policies here name.
pub const KEY_VARIABLE: &str = "PGVEIL_KEY_PEOPLE";

/// The key that it holds, in hex.
pub const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// `guests` and `keys` of every policy here.
pub const POLICY_HEAD: &str =
    "version: 1\nguests: { standard: { builtin: standard } }\nkeys: { people: { env: PGVEIL_KEY_PEOPLE } }\n";

/// `standard/hash` under the key `people`, without a domain: hex, 256 bits.
pub fn hash(value: &str) -> String {
    hash_under(KEY, "", value)
}

/// [`hash`] under other key material and a domain.
pub fn hash_under(material: &str, domain: &str, value: &str) -> String {
    hex(keyed(material, domain, "hash", value).as_bytes())
}

/// `standard/sample` under the key `people`, granted one column: whether a row stays.
pub fn keeps(value: &str, percent: u128) -> bool {
    let hash = keyed(KEY, "", "sample", value);
    let (first, _) = hash.as_bytes().split_first_chunk::<8>().unwrap();
    u128::from(u64::from_le_bytes(*first)) < (percent << 64) / 100
}

/// What a guest's key is derived from, then the guest's own key for one purpose, then the value.
fn keyed(material: &str, domain: &str, purpose: &str, value: &str) -> blake3::Hash {
    let material: Vec<u8> = material
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let mut derived = blake3::Hasher::new_derive_key("pgveil 2026-11 guest key v1");
    for part in ["people".as_bytes(), domain.as_bytes(), &material] {
        derived.update(&(part.len() as u64).to_le_bytes());
        derived.update(part);
    }
    let of_purpose = blake3::keyed_hash(derived.finalize().as_bytes(), purpose.as_bytes());
    blake3::keyed_hash(of_purpose.as_bytes(), value.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
