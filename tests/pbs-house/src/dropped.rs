// SPDX-License-Identifier: GPL-2.0
//! Results that code drops: `let _ = call()`, `.ok()` and `.unwrap_or_default()`.
//!
//! A dropped result is right where it is a question to data ([`QUESTIONS`]), where the value is an
//! option ([`OPTIONS`]), and where a comment gives the reason. The comment stands on the line, or
//! directly above the line, the statement, the match arm or the field that has the call. The
//! documentation of a function that returns an option may give it, too, in the words of [`WORDS`].
//! Types are not known: a variable counts by its initial value in the same function, and one that
//! comes from a pattern or a parameter counts as an option. Code under `#[cfg(test)]` and in
//! macros' arguments is not read.

use std::collections::{BTreeMap, BTreeSet};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Local, Pat, ReturnType};

/// Functions and methods that ask data whether it has a form or a place. Their errors hold nothing
/// beyond the answer no.
pub const QUESTIONS: [&str; 14] = [
    "parse",
    "try_from",
    "try_into",
    "from_str_radix",
    "from_utf8",
    "from_second",
    "into_string",
    "binary_search",
    "binary_search_by",
    "binary_search_by_key",
    "compatible",
    "position",
    "var",
    "strip_prefix",
];

/// Methods that return an option, or a result whose error is the wanted default.
pub const OPTIONS: [&str; 33] = [
    "as_deref",
    "as_mut",
    "as_ref",
    "checked_sub",
    "clone",
    "cloned",
    "copied",
    "duration_since",
    "file_name",
    "file_stem",
    "filter",
    "find",
    "find_map",
    "flatten",
    "get",
    "get_long",
    "get_mut",
    "max",
    "min",
    "next",
    "next_back",
    "nth",
    "pop",
    "remove",
    "split_at_checked",
    "split_once",
    "string",
    "strip_prefix",
    "strip_suffix",
    "take",
    "then",
    "to_str",
    "value",
];

/// Functions whose result may be dropped everywhere. A loop that must end its work gives way, and
/// does not stop for a signal that kills its task.
pub const DROPPABLE: [&str; 1] = ["give_way"];

/// Words by which the documentation of a function explains a missing result.
const WORDS: [&str; 7] = ["`None`", "None", "nothing", "none", "no ", "cannot", "if "];

/// A result that is dropped without a reason.
#[derive(Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Line of the call, from 1.
    pub line: usize,
    /// Form of the code that drops it.
    pub form: &'static str,
}

/// The results that a Rust file drops without a reason, in their order.
///
/// # Panics
///
/// If the text is not Rust.
pub fn dropped(text: &str) -> Vec<Dropped> {
    let file = syn::parse_file(text).expect("a Rust file");
    let lines: Vec<&str> = text.lines().collect();
    let mut of_option = OfOption::default();
    of_option.visit_file(&file);
    let mut reader = Reader {
        lines,
        starts: Vec::new(),
        functions: Vec::new(),
        of_option: of_option.0,
        found: Vec::new(),
    };
    reader.visit_file(&file);
    reader.found.sort_by_key(|it| it.line);
    reader.found
}

/// A function around the code.
#[derive(Default)]
struct Function {
    /// Whether its documentation tells when it returns no value.
    explains: bool,
    /// Variables with an initial value.
    variables: BTreeMap<String, Begun>,
}

/// An initial value of a variable.
#[derive(Clone, Copy)]
struct Begun {
    is_option: bool,
    asks: bool,
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    /// First lines of the statements, arms and fields around the code, outermost first.
    starts: Vec<usize>,
    functions: Vec<Function>,
    /// Names of functions of this file that return an option.
    of_option: BTreeSet<String>,
    found: Vec<Dropped>,
}

/// Names of functions that return an option.
#[derive(Default)]
struct OfOption(BTreeSet<String>);

impl Visit<'_> for OfOption {
    fn visit_signature(&mut self, signature: &syn::Signature) {
        if returns_option(&signature.output) {
            self.0.insert(signature.ident.to_string());
        }
    }
}

