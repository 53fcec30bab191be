// SPDX-License-Identifier: GPL-2.0
//! Users and groups, from `[[user]]` and `[[group]]`.

use std::collections::BTreeSet;

use pbs_text::reader::{Reader, Table};

use super::declared_names::DeclaredNames;
use super::names::{self, own_name};
use super::values::{self, texts};
use crate::{Consumer, Privilege};

const USER_KEYS: &[&str] =
    &["name", "groups", "privileges", "defaults", "force", "priority", "validity"];
const GROUP_KEYS: &[&str] = &["name", "privileges", "defaults", "force", "priority", "validity"];

pub(super) fn users(
    reader: &mut Reader,
    top: &mut Table<'_, '_>,
    known: &DeclaredNames,
) -> Vec<Consumer> {
    consumers(reader, top, "user", USER_KEYS, known)
}

pub(super) fn groups(
    reader: &mut Reader,
    top: &mut Table<'_, '_>,
    known: &DeclaredNames,
) -> Vec<Consumer> {
    consumers(reader, top, "group", GROUP_KEYS, known)
}

fn consumers(
    reader: &mut Reader,
    top: &mut Table<'_, '_>,
    what: &'static str,
    keys: &[&str],
    known: &DeclaredNames,
) -> Vec<Consumer> {
    let mut consumers = Vec::new();
    let mut taken = Vec::new();
    for (line, value) in reader.tables(top, what) {
        let Some(mut table) = reader.table(line, value, what, keys) else {
            continue;
        };
        let name = own_name(reader, &mut table, what, "G1", &taken);
        let consumer = Consumer {
            groups: of_user(reader, &mut table, known),
            privileges: privileges(reader, &mut table),
            defaults: values::items(reader, &mut table, "defaults", &known.resources),
            force: values::items(reader, &mut table, "force", &known.resources),
            priority: values::priority(reader, &mut table, "priority"),
            validity: values::validity(reader, &mut table, known),
            // A missing name is a problem already, and the site is refused.
            name: name.unwrap_or_default(),
        };
        taken.push(consumer.name.clone());
        consumers.push(consumer);
    }
    consumers
}

fn of_user(reader: &mut Reader, table: &mut Table<'_, '_>, known: &DeclaredNames) -> Vec<String> {
    let mut groups: Vec<String> = Vec::new();
    // Nothing is dropped: a key that is no list is a problem by now.
    for (line, name) in texts(reader, table, "groups", "G1").unwrap_or_default() {
        if names::is_word(reader, line, &name) {
            names::group(reader, line, &name, known);
        }
        if groups.contains(&name) {
            reader.problem(line, format!("group {name} stands here again; write it once"));
        }
        groups.push(name);
    }
    groups
}

fn privileges(reader: &mut Reader, table: &mut Table<'_, '_>) -> BTreeSet<Privilege> {
    let Some(texts) = texts(reader, table, "privileges", "reserve") else {
        return Privilege::ordinary();
    };
    let names = Privilege::ALL.map(Privilege::name);
    let mut privileges = BTreeSet::new();
    for (line, name) in texts {
        let found = reader.one_of(line, "privilege", &name, &names);
        privileges.extend(found.map(|place| Privilege::ALL[place]));
    }
    privileges
}
