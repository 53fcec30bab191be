// SPDX-License-Identifier: GPL-2.0
//! Pages of services, which are written by hand, name the options that the services have.

use std::collections::BTreeSet;

use pbs_house::tree;
use syn::{Field, Item, ItemStruct};

/// The folders with the options of each service, and its page.
const SERVICES: [(&[&str], &str); 2] = [
    (&["pbsd/src"], "packaging/pbsd.8"),
    (&["cluster/pbs-clusterd/src", "slurm/pbs-slurm/src"], "packaging/pbs-clusterd.8"),
];

/// The long option that a field declares, if it declares one.
fn option_of(field: &Field) -> Option<String> {
    let name = field.ident.as_ref()?.to_string().replace('_', "-");
    let mut option = None;
    for attribute in field.attrs.iter().filter(|it| it.path().is_ident("arg")) {
        // What cannot be read as one name after the other ends behind the names that matter.
        let _ = attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("long") {
                let given = meta.value().and_then(|value| value.parse::<syn::LitStr>());
                option = Some(given.map_or_else(|_| name.clone(), |text| text.value()));
            } else if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<syn::Expr>()?;
            }
            Ok(())
        });
    }
    option
}

/// The options that the code in some folders declares, and those that each program has.
fn declared(folders: &[&str]) -> BTreeSet<String> {
    let mut options: BTreeSet<String> = ["help".into(), "version".into()].into();
    for path in folders.iter().flat_map(|folder| tree::rust_files(folder)) {
        let file = syn::parse_file(&tree::text(&path)).expect("code that compiles");
        for item in file.items {
            if let Item::Struct(ItemStruct { fields, .. }) = item {
                options.extend(fields.iter().filter_map(option_of));
            }
        }
    }
    options
}

/// The options that a page describes: those of lines that begin with bold type.
fn described(page: &str) -> BTreeSet<String> {
    let text = tree::text(page).replace("\\-", "-");
    let lines = text.lines().skip_while(|line| *line != ".SH OPTIONS").skip(1);
    lines
        .take_while(|line| !line.starts_with(".SH "))
        .filter(|line| line.starts_with(".B"))
        .flat_map(|line| line.split([' ', ',', '"']))
        .filter_map(|word| word.strip_prefix("--"))
        .map(String::from)
        .collect()
}

#[test]
fn pages_of_services_name_their_options() {
    for (folders, page) in SERVICES {
        let (declared, described) = (declared(folders), described(page));
        assert!(declared.len() > 8, "{folders:?}: only {declared:?} were found");
        let missing: Vec<_> = declared.difference(&described).collect();
        let unknown: Vec<_> = described.difference(&declared).collect();
        assert!(missing.is_empty(), "{page}: does not describe {missing:?}");
        assert!(unknown.is_empty(), "{page}: describes {unknown:?}, which {folders:?} do not have");
    }
}
