// SPDX-License-Identifier: GPL-2.0
//! The kernel that runs: its functions and their instructions.

use std::fs;
use std::path::Path;

/// The image and its map of symbols.
pub struct Image {
    /// Address and name, by address; text alone.
    symbols: Vec<(u64, String)>,
    /// Address of the first byte of the image.
    base: u64,
    bytes: Vec<u8>,
}

/// Kind of an instruction, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `bl` or `blr`
    Call,
    /// `ret`
    Return,
    Other,
}

impl Image {
    /// Opens the image of an object tree.
    pub fn open(obj: &Path) -> Result<Self, String> {
        let read = |name: &str| {
            let path = obj.join(name);
            fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let map = String::from_utf8_lossy(&read("System.map")?).into_owned();
        let mut symbols = Vec::new();
        let mut base = None;
        for line in map.lines() {
            let mut words = line.split_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else {
                continue;
            };
            if name == "_text" {
                base = Some(address);
            }
            // Symbols of the assembler's and the linker's are no functions.
            let is_local = name.starts_with('$') || name.starts_with(".L");
            if matches!(kind, "t" | "T" | "w" | "W") && !is_local {
                symbols.push((address, name.to_owned()));
            }
        }
        // Of several names for one address, the first.
        symbols.sort_by_key(|(address, _)| *address);
        symbols.dedup_by_key(|(address, _)| *address);
        Ok(Self {
            symbols,
            base: base.ok_or("System.map has no _text")?,
            bytes: read("arch/arm64/boot/Image")?,
        })
    }

    /// Address at which a function begins.
    pub fn address_of(&self, name: &str) -> Result<u64, String> {
        let found = self.symbols.iter().find(|(_, known)| known == name);
        found
            .map(|(address, _)| *address)
            .ok_or_else(|| format!("the kernel has no function {name}"))
    }

    /// The function that an address is in, as its number.
    pub fn symbol_at(&self, pc: u64) -> usize {
        let after = self.symbols.partition_point(|(address, _)| *address <= pc);
        after.saturating_sub(1)
    }

    pub fn name(&self, symbol: usize) -> &str {
        self.symbols.get(symbol).map_or("?", |(_, name)| name)
    }

    /// Description of an address: most others than the kernel's are of user space.
    pub fn place(&self, address: u64) -> &str {
        if address < self.base {
            "not in the kernel"
        } else {
            self.name(self.symbol_at(address))
        }
    }

    /// Whether a function begins there.
    pub fn begins_at(&self, symbol: usize, pc: u64) -> bool {
        self.symbols.get(symbol).is_some_and(|(address, _)| *address == pc)
    }

    /// Kind of the instruction in the image. An instruction that the kernel patches at boot is no
    /// call.
    pub fn kind(&self, pc: u64) -> Kind {
        let offset = pc.wrapping_sub(self.base) as usize;
        let Some(bytes) = self.bytes.get(offset..offset.saturating_add(4)) else {
            return Kind::Other;
        };
        let insn = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        kind_of(insn)
    }
}

fn kind_of(insn: u32) -> Kind {
    if insn >> 26 == 0b100101 || insn & 0xffff_fc1f == 0xd63f_0000 {
        Kind::Call
    } else if insn & 0xffff_fc1f == 0xd65f_0000 {
        Kind::Return
    } else {
        Kind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_returns() {
        assert_eq!(kind_of(0x9400_0010), Kind::Call, "bl");
        assert_eq!(kind_of(0x97ff_fff0), Kind::Call, "bl back");
        assert_eq!(kind_of(0xd63f_0100), Kind::Call, "blr x8");
        assert_eq!(kind_of(0xd65f_03c0), Kind::Return, "ret");
        assert_eq!(kind_of(0xd61f_0100), Kind::Other, "br x8");
        assert_eq!(kind_of(0x1400_0010), Kind::Other, "b");
        assert_eq!(kind_of(0xd503_201f), Kind::Other, "nop");
    }
}