impl Reader<'_> {
    fn note(&mut self, line: usize, form: &'static str) {
        let start = self.starts.last().copied().unwrap_or(line);
        if !self.has_comment(line) && !self.has_comment(start) {
            self.found.push(Dropped { line, form });
        }
    }

    /// Whether a comment stands on a line or directly above it.
    fn has_comment(&self, line: usize) -> bool {
        let text =
            |line: usize| self.lines.get(line.wrapping_sub(1)).map_or("", |text| text.trim());
        let above = text(line.wrapping_sub(1));
        let is_reason = |text: &str| text.starts_with("// ");
        text(line).contains("// ") || is_reason(above) && !above.starts_with("///")
    }

    fn within(&mut self, line: usize, read: impl FnOnce(&mut Self)) {
        self.starts.push(line);
        read(self);
        self.starts.pop();
    }

    fn function(&mut self, attrs: &[Attribute], output: &ReturnType, read: impl FnOnce(&mut Self)) {
        let explains = returns_option(output) && is_explained(attrs);
        self.functions.push(Function { explains, ..Function::default() });
        let starts = std::mem::take(&mut self.starts);
        read(self);
        self.starts = starts;
        self.functions.pop();
    }

    fn is_explained(&self) -> bool {
        self.functions.last().is_some_and(|function| function.explains)
    }

    /// The initial value of a variable, if it is one of the functions around.
    fn variable(&self, path: &syn::Path) -> Option<Begun> {
        let name = path.get_ident()?.to_string();
        self.functions.iter().rev().find_map(|function| function.variables.get(&name).copied())
    }

    /// Whether an expression asks data for its form.
    fn is_question(&self, expr: &Expr) -> bool {
        let is_one = |name: String| QUESTIONS.contains(&name.as_str());
        match expr {
            Expr::MethodCall(call) => is_one(call.method.to_string()),
            Expr::Call(call) => match &*call.func {
                Expr::Path(path) => {
                    path.path.segments.last().is_some_and(|last| is_one(last.ident.to_string()))
                }
                _ => false,
            },
            Expr::Path(path) => self.variable(&path.path).is_some_and(|begun| begun.asks),
            _ => false,
        }
    }

    /// Whether the value of an expression is an option, as far as it shows.
    fn is_option(&self, expr: &Expr) -> bool {
        match expr {
            Expr::MethodCall(call) => {
                let method = call.method.to_string();
                let keeps = ["map", "and_then", "or_else", "or", "map_err"];
                if keeps.contains(&method.as_str()) {
                    return self.is_option(&call.receiver);
                }
                method == "ok"
                    || OPTIONS.contains(&method.as_str())
                    || self.of_option.contains(&method)
            }
            Expr::Path(path) => self.variable(&path.path).is_none_or(|begun| begun.is_option),
            Expr::Call(call) => match &*call.func {
                Expr::Path(path) => {
                    let name = path.path.get_ident().map(ToString::to_string);
                    name.is_some_and(|name| self.of_option.contains(&name))
                }
                _ => false,
            },
            Expr::Field(_) | Expr::Try(_) | Expr::Index(_) | Expr::If(_) | Expr::Match(_) => true,
            Expr::Paren(paren) => self.is_option(&paren.expr),
            Expr::Reference(reference) => self.is_option(&reference.expr),
            _ => false,
        }
    }
}

impl Visit<'_> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &syn::ItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.attrs, &item.sig.output, |reader| {
                visit::visit_item_fn(reader, item);
            });
        }
    }

    fn visit_impl_item_fn(&mut self, item: &syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.attrs, &item.sig.output, |reader| {
                visit::visit_impl_item_fn(reader, item);
            });
        }
    }

    fn visit_stmt(&mut self, stmt: &syn::Stmt) {
        self.within(stmt.span().start().line, |reader| visit::visit_stmt(reader, stmt));
    }

    fn visit_arm(&mut self, arm: &syn::Arm) {
        self.within(arm.span().start().line, |reader| visit::visit_arm(reader, arm));
    }

    fn visit_field_value(&mut self, field: &syn::FieldValue) {
        self.within(field.span().start().line, |reader| visit::visit_field_value(reader, field));
    }

    fn visit_local(&mut self, local: &Local) {
        if let (Pat::Wild(_), Some(init)) = (&local.pat, &local.init) {
            if is_call(&init.expr) && !is_droppable(&init.expr) {
                self.note(local.span().start().line, "let _ =");
            }
        }
        visit::visit_local(self, local);
        if let Some(init) = &local.init {
            let begun =
                Begun { is_option: self.is_option(&init.expr), asks: self.is_question(&init.expr) };
            let name = match &local.pat {
                Pat::Ident(name) => Some(name.ident.to_string()),
                _ => None,
            };
            if let (Some(name), Some(function)) = (name, self.functions.last_mut()) {
                function.variables.insert(name, begun);
            }
        }
    }

    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        let line = call.method.span().start().line;
        let drops = call.args.is_empty() && !self.is_explained();
        if drops && call.method == "ok" && !self.is_question(&call.receiver) {
            self.note(line, ".ok()");
        }
        if call.method == "unwrap_or_default" && !self.is_option(&call.receiver) {
            self.note(line, ".unwrap_or_default()");
        }
        visit::visit_expr_method_call(self, call);
    }
}

/// Whether an expression does something whose result can be dropped; names alone do nothing.
fn is_call(expr: &Expr) -> bool {
    !matches!(expr, Expr::Path(_) | Expr::Tuple(_) | Expr::Reference(_))
}

/// Whether an expression calls one of [`DROPPABLE`].
fn is_droppable(expr: &Expr) -> bool {
    let Expr::Call(call) = expr else {
        return false;
    };
    let Expr::Path(path) = &*call.func else {
        return false;
    };
    let last = path.path.segments.last();
    last.is_some_and(|last| DROPPABLE.iter().any(|name| last.ident == name))
}

fn is_test(attrs: &[Attribute]) -> bool {
    let names_test = |attr: &Attribute| match &attr.meta {
        syn::Meta::List(list) => {
            list.path.is_ident("cfg") && list.tokens.to_string().contains("test")
        }
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::NameValue(_) => false,
    };
    attrs.iter().any(names_test)
}

fn returns_option(output: &ReturnType) -> bool {
    let ReturnType::Type(_, kind) = output else {
        return false;
    };
    match &**kind {
        syn::Type::Path(path) => {
            path.path.segments.last().is_some_and(|last| last.ident == "Option")
        }
        _ => false,
    }
}

fn is_explained(attrs: &[Attribute]) -> bool {
    let text = |attr: &Attribute| match &attr.meta {
        syn::Meta::NameValue(value) if value.path.is_ident("doc") => match &value.value {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    };
    attrs.iter().filter_map(text).any(|text| WORDS.iter().any(|word| text.contains(word)))
}
