// SPDX-License-Identifier: GPL-2.0
//! References from files of a crate to names of others.
//!
//! Paths are resolved as the compiler does it, as far as that needs no types: through modules,
//! `use` items, re-exports and globs. A file that re-exports the names of its own modules (`pub use
//! inner::Name`) takes nothing from them by that. Modules under `#[cfg(test)]` and calls of methods
//! are not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

use crate::circles::Arrows;

/// A module by its path from the root of the crate; the root is empty.
type ModulePath = Vec<String>;

/// A name that a `use` item brings into a module.
struct Import {
    /// The name in this module, `*` for a glob.
    name: String,
    /// The path as written, without `as`.
    path: ModulePath,
    /// Whether other modules can use the name through this one.
    is_public: bool,
}

#[derive(Default)]
struct Module {
    file: String,
    children: BTreeSet<String>,
    items: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths of more than one segment that the code of the module names.
    paths: Vec<ModulePath>,
}

/// The modules of one crate.
struct Crate<'a> {
    read: &'a dyn Fn(&Path) -> Option<String>,
    modules: BTreeMap<ModulePath, Module>,
}

/// The arrows between the files of the crate whose main file is `root`.
///
/// `read` returns the text of a file, or nothing if there is no such file; files are named by
/// the paths with which it was called.
///
/// # Panics
///
/// If a file is not Rust or a module has no file.
pub fn arrows(root: &str, read: &dyn Fn(&Path) -> Option<String>) -> Arrows {
    let mut sources = Crate { read, modules: BTreeMap::new() };
    let folder = Path::new(root).parent().unwrap_or(Path::new(""));
    sources.load(Vec::new(), Path::new(root), folder);
    sources.arrows()
}

