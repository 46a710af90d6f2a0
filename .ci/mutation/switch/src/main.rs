//! Puts the mutants that `cargo mutants --list --json` names into one copy of the sources, each behind a number given at
//! run time: `switch REPOSITORY COPY MUTANTS_JSON DROPPED_JSON` writes the changed files below COPY and prints where each
//! mutant's text went. A mutant's number is its place in the list. Only insertions are made: around `a < b` goes
//! `(if on(7) {a <= b} else {a < b})`, and since one mutant is awake at a time its text is taken from the original.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{env, fs};

use proc_macro2::Span;
use serde_json::{Value, json};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Goes into the copy as a module of its own.
const SWITCHED: &str = include_str!("switched.rs");

struct Listed {
    number: usize,
    genre: String,
    replacement: String,
}

/// Text to put in at a byte of the original. At one byte, ends come before beginnings, the innermost end and the
/// outermost beginning first.
struct Insertion {
    at: usize,
    /// False for the end of something.
    begins: bool,
    /// How long what it belongs to is.
    around: usize,
    parts: Vec<(Option<usize>, String)>,
    /// Bytes of the original left out from here.
    skipped: usize,
}

struct Switcher<'text> {
    text: &'text str,
    by_place: BTreeMap<(usize, usize), Vec<Listed>>,
    placed: BTreeSet<usize>,
    insertions: Vec<Insertion>,
    functions: Vec<(usize, usize, Vec<usize>)>,
}

fn mutants_of(listed: &[Listed], genre: &str) -> Vec<(usize, String)> {
    let of_genre = listed.iter().filter(|mutant| mutant.genre == genre);
    of_genre.map(|mutant| (mutant.number, mutant.replacement.clone())).collect()
}

fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

impl Switcher<'_> {
    fn at(&self, span: Span, genre: &str) -> Vec<(usize, String)> {
        let start = span.start();
        let listed = self.by_place.get(&(start.line, start.column + 1));
        listed.map(|listed| mutants_of(listed, genre)).unwrap_or_default()
    }

    fn original(&self, span: Span) -> &str {
        &self.text[span.byte_range()]
    }

    fn insert(
        &mut self,
        at: usize,
        begins: bool,
        around: usize,
        parts: Vec<(Option<usize>, String)>,
    ) {
        self.placed.extend(parts.iter().filter_map(|(number, _)| *number));
        self.insertions.push(Insertion { at, begins, around, parts, skipped: 0 });
    }

    /// `(if on(N) {mutant} else {original})`.
    fn wrap(&mut self, span: Span, before: &str, mutants: Vec<(usize, String)>) {
        if mutants.is_empty() {
            return;
        }
        let range = span.byte_range();
        let mut parts = vec![(None, format!("{before}("))];
        for (number, text) in mutants {
            parts.push((
                Some(number),
                format!("if crate::switched::on({number}) {{ {text} }} else "),
            ));
        }
        parts.push((None, "{ ".to_owned()));
        self.insert(range.start, true, range.len(), parts);
        self.insert(range.end, false, range.len(), vec![(None, " })".to_owned())]);
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block, span: Span) {
        let (Some(first), Some(_)) = (block.stmts.first(), block.stmts.last()) else { return };
        let mutants = self.at(first.span(), "FnValue");
        let range = span.byte_range();
        self.functions.push((
            range.start,
            range.end,
            mutants.iter().map(|(number, _)| *number).collect(),
        ));
        if let Some(constant) = &signature.constness {
            let inside = (span.start().line..=span.end().line)
                .any(|line| self.by_place.range((line, 0)..(line + 1, 0)).next().is_some());
            if inside {
                // A switch is read at run time; where a constant needs the function the compiler will say so.
                let range = constant.span().byte_range();
                self.insertions.push(Insertion {
                    at: range.start,
                    begins: true,
                    around: 0,
                    parts: Vec::new(),
                    skipped: range.len(),
                });
            }
        }
        let at = first.span().byte_range().start;
        for (number, value) in mutants {
            let text = format!("if crate::switched::on({number}) {{ return {value}; }} ");
            self.insert(at, true, usize::MAX, vec![(Some(number), text)]);
        }
    }
}

