// SPDX-License-Identifier: GPL-2.0
//! Texts that were changed at random: nothing panics, and what is read is written so that
//! it is read as the same again.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use pbs_gen::{Random, Stream};
use pbs_resources::{
    format_duration, format_items, format_size, parse_duration_s, parse_items, parse_size_bytes,
    script, Condition, Error, Rset,
};

const LETTERS: &str = ":+,=0123456789kmgtpb ()|&<>!ncpusmerlacdhsx-#\"'\\\nä";

fn mutated(random: &mut Random, text: &str) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let others: Vec<char> = LETTERS.chars().collect();
    for _ in 0..1 + random.index(4) {
        let at = random.index(letters.len() + 1);
        let letter = others[random.index(others.len())];
        match random.index(4) {
            0 => letters.insert(at, letter),
            1 if at < letters.len() => letters[at] = letter,
            2 if at < letters.len() => {
                letters.remove(at);
            }
            _ => {
                let from = random.index(letters.len() + 1).min(at);
                let part: Vec<char> = letters[from..at].to_vec();
                letters.extend(part);
            }
        }
        letters.truncate(400);
    }
    letters.into_iter().collect()
}

fn read_again<T>(text: &str) -> bool
where
    T: FromStr<Err = Error> + Display + PartialEq + Debug,
{
    match text.parse::<T>() {
        Ok(read) => {
            let written = read.to_string();
            assert_eq!(written.parse::<T>().as_ref(), Ok(&read), "{text:?}: {written:?}");
            assert_eq!(written.parse::<T>().unwrap().to_string(), written, "{text:?}");
            true
        }
        Err(error) => {
            let columns = text.chars().count() + 1;
            assert!((1..=columns).contains(&error.column), "{text:?}: {error}");
            assert!(!error.message.is_empty());
            false
        }
    }
}

#[test]
fn nothing_panics() {
    let rsets = [
        "rset=8:ncpus=2:mem=10g:rack=8",
        "rset=ncpus=27:vmem=20g:arch=linux+4:acc=fpga",
        "rset=5:ncpus=16:mem=12g:net=IB+ncpus=1:mem=4g,sw=g03,place=scatter:excl",
    ];
    let conditions = [
        "vmem>=80g | mem>=66g | ncpus>=17 | duration<=12h",
        "ncpus<4 & (duration<1h | group:G1) & area!=1024h",
        "never | user:alice & always",
    ];
    let durations = ["4d3h", "1h30m", "00:10:00", "90s"];
    let mut random = Random::new(1, Stream::Scenario);
    let mut read = [0; 3];
    for _ in 0..30_000 {
        let text = rsets[random.index(rsets.len())];
        let text = mutated(&mut random, text);
        read[0] += usize::from(read_again::<Rset>(&text));
        if let Ok(items) = parse_items(&text) {
            assert_eq!(parse_items(&format_items(&items)), Ok(items), "{text:?}");
        }
        let text = conditions[random.index(conditions.len())];
        let text = mutated(&mut random, text);
        read[1] += usize::from(read_again::<Condition>(&text));
        let text = durations[random.index(durations.len())];
        let text = mutated(&mut random, text);
        if let Ok(seconds) = parse_duration_s(&text) {
            assert_eq!(parse_duration_s(&format_duration(seconds)), Ok(seconds), "{text:?}");
            read[2] += 1;
        }
        if let Ok(amount) = parse_size_bytes(&text) {
            assert_eq!(parse_size_bytes(&format_size(amount)), Ok(amount), "{text:?}");
        }
        let text = mutated(&mut random, "#!/bin/sh\n#CCS -t 7d -N 'a \"b' # c\n#CCS -g G\nrun\n");
        if let Ok(script) = script::read(&text) {
            assert!(script.words.iter().all(|word| !word.text.contains('\n')));
        }
    }
    // Many of them are still right; else this tests nothing.
    assert!(read.iter().all(|&read| read > 1000), "{read:?}");
}