impl Crate<'_> {
    /// Reads the file of a module whose own modules lie in `folder`.
    fn load(&mut self, path: ModulePath, file: &Path, folder: &Path) {
        let text = (self.read)(file).unwrap_or_else(|| panic!("no file {}", file.display()));
        let parsed = syn::parse_file(&text)
            .unwrap_or_else(|error| panic!("{} is not Rust: {error}", file.display()));
        self.add(path, file, folder, &parsed.items);
    }

    fn add(&mut self, path: ModulePath, file: &Path, folder: &Path, items: &[Item]) {
        let mut module = Module { file: file.to_string_lossy().into_owned(), ..Module::default() };
        for item in items {
            let Item::Mod(child) = item else {
                read_item(item, &mut module);
                continue;
            };
            if is_for_tests(&child.attrs) {
                continue;
            }
            let name = child.ident.to_string();
            module.children.insert(name.clone());
            let mut inner = path.clone();
            inner.push(name.clone());
            match &child.content {
                Some((_, items)) => self.add(inner, file, &folder.join(&name), items),
                None => {
                    let (file, folder) = self.find(&name, &child.attrs, file, folder);
                    self.load(inner, &file, &folder);
                }
            }
        }
        self.modules.insert(path, module);
    }

    /// The file of a module, and the folder of its modules.
    fn find(
        &self,
        name: &str,
        attributes: &[Attribute],
        from: &Path,
        folder: &Path,
    ) -> (PathBuf, PathBuf) {
        if let Some(given) = path_attribute(attributes) {
            let file = plain(&from.parent().unwrap_or(Path::new("")).join(given));
            let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
            return (file, folder);
        }
        let beside = folder.join(format!("{name}.rs"));
        if (self.read)(&beside).is_some() {
            return (beside, folder.join(name));
        }
        (folder.join(name).join("mod.rs"), folder.join(name))
    }

    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (path, module) in &self.modules {
            let targets = arrows.entry(module.file.clone()).or_default();
            let imports = module.imports.iter().filter(|import| !self.only_hands_on(path, import));
            let imported = imports.map(|import| &import.path);
            for named in imported.chain(&module.paths) {
                if let Some(target) = self.resolve(path, named, 0) {
                    targets.insert(self.modules[&target].file.clone());
                }
            }
            targets.remove(&module.file);
        }
        arrows
    }

    /// Whether an import makes names of a module's own modules public, no more.
    fn only_hands_on(&self, path: &ModulePath, import: &Import) -> bool {
        let below = |target: ModulePath| target.len() > path.len() && target.starts_with(path);
        import.is_public && self.resolve(path, &import.path, 0).is_some_and(below)
    }

    /// The module that defines what a path names in the module `at`; nothing for paths into
    /// other crates.
    fn resolve(&self, at: &ModulePath, named: &[String], depth: usize) -> Option<ModulePath> {
        if depth > 16 {
            return None;
        }
        let (first, rest) = named.split_first()?;
        let mut module = at.clone();
        match first.as_str() {
            "crate" => module = Vec::new(),
            "self" => {}
            "super" => drop(module.pop()?),
            _ => return self.resolve_name(at, named, depth),
        }
        let mut rest = rest;
        while rest.first().is_some_and(|name| name == "super") {
            module.pop()?;
            rest = &rest[1..];
        }
        if rest.is_empty() {
            return self.modules.contains_key(&module).then_some(module);
        }
        self.resolve_name(&module, rest, depth)
    }

    /// Like [`Crate::resolve`], for a path that begins with a name of the module.
    fn resolve_name(&self, at: &ModulePath, named: &[String], depth: usize) -> Option<ModulePath> {
        let (first, rest) = named.split_first()?;
        let module = self.modules.get(at)?;
        if first == "*" {
            return Some(at.clone());
        }
        if module.children.contains(first) {
            let mut inner = at.clone();
            inner.push(first.clone());
            return if rest.is_empty() {
                Some(inner)
            } else {
                self.resolve_name(&inner, rest, depth)
            };
        }
        if module.items.contains(first) {
            return Some(at.clone());
        }
        for import in &module.imports {
            if import.name == *first {
                // A name that an import brings under itself is another crate's.
                if import.path.first() == Some(first) && import.path.len() == 1 {
                    return None;
                }
                let mut whole = import.path.clone();
                whole.extend_from_slice(rest);
                return self.resolve(at, &whole, depth + 1);
            }
        }
        let globs = module.imports.iter().filter(|import| import.name == "*");
        globs.into_iter().find_map(|glob| {
            let mut whole = glob.path[..glob.path.len() - 1].to_vec();
            whole.extend_from_slice(named);
            self.resolve(at, &whole, depth + 1)
        })
    }
}

/// Adds what an item defines, imports and names.
fn read_item(item: &Item, module: &mut Module) {
    let name = match item {
        Item::Const(item) => Some(item.ident.to_string()),
        Item::Enum(item) => Some(item.ident.to_string()),
        Item::Fn(item) => Some(item.sig.ident.to_string()),
        Item::Macro(item) => item.ident.as_ref().map(ToString::to_string),
        Item::Static(item) => Some(item.ident.to_string()),
        Item::Struct(item) => Some(item.ident.to_string()),
        Item::Trait(item) => Some(item.ident.to_string()),
        Item::TraitAlias(item) => Some(item.ident.to_string()),
        Item::Type(item) => Some(item.ident.to_string()),
        Item::Union(item) => Some(item.ident.to_string()),
        _ => None,
    };
    module.items.extend(name);
    Reader { module }.visit_item(item);
}

struct Reader<'a> {
    module: &'a mut Module,
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_public = !matches!(item.vis, Visibility::Inherited);
        expand(&item.tree, &mut Vec::new(), is_public, &mut self.module.imports);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            let segments = path.segments.iter().map(|segment| segment.ident.to_string());
            self.module.paths.push(segments.collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        paths_in(call.tokens.clone(), &mut self.module.paths);
        visit::visit_macro(self, call);
    }
}

