// SPDX-License-Identifier: GPL-2.0
//! Memory of the data structures (§6.6), and of brute force (§4.4.4): arithmetic from the sizes
//! of fields.

use crate::cosched::row::ComparedClaim;

/// Size and alignment of a field in C on x86-64, in bytes.
type Field = (usize, usize);

const NAME: Field = (64, 1);
const MUTEX: Field = (40, 8);
const INT: Field = (4, 4);
const CHAR: Field = (1, 1);
const WORD: Field = (8, 8);

/// Table 6.3.
const HEADER: [Field; 5] = [MUTEX, INT, INT, INT, WORD];
/// Table 6.4.
const ENTRY: [Field; 16] =
    [NAME, MUTEX, INT, INT, INT, CHAR, CHAR, WORD, WORD, WORD, INT, CHAR, CHAR, CHAR, CHAR, CHAR];
/// Table 6.6.
const PAYLOAD: [Field; 3] = [INT, WORD, WORD];

const CSIMF_BYTES: usize = 256 << 10;
const CSI_BYTES: usize = 2 << 10;

fn sum(fields: &[Field]) -> usize {
    fields.iter().map(|field| field.0).sum()
}

/// The size of a struct with these fields.
fn padded(fields: &[Field]) -> usize {
    let mut end = 0_usize;
    for &(size, align) in fields {
        end = end.next_multiple_of(align) + size;
    }
    end.next_multiple_of(fields.iter().map(|field| field.1).max().unwrap_or(1))
}

/// Table 6.5 with so many names of other tasks.
fn csi_header(others: usize) -> usize {
    4 * WORD.0 + others * NAME.0
}

pub(crate) fn rows() -> Vec<ComparedClaim> {
    let bytes = |printed| (printed, "B");
    let entries = (CSIMF_BYTES - padded(&HEADER)) / padded(&ENTRY);
    let spare = |payload: usize| CSI_BYTES - csi_header(4) - 50 * payload;
    vec![
        ComparedClaim::figure(
            "CSIMF header",
            "6.6.1, T6.3",
            bytes("64"),
            padded(&HEADER) as f64,
            &format!("fields sum to {}, the rest is padding", sum(&HEADER)),
        ),
        ComparedClaim::figure(
            "CSIMF entry",
            "6.6.1, T6.4",
            bytes("139"),
            sum(&ENTRY) as f64,
            &format!("the sum of the table's own fields; padded {} B", padded(&ENTRY)),
        ),
        ComparedClaim::figure(
            "entries that fit into 256 KiB",
            "6.6.1",
            ("1,885", ""),
            entries as f64,
            &format!("with entries of {} B", padded(&ENTRY)),
        ),
        ComparedClaim::figure(
            "CSI header, least",
            "6.6.2, T6.5",
            bytes("32"),
            csi_header(0) as f64,
            "",
        ),
        ComparedClaim::figure(
            "CSI header, 3 dependencies and 1 reverse",
            "6.6.2",
            bytes("288"),
            csi_header(4) as f64,
            "",
        ),
        ComparedClaim::figure(
            "CSI payload",
            "6.6.2, T6.6",
            bytes("20"),
            padded(&PAYLOAD) as f64,
            &format!("{} are the fields, without padding", sum(&PAYLOAD)),
        ),
        ComparedClaim::figure(
            "spare in 2 KiB with 50 variants",
            "6.6.2",
            bytes("560"),
            spare(padded(&PAYLOAD)) as f64,
            &format!("holds for payloads of {} B, which T6.6 denies", padded(&PAYLOAD)),
        ),
        ComparedClaim::figure(
            "least memory overhead",
            "6.6.3",
            bytes("264,192"),
            (CSIMF_BYTES + CSI_BYTES) as f64,
            "",
        ),
    ]
}

/// §4.4.4: one task on 48 threads.
pub(crate) fn mappings_of_one_task() -> Vec<ComparedClaim> {
    let mut choose = 1_u128;
    let mut mappings = 0_u128;
    for taken in 1..=48 {
        choose = choose * (49 - taken) / taken;
        mappings += choose;
    }
    let hours = mappings as f64 / 3e9 / 3600.0;
    let bytes = mappings as f64 * 160.0;
    let two = |power: i32| 2_f64.powi(power);
    let gib = bytes / two(30);
    vec![
        ComparedClaim::figure(
            "ways to run an OMP task on 48 threads",
            "4.4.4",
            ("281,474,976,710,655", ""),
            mappings as f64,
            "the sum of the binomials",
        ),
        ComparedClaim::statement(
            "counting them at 3 GHz takes",
            "4.4.4",
            "more than 26 h",
            format!("{hours:.2} h"),
            hours > 26.0,
            "",
        )
        .with("hours", hours),
        ComparedClaim::statement(
            "160 B each take",
            "4.4.4",
            "more than 4.19 GiB",
            format!("{:.0} PiB = {:.2}·10⁷ GiB", bytes / two(50), gib / 1e7),
            gib < 5.0,
            "seven orders of magnitude are lost",
        )
        .with("gib", gib),
    ]
}
