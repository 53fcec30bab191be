// SPDX-License-Identifier: GPL-2.0
//! Prints the thesis's claims beside what comes out:
//! `cargo run --release -p pbs-study --example claims`.

fn main() {
    for row in pbs_study::cosched::claims() {
        println!(
            "{:?} | {} | {} | {} | {} | {}",
            row.verdict, row.section, row.claim, row.published, row.recomputed, row.remark
        );
    }
}
