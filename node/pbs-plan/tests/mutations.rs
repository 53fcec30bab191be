// SPDX-License-Identifier: GPL-2.0
//! Whatever is read, nothing panics; and what is taken for valid survives the
//! way to the wire and back.

use pbs_plan::{from_toml, leppert, to_toml, wire};

const TOML: &str = include_str!("../../../samples/plans/net.toml");
const LINE: &str = "2;0,9000;1,8000;;;0,0,1200,1150;-1,-1,300,310;1,1,700,910;0,2,40,41;";
const ROUNDS: usize = 3_000;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    /// Replaces, removes, doubles or swaps a few bytes.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            if bytes.is_empty() {
                return;
            }
            let at = self.below(bytes.len());
            let end = (at + 1 + self.below(8)).min(bytes.len());
            match self.below(5) {
                0 => bytes[at] = self.below(256) as u8,
                1 => bytes[at] = b"0129-_,;[]{}\"'#\n= "[self.below(18)],
                2 => drop(bytes.drain(at..end)),
                3 => {
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                _ => {
                    let other = self.below(bytes.len());
                    bytes.swap(at, other);
                }
            }
        }
    }
}

#[test]
fn mutated_toml() {
    let mut random = Random(0x5eed_0001);
    let (mut valid, mut invalid) = (0, 0);
    for _ in 0..ROUNDS {
        let mut bytes = TOML.as_bytes().to_vec();
        random.mutate(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match from_toml(&text) {
            Ok(plan) => {
                valid += 1;
                let again = from_toml(&to_toml(&plan)).unwrap();
                assert_eq!(wire::encode(&again).bytes, wire::encode(&plan).bytes, "{text}");
            }
            Err(problems) => {
                invalid += 1;
                assert!(!problems.is_empty(), "{text}");
            }
        }
    }
    // The mutations are neither too mild nor too wild.
    assert!(valid > ROUNDS / 50 && invalid > ROUNDS / 10, "{valid} {invalid}");
}

#[test]
fn mutated_lines() {
    let mut random = Random(0x5eed_0002);
    let mut valid = 0;
    for _ in 0..ROUNDS {
        let mut bytes = LINE.as_bytes().to_vec();
        random.mutate(&mut bytes);
        if let Ok(plan) = leppert::import(&String::from_utf8_lossy(&bytes), 1, 0) {
            valid += 1;
            let again = from_toml(&to_toml(&plan)).unwrap();
            assert_eq!(wire::encode(&again).bytes, wire::encode(&plan).bytes);
        }
    }
    assert!(valid > 0);
}

#[test]
fn mutated_wire() {
    let mut random = Random(0x5eed_0003);
    let plan = wire::encode(&from_toml(TOML).unwrap()).bytes;
    let mut valid = 0;
    for _ in 0..ROUNDS {
        let mut bytes = plan.clone();
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
        if let Ok(decoded) = wire::decode(&bytes) {
            valid += 1;
            let again = wire::encode(&decoded).bytes;
            assert!(again == bytes, "{at}");
        }
    }
    assert!(valid > 0 && valid < ROUNDS);
}
