// SPDX-License-Identifier: GPL-2.0
//! Fields that a program reads from files, command lines and connections, and the names of fields
//! that its code uses.
//!
//! A field is accepted and ignored if a parser fills it and nothing reads it. Types are not known:
//! a name counts as used wherever a field of that name is read.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Fields, Member, Pat};

/// A field that a parser fills.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AcceptedField {
    /// Name of the type; for a variant of an enumeration both names.
    pub of: String,
    /// Name of the field.
    pub name: String,
    /// Line of the field, from 1.
    pub line: usize,
}

/// Derived traits by which a parser fills a type.
const PARSED: [&str; 4] = ["Deserialize", "Parser", "Args", "Subcommand"];

/// The fields of types that parsers fill by a derived trait; of all types if `are_all`.
///
/// # Panics
///
/// If the text is not Rust.
pub fn accepted(text: &str, are_all: bool) -> Vec<AcceptedField> {
    let file = syn::parse_file(text).expect("a Rust file");
    let mut reader = Accepted { are_all, found: Vec::new() };
    reader.visit_file(&file);
    reader.found
}

/// Names of the fields that code reads: in expressions, in patterns and in the arguments of macros.
/// Code under `#[cfg(test)]` is left out.
///
/// # Panics
///
/// If the text is not Rust.
pub fn used(text: &str) -> BTreeSet<String> {
    let file = syn::parse_file(text).expect("a Rust file");
    let mut reader = Used::default();
    reader.visit_file(&file);
    reader.names
}

struct Accepted {
    are_all: bool,
    found: Vec<AcceptedField>,
}

impl Accepted {
    fn add(&mut self, of: &str, fields: &Fields) {
        for field in fields {
            if let Some(name) = &field.ident {
                let line = name.span().start().line;
                let name = name.to_string().trim_start_matches("r#").to_string();
                self.found.push(AcceptedField { of: of.into(), name, line });
            }
        }
    }

    fn is_accepted(&self, attrs: &[Attribute]) -> bool {
        self.are_all || attrs.iter().any(derives)
    }
}

impl Visit<'_> for Accepted {
    fn visit_item_mod(&mut self, item: &syn::ItemMod) {
        if !item.attrs.iter().any(is_test) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &syn::ItemStruct) {
        if self.is_accepted(&item.attrs) {
            self.add(&item.ident.to_string(), &item.fields);
        }
    }

    fn visit_item_enum(&mut self, item: &syn::ItemEnum) {
        if self.is_accepted(&item.attrs) {
            for variant in &item.variants {
                self.add(&format!("{}::{}", item.ident, variant.ident), &variant.fields);
            }
        }
    }
}

#[derive(Default)]
struct Used {
    names: BTreeSet<String>,
}

impl Used {
    fn add(&mut self, member: &Member) {
        if let Member::Named(name) = member {
            self.names.insert(name.to_string().trim_start_matches("r#").to_string());
        }
    }

    /// Notes the names behind a dot in the arguments of a macro.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut is_behind_dot = false;
        for token in tokens {
            match token {
                TokenTree::Ident(name) if is_behind_dot => {
                    self.names.insert(name.to_string());
                    is_behind_dot = false;
                }
                TokenTree::Group(group) => {
                    self.add_tokens(group.stream());
                    is_behind_dot = false;
                }
                TokenTree::Punct(punct) => is_behind_dot = punct.as_char() == '.',
                _ => is_behind_dot = false,
            }
        }
    }
}

impl Visit<'_> for Used {
    fn visit_item_mod(&mut self, item: &syn::ItemMod) {
        if !item.attrs.iter().any(is_test) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_expr_field(&mut self, expr: &syn::ExprField) {
        self.add(&expr.member);
        visit::visit_expr_field(self, expr);
    }

    fn visit_expr_assign(&mut self, expr: &syn::ExprAssign) {
        // To be assigned is not to be read.
        match &*expr.left {
            Expr::Field(field) => self.visit_expr(&field.base),
            other => self.visit_expr(other),
        }
        self.visit_expr(&expr.right);
    }

    fn visit_field_pat(&mut self, pattern: &syn::FieldPat) {
        if !matches!(&*pattern.pat, Pat::Wild(_)) {
            self.add(&pattern.member);
        }
        visit::visit_field_pat(self, pattern);
    }

    fn visit_macro(&mut self, of: &syn::Macro) {
        self.add_tokens(of.tokens.clone());
    }
}

fn derives(attr: &Attribute) -> bool {
    match &attr.meta {
        syn::Meta::List(list) if list.path.is_ident("derive") => {
            let names = list.tokens.clone().into_iter();
            names.into_iter().any(|token| PARSED.contains(&token.to_string().as_str()))
        }
        _ => false,
    }
}

fn is_test(attr: &Attribute) -> bool {
    match &attr.meta {
        syn::Meta::List(list) => {
            list.path.is_ident("cfg") && list.tokens.to_string().contains("test")
        }
        _ => false,
    }
}
