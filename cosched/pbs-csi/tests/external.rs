// SPDX-License-Identifier: GPL-2.0
//! External schedulers (§5.2.2): the C header says what Rust says, and one in C works.

mod common;

use std::path::Path;
use std::process::Command;

use common::{devices, task, Directory};
use pbs_csi::layout::{self, CsiRecord, CsimfHeader, DeviceRecord, EntryRecord, VariantRecord};

fn compile(source: &Path, program: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiled = Command::new("gcc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(here.join("include"))
        .arg("-o")
        .args([program, source])
        .output()
        .expect("gcc");
    let told = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{told}");
}

#[test]
fn the_c_header_has_the_same_layout() {
    let mut checks = String::new();
    let mut record = |name: &str, bytes: usize, fields: &[(&str, usize, usize)]| {
        checks += &format!("_Static_assert(sizeof(struct {name}) == {bytes}, \"{name}\");\n");
        for (field, at, length) in fields {
            checks += &format!(
                "_Static_assert(offsetof(struct {name}, {field}) == {at}, \"{name}.{field}\");\n\
                 _Static_assert(sizeof(((struct {name} *)0)->{field}) == {length}, \"{field}\");\n"
            );
        }
    };
    record("pbs_csimf_header", CsimfHeader::BYTES, CsimfHeader::FIELDS);
    record("pbs_csimf_device", DeviceRecord::BYTES, DeviceRecord::FIELDS);
    record("pbs_csimf_entry", EntryRecord::BYTES, EntryRecord::FIELDS);
    record("pbs_csi_variant", VariantRecord::BYTES, VariantRecord::FIELDS);
    record("pbs_csi", CsiRecord::BYTES, CsiRecord::FIELDS);
    for (name, value) in [
        ("PBS_CSI_LAYOUT", layout::LAYOUT as usize),
        ("PBS_CSIMF_BYTES", layout::CSIMF_BYTES),
        ("PBS_CSI_BYTES", CsiRecord::BYTES),
        ("PBS_CSI_DEVICES", layout::DEVICE_CAPACITY),
        ("PBS_CSI_DEVICES_AT", layout::DEVICES_AT),
        ("PBS_CSI_ENTRIES", layout::ENTRY_CAPACITY),
        ("PBS_CSI_ENTRIES_AT", layout::ENTRIES_AT),
        ("PBS_CSI_DEPENDENCIES", layout::DEPENDENCY_CAPACITY),
        ("PBS_CSI_VARIANTS", layout::VARIANT_CAPACITY),
        ("PBS_CSI_NONE", layout::NONE as usize),
        ("PBS_CSI_NOT_STARTED", layout::NOT_STARTED as usize),
        ("PBS_CSI_RUNNING", layout::RUNNING as usize),
        ("PBS_CSI_DONE", layout::DONE as usize),
        ("PBS_CSI_FREE", layout::FREE.into()),
        ("PBS_CSI_WAITING", layout::WAITING.into()),
        ("PBS_CSI_IN_EXECUTION", layout::IN_EXECUTION.into()),
    ] {
        checks += &format!("_Static_assert({name} == {value}, \"{name}\");\n");
    }
    let magic = |bytes: [u8; 8]| String::from_utf8(bytes.to_vec()).unwrap();
    let names = [
        ("PBS_CSIMF_NAME", layout::CSIMF_NAME.to_string()),
        ("PBS_CSI_PREFIX", layout::CSI_PREFIX.to_string()),
        ("PBS_CSIMF_MAGIC", magic(layout::CSIMF_MAGIC)),
        ("PBS_CSI_MAGIC", magic(layout::CSI_MAGIC)),
    ];
    let strings = names.map(|(name, value)| format!("strcmp({name}, \"{value}\")"));
    let directory = Directory::new("header");
    let source = directory.path().join("check.c");
    let program = format!(
        "#include <stddef.h>\n#include <string.h>\n#include \"pbs_csi.h\"\n{checks}\
         int main(void) {{ return {}; }}\n",
        strings.join(" || ")
    );
    std::fs::write(&source, program).unwrap();
    let program = directory.path().join("check");
    compile(&source, &program);
    assert!(Command::new(program).status().unwrap().success());
}

#[test]
fn a_scheduler_in_c_decides_for_all() {
    let directory = Directory::new("external");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = directory.path().join("external");
    compile(&here.join("tests/external.c"), &program);
    let node = directory.node();
    node.lock().unwrap().join_devices(&devices()).unwrap();
    let tasks = [task(1, &[]), task(2, &[1])];
    let slots = node.lock().unwrap().register(&tasks).unwrap();
    let own: Vec<(u32, u64)> = slots.into_iter().zip(1..).collect();
    let before = node.generation();
    let ended = Command::new(program).arg(directory.path()).status().unwrap();
    assert!(ended.success(), "{ended}");
    assert_ne!(node.generation(), before);
    let (_, fetched) = node.lock().unwrap().fetch(&own).unwrap().unwrap();
    assert!(fetched.iter().all(|of| of.best_index == Some(0)));
    assert!(fetched[0].place < fetched[1].place);
}
