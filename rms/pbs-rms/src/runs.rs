// SPDX-License-Identifier: GPL-2.0
//! Node numbers as they are kept: neighbours as one run, in the order in which they came.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Each run by its first number and how many there are.
pub(crate) fn serialize<S: Serializer>(nodes: &[u32], to: S) -> Result<S::Ok, S::Error> {
    let runs = nodes.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let runs = runs.filter_map(|run| Some((*run.first()?, run.len() as u64)));
    to.collect_seq(runs)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
    let mut nodes = Vec::new();
    for (first, count) in Vec::<(u32, u32)>::deserialize(from)? {
        let end = first.checked_add(count);
        nodes.extend(first..end.ok_or_else(|| D::Error::custom("no node has such a number"))?);
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct It(#[serde(with = "super")] Vec<u32>);

    #[test]
    fn stored_runs_are_short_and_in_order() {
        let nodes = [5, 6, 7, 1, 2, 9, 8];
        let text = serde_json::to_string(&It(nodes.to_vec())).expect("plain values");
        assert_eq!(text, "[[5,3],[1,2],[9,1],[8,1]]");
        let It(back) = serde_json::from_str(&text).expect("its own");
        assert_eq!(back, nodes);
        assert!(serde_json::from_str::<It>("[[4294967295,2]]").is_err());
    }
}