/// The imports of a `use` item, one a name.
fn expand(tree: &UseTree, path: &mut ModulePath, is_public: bool, imports: &mut Vec<Import>) {
    let mut add = |name: String, last: Option<String>| {
        let path = path.iter().cloned().chain(last).collect();
        imports.push(Import { name, path, is_public });
    };
    match tree {
        UseTree::Path(part) => {
            path.push(part.ident.to_string());
            expand(&part.tree, path, is_public, imports);
            path.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            add(path.last().cloned().unwrap_or_default(), None);
        }
        UseTree::Name(name) => add(name.ident.to_string(), Some(name.ident.to_string())),
        UseTree::Rename(name) if name.ident == "self" => add(name.rename.to_string(), None),
        UseTree::Rename(name) => add(name.rename.to_string(), Some(name.ident.to_string())),
        UseTree::Glob(_) => add("*".into(), Some("*".into())),
        UseTree::Group(group) => {
            for tree in &group.items {
                expand(tree, path, is_public, imports);
            }
        }
    }
}

/// The paths of more than one segment in the arguments of a macro.
fn paths_in(tokens: TokenStream, paths: &mut Vec<ModulePath>) {
    let mut path: ModulePath = Vec::new();
    let mut colons = 0;
    let mut end = |path: &mut ModulePath| {
        if path.len() > 1 {
            paths.push(std::mem::take(path));
        }
        path.clear();
    };
    let mut groups = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                if colons != 2 {
                    end(&mut path);
                }
                path.push(name.to_string());
                colons = 0;
            }
            TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
            other => {
                end(&mut path);
                colons = 0;
                if let TokenTree::Group(group) = other {
                    groups.push(group.stream());
                }
            }
        }
    }
    end(&mut path);
    for group in groups {
        paths_in(group, paths);
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    };
    attributes.iter().any(is_test)
}

/// The file that `#[path = "…"]` names.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let syn::Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        let syn::Expr::Lit(value) = &pair.value else {
            return None;
        };
        match &value.lit {
            syn::Lit::Str(text) if pair.path.is_ident("path") => Some(text.value()),
            _ => None,
        }
    })
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == std::path::Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows_of(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let read = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_string())
        };
        let arrows = arrows(files[0].0, &read);
        let pairs =
            arrows.iter().flat_map(|(from, to)| to.iter().map(|to| (from.clone(), to.clone())));
        pairs.collect()
    }

    #[test]
    fn a_re_export_is_followed_to_the_file_that_defines_the_name() {
        let arrows = arrows_of(&[
            ("src/lib.rs", "mod a;\nmod b;\npub use a::Thing;"),
            ("src/a.rs", "pub struct Thing;"),
            ("src/b.rs", "use crate::Thing;\npub fn f(_: Thing) {}"),
        ]);
        assert_eq!(arrows, [("src/b.rs".into(), "src/a.rs".into())]);
    }

    #[test]
    fn paths_in_code_and_in_macros_count_and_tests_do_not() {
        let arrows = arrows_of(&[
            ("src/lib.rs", "mod a;\nmod b;\nmod c;"),
            ("src/a.rs", "pub fn f() -> u8 { super::b::VALUE }"),
            ("src/b.rs", "pub const VALUE: u8 = 1;\nfn g() { println!(\"{}\", crate::c::NAME) }"),
            ("src/c.rs", "pub const NAME: u8 = 2;\n#[cfg(test)]\nmod tests { use crate::a::f; }"),
        ]);
        let expected = [("src/a.rs", "src/b.rs"), ("src/b.rs", "src/c.rs")];
        assert_eq!(arrows, expected.map(|(a, b)| (a.to_string(), b.to_string())));
    }

    #[test]
    fn a_module_that_is_imported_leads_to_what_it_hands_on() {
        let arrows = arrows_of(&[
            ("src/lib.rs", "mod user;\nmod wire;"),
            ("src/user.rs", "use crate::wire;\nfn f() { wire::read() }"),
            ("src/wire/mod.rs", "mod reader;\npub use reader::read;"),
            ("src/wire/reader.rs", "pub fn read() {}"),
        ]);
        let expected = [("src/user.rs", "src/wire/mod.rs"), ("src/user.rs", "src/wire/reader.rs")];
        assert_eq!(arrows, expected.map(|(a, b)| (a.to_string(), b.to_string())));
    }
}