impl<'ast> Visit<'ast> for Switcher<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block, item.span());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block, item.span());
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block, item.span());
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        // `let` in a chain of conditions allows neither brackets nor another operator.
        if !has_let(&binary.left) && !has_let(&binary.right) {
            let left = self.original(binary.left.span()).to_owned();
            let right = self.original(binary.right.span()).to_owned();
            let mutants = self.at(binary.op.span(), "BinaryOperator");
            let mutants = mutants
                .into_iter()
                .map(|(number, operator)| (number, format!("{left} {operator} {right}")))
                .collect();
            self.wrap(binary.span(), "", mutants);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        let operand = self.original(unary.expr.span()).to_owned();
        let mutants = self.at(unary.op.span(), "UnaryOperator");
        let mutants = mutants.into_iter().map(|(number, _)| (number, operand.clone())).collect();
        self.wrap(unary.span(), "", mutants);
        visit::visit_expr_unary(self, unary);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            if !has_let(guard) {
                let mutants = self.at(guard.span(), "MatchArmGuard");
                self.wrap(guard.span(), "", mutants);
            }
        } else {
            let end = arm.pat.span().byte_range().end;
            for (number, _) in self.at(arm.span(), "MatchArm") {
                let text = format!(" if !crate::switched::on({number})");
                self.insert(end, false, 0, vec![(Some(number), text)]);
            }
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, literal: &'ast syn::ExprStruct) {
        if let Some(base) = &literal.rest {
            let base = self.original(base.span()).to_owned();
            for field in &literal.fields {
                let syn::Member::Named(name) = &field.member else { continue };
                let mutants = self.at(field.span(), "StructField");
                let mutants = mutants
                    .into_iter()
                    .map(|(number, _)| (number, format!("({base}).{name}")))
                    .collect();
                let before =
                    if field.colon_token.is_none() { format!("{name}: ") } else { String::new() };
                self.wrap(field.expr.span(), &before, mutants);
            }
        }
        visit::visit_expr_struct(self, literal);
    }
}

fn switch_file(text: &str, listed: Vec<(usize, &Value)>) -> (String, Value, BTreeSet<usize>) {
    let mut by_place: BTreeMap<(usize, usize), Vec<Listed>> = BTreeMap::new();
    for (number, mutant) in listed {
        let start = &mutant["span"]["start"];
        let place =
            (start["line"].as_u64().unwrap() as usize, start["column"].as_u64().unwrap() as usize);
        by_place.entry(place).or_default().push(Listed {
            number,
            genre: mutant["genre"].as_str().unwrap().to_owned(),
            replacement: mutant["replacement"].as_str().unwrap().to_owned(),
        });
    }
    let syntax = syn::parse_file(text).unwrap();
    let mut switcher = Switcher {
        text,
        by_place,
        placed: BTreeSet::new(),
        insertions: Vec::new(),
        functions: Vec::new(),
    };
    switcher.visit_file(&syntax);
    let mut insertions = switcher.insertions;
    insertions.sort_by_key(|insertion| {
        let size = if insertion.begins { usize::MAX - insertion.around } else { insertion.around };
        (insertion.at, insertion.begins, size)
    });
    let mut out = String::new();
    let mut ranges = Vec::new();
    let mut origin = Vec::new();
    let mut taken = 0;
    for insertion in insertions {
        origin.push((out.len(), taken));
        out.push_str(&text[taken..insertion.at]);
        taken = insertion.at + insertion.skipped;
        for (number, part) in insertion.parts {
            if let Some(number) = number {
                ranges.push(json!([out.len(), out.len() + part.len(), number]));
            }
            out.push_str(&part);
        }
    }
    origin.push((out.len(), taken));
    out.push_str(&text[taken..]);
    let functions: Vec<Value> = switcher
        .functions
        .into_iter()
        .map(|(start, end, numbers)| json!([start, end, numbers]))
        .collect();
    (out, json!({ "ranges": ranges, "origin": origin, "functions": functions }), switcher.placed)
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [repository, copy, mutants, dropped] = arguments.as_slice() else {
        panic!("switch REPOSITORY COPY MUTANTS_JSON DROPPED_JSON");
    };
    let read =
        |path: &str| -> Value { serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap() };
    let mutants = read(mutants);
    let dropped = read(dropped);
    let dropped: BTreeSet<usize> = dropped
        .as_array()
        .unwrap()
        .iter()
        .map(|number| number.as_u64().unwrap() as usize)
        .collect();
    let mut by_file: BTreeMap<&str, Vec<(usize, &Value)>> = BTreeMap::new();
    let mut wanted = BTreeSet::new();
    for (number, mutant) in mutants.as_array().unwrap().iter().enumerate() {
        let listed = by_file.entry(mutant["file"].as_str().unwrap()).or_default();
        if !dropped.contains(&number) {
            wanted.insert(number);
            listed.push((number, mutant));
        }
    }
    let mut files = BTreeMap::new();
    let mut placed = BTreeSet::new();
    for (file, listed) in by_file {
        let text = fs::read_to_string(Path::new(repository).join(file)).unwrap();
        let (switched, map, found) = switch_file(&text, listed);
        fs::write(Path::new(copy).join(file), switched).unwrap();
        files.insert(file, map);
        placed.extend(found);
    }
    fs::write(Path::new(copy).join("src/switched.rs"), SWITCHED).unwrap();
    let unplaced: Vec<usize> = wanted.difference(&placed).copied().collect();
    println!("{}", json!({ "files": files, "unplaced": unplaced }));
}
