// SPDX-License-Identifier: GPL-2.0
//! A test that returns early says why: by a call of `skipped`, in its own block or in the function
//! that tells it to return.

use std::collections::BTreeSet;

use pbs_house::tree;
use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Expr, ExprClosure, ExprReturn, ItemFn, Local, Stmt};

#[derive(Default)]
struct Reader {
    /// Functions of the file that call `skipped`.
    skipping: BTreeSet<String>,
    /// Whether each block around the code has a call of `skipped` or of such a function.
    blocks: Vec<bool>,
    is_in_test: bool,
    tests: usize,
    found: Vec<usize>,
}

/// Whether code calls one of the functions, or one of that name in a crate.
struct Calls<'a> {
    names: &'a BTreeSet<String>,
    is_found: bool,
}

impl Visit<'_> for Calls<'_> {
    fn visit_expr_call(&mut self, call: &syn::ExprCall) {
        if let Expr::Path(path) = &*call.func {
            let last = path.path.segments.last().map(|last| last.ident.to_string());
            self.is_found |=
                last.is_some_and(|last| last == "skipped" || self.names.contains(&last));
        }
        visit::visit_expr_call(self, call);
    }
}

impl Reader {
    fn calls(&self, visit: impl FnOnce(&mut Calls<'_>)) -> bool {
        let mut calls = Calls { names: &self.skipping, is_found: false };
        visit(&mut calls);
        calls.is_found
    }

    fn note(&mut self, span: Span) {
        if self.is_in_test && !self.blocks.last().is_some_and(|has| *has) {
            self.found.push(span.start().line);
        }
    }
}

impl Visit<'_> for Reader {
    fn visit_item_fn(&mut self, item: &ItemFn) {
        let is_test = |attr: &Attribute| attr.path().is_ident("test");
        let before = std::mem::replace(&mut self.is_in_test, item.attrs.iter().any(is_test));
        self.tests += usize::from(self.is_in_test);
        visit::visit_item_fn(self, item);
        self.is_in_test = before;
    }

    fn visit_expr_closure(&mut self, closure: &ExprClosure) {
        // The return of a closure ends no test.
        let before = std::mem::replace(&mut self.is_in_test, false);
        visit::visit_expr_closure(self, closure);
        self.is_in_test = before;
    }

    fn visit_local(&mut self, local: &Local) {
        let Some(init) = &local.init else {
            return;
        };
        // What follows else is explained by the function that has given nothing.
        let is_explained = self.calls(|calls| calls.visit_expr(&init.expr));
        self.blocks.push(is_explained);
        visit::visit_local(self, local);
        self.blocks.pop();
    }

    fn visit_block(&mut self, block: &Block) {
        let around = self.blocks.last().is_some_and(|has| *has);
        let calls_here = block.stmts.iter().any(|stmt| {
            matches!(stmt, Stmt::Expr(Expr::Call(_), _))
                && self.calls(|calls| calls.visit_stmt(stmt))
        });
        let is_in_else = block.stmts.len() == 1 && around;
        self.blocks.push(calls_here || is_in_else);
        visit::visit_block(self, block);
        self.blocks.pop();
    }

    fn visit_expr_return(&mut self, expr: &ExprReturn) {
        // A return of a value ends a test with that, and not silently.
        if expr.expr.is_none() {
            self.note(expr.return_token.span);
        }
        visit::visit_expr_return(self, expr);
    }
}

/// Lines at which a test returns without a reason, and the number of tests.
fn silent_returns(text: &str) -> (Vec<usize>, usize) {
    let file = syn::parse_file(text).expect("a Rust file");
    let mut reader = Reader::default();
    for item in &file.items {
        if let syn::Item::Fn(function) = item {
            if reader.calls(|calls| calls.visit_block(&function.block)) {
                reader.skipping.insert(function.sig.ident.to_string());
            }
        }
    }
    reader.visit_file(&file);
    (reader.found, reader.tests)
}

#[test]
fn tests_that_return_early_give_a_reason() {
    let (mut wrong, mut all) = (Vec::new(), 0);
    for path in tree::rust_files("") {
        let (found, tests) = silent_returns(&tree::text(&path));
        all += tests;
        wrong.extend(found.into_iter().map(|line| format!("{path}:{line}")));
    }
    assert!(all > 2_000, "only {all} tests were found");
    assert!(
        wrong.is_empty(),
        "tests that return and pass; call pbs_text::skipped with the reason before:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_silent_return_is_found() {
    let lines = |body: &str| silent_returns(&format!("#[test]\nfn t() {{\n{body}\n}}")).0;
    assert_eq!(lines("if !is_root() {\n return;\n}"), [4]);
    assert_eq!(lines("let Some(gpu) = gpu() else { return };"), [3]);
    assert!(lines("if !is_root() {\n pbs_text::skipped(\"root\");\n return;\n}").is_empty());
    assert!(lines("all.iter().for_each(|one| { if one.is_empty() { return; } });").is_empty());
    let helper = "fn gpu() -> Option<u8> { skipped(\"no GPU\"); None }\n#[test]\nfn t() {\n\
                  let Some(gpu) = gpu() else { return };\n}";
    assert!(silent_returns(helper).0.is_empty());
    assert!(silent_returns("fn no_test() { return; }").0.is_empty());
}
