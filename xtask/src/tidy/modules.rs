//! The modules of one crate: the file of each, what it names, and what a path resolves to.
//!
//! - The root is module 0. It has no file here, because it only lists and re-exports modules.
//! - Modules and items of test builds are left out.
//! - A path into another crate resolves to nothing.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::{Attribute, ImplItem, Item, Signature, TraitItem, Type};

use super::calls_in_code::{Call, calls};
use super::paths_in_code::{Named, is_for_tests, paths};
use super::repository::Repository;

/// The longest chain of re-exports that is followed; a longer one is taken for a cycle.
const RE_EXPORTS: usize = 16;

/// One module, inline or a file of its own.
#[derive(Default)]
pub(super) struct Module {
    pub(super) path: Vec<String>,
    pub(super) file: Option<String>,
    pub(super) named: Vec<Named>,
    /// The types that the module defines, each with its line.
    pub(super) types: Vec<(String, usize)>,
    /// The methods that the module defines.
    pub(super) methods: Vec<Method>,
    /// The functions and methods that the module defines, each with its line.
    pub(super) functions: Vec<(String, usize)>,
    /// The constants and statics that the module defines, each with its line. Those of an `impl` do not count.
    pub(super) constants: Vec<(String, usize)>,
    /// The methods that it calls.
    pub(super) calls: Vec<Call>,
    parent: usize,
    children: BTreeMap<String, usize>,
    imports: BTreeMap<String, Vec<String>>,
    /// The statics that the module defines, each with the path of its type.
    statics: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    items: BTreeSet<String>,
}

/// A method, and the type that it is added to by an `impl` of the type's own. None for a method of a trait.
pub(super) struct Method {
    pub(super) of: Option<String>,
    pub(super) name: String,
}

/// The modules of one crate.
pub(super) struct Modules {
    pub(super) all: Vec<Module>,
    folder: String,
}

/// What a path resolves to: a module, or an item in it.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) module: usize,
    is_item: bool,
}

/// Whether one of the attributes limits its item to builds for tests.
pub(super) fn only_for_tests(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .any(|attribute| is_for_tests(&attribute.meta.to_token_stream().to_string()))
}

/// The name and the attributes of a type, a trait or an alias, and nothing for other items.
pub(super) fn type_name(item: &Item) -> Option<(&syn::Ident, &[Attribute])> {
    Some(match item {
        Item::Struct(item) => (&item.ident, &item.attrs),
        Item::Enum(item) => (&item.ident, &item.attrs),
        Item::Union(item) => (&item.ident, &item.attrs),
        Item::Trait(item) => (&item.ident, &item.attrs),
        Item::TraitAlias(item) => (&item.ident, &item.attrs),
        Item::Type(item) => (&item.ident, &item.attrs),
        _ => return None,
    })
}

impl Modules {
    /// Reads the crate in `folder`.
    pub(super) fn load(repository: &Repository, folder: &str) -> Self {
        let mut modules = Self {
            all: vec![Module::default()],
            folder: folder.to_owned(),
        };
        if let Some(root) = repository
            .crate_root(folder)
            .and_then(|root| root.syntax().ok())
        {
            modules.enter(repository, 0, &root.items);
        }
        modules
    }

    fn enter(&mut self, repository: &Repository, at: usize, items: &[Item]) {
        for item in items {
            match item {
                Item::Mod(module) if only_for_tests(&module.attrs) => {}
                Item::Mod(module) => {
                    let child = self.child(at, &module.ident.to_string());
                    if let Some((_, items)) = &module.content {
                        self.enter(repository, child, items);
                    } else if let Some(file) = self.file_of(repository, child) {
                        self.all[child].file = Some(file.path.clone());
                        if let Ok(syntax) = file.syntax() {
                            self.enter(repository, child, &syntax.items);
                        }
                    }
                }
                item => self.all[at].take(item),
            }
        }
    }

    fn child(&mut self, parent: usize, name: &str) -> usize {
        let next = self.all.len();
        let child = *self.all[parent]
            .children
            .entry(name.to_owned())
            .or_insert(next);
        if child == next {
            let path = [self.all[parent].path.as_slice(), &[name.to_owned()]].concat();
            let file = self.all[parent].file.clone();
            self.all.push(Module {
                path,
                file,
                parent,
                ..Module::default()
            });
        }
        child
    }

    fn file_of<'a>(
        &self,
        repository: &'a Repository,
        module: usize,
    ) -> Option<&'a super::repository::File> {
        let stem = format!("{}/src/{}", self.folder, self.all[module].path.join("/"));
        repository.file(&format!("{stem}.rs"))
    }

    /// The module that defines the type of the root's static to which `path`, named in the module `from`, leads.
    pub(super) fn type_of_root_static(&self, from: usize, path: &[String]) -> Option<usize> {
        let target = self.resolve(from, path)?;
        let of = self.all[0].statics.get(path.last()?)?;
        let defines = (target.module == 0 && target.is_item).then(|| self.resolve(0, of))?;
        defines.map(|target| target.module)
    }

    /// Resolves `path` as named in the module `from`.
    pub(super) fn resolve(&self, from: usize, path: &[String]) -> Option<Target> {
        self.find(from, path, RE_EXPORTS)
    }

    fn find(&self, from: usize, path: &[String], left: usize) -> Option<Target> {
        let module = &self.all[from];
        match path.first()?.as_str() {
            "crate" => self.walk(0, &path[1..], left),
            "self" => self.walk(from, &path[1..], left),
            "super" => self.walk(module.parent, &path[1..], left),
            first if module.children.contains_key(first) => self.walk(from, path, left),
            first => {
                // What an imported module has is looked up in it; an imported item was found at its `use`.
                let import = module.imports.get(first)?;
                let target = self.find(from, import, left.checked_sub(1)?)?;
                let is_module = !target.is_item;
                is_module.then(|| self.walk(target.module, &path[1..], left))?
            }
        }
    }

    /// Follows `path` from inside the module `at`.
    fn walk(&self, at: usize, path: &[String], left: usize) -> Option<Target> {
        let left = left.checked_sub(1)?;
        let module = &self.all[at];
        let Some((first, rest)) = path.split_first() else {
            return Some(Target {
                module: at,
                is_item: false,
            });
        };
        let here = Target {
            module: at,
            is_item: true,
        };
        if first == "super" {
            return self.walk(module.parent, rest, left + 1);
        }
        if let Some(child) = module.children.get(first) {
            return self.walk(*child, rest, left + 1);
        }
        if let Some(import) = module.imports.get(first) {
            return match self.find(at, import, left) {
                Some(target) if !target.is_item => self.walk(target.module, rest, left),
                Some(target) => Some(target),
                None => Some(here), // From another crate.
            };
        }
        if !module.items.contains(first) {
            for glob in &module.globs {
                let through = self.find(at, glob, left).filter(|target| !target.is_item);
                if let Some(target) = through.filter(|target| self.has(target.module, first)) {
                    return self.walk(target.module, path, left);
                }
            }
        }
        Some(here)
    }

    fn has(&self, module: usize, name: &str) -> bool {
        let module = &self.all[module];
        module.items.contains(name)
            || module.children.contains_key(name)
            || module.imports.contains_key(name)
    }
}

impl Module {
    fn take(&mut self, item: &Item) {
        let named = paths(item.to_token_stream());
        if matches!(item, Item::Use(_)) {
            for Named { path, alias, .. } in &named {
                if alias == "*" {
                    self.globs.push(path[..path.len() - 1].to_vec());
                } else {
                    self.imports.insert(alias.clone(), path.clone());
                }
            }
        }
        let name = match item {
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Const(item) => Some(&item.ident),
            Item::Static(item) => Some(&item.ident),
            item => type_name(item).map(|(name, _)| name),
        };
        self.items.extend(name.map(ToString::to_string));
        if let Item::Static(item) = item
            && let Type::Path(of) = &*item.ty
        {
            let segments = of.path.segments.iter();
            let path = segments.map(|segment| segment.ident.to_string());
            self.statics.insert(item.ident.to_string(), path.collect());
        }
        let own_type = type_name(item).filter(|(_, attributes)| !only_for_tests(attributes));
        let place = own_type.map(|(name, _)| (name.to_string(), name.span().start().line));
        self.types.extend(place);
        self.named.extend(named);
        self.methods.extend(methods(item));
        self.functions.extend(functions(item));
        self.constants.extend(constant(item));
        self.calls.extend(calls(item.to_token_stream()));
    }
}

/// The methods of an `impl` or a trait that is not for tests only.
fn methods(item: &Item) -> Vec<Method> {
    let method = |of: Option<&String>, attributes: &[Attribute], signature: &Signature| {
        let is_method = signature.receiver().is_some() && !only_for_tests(attributes);
        is_method.then(|| Method {
            of: of.cloned(),
            name: signature.ident.to_string(),
        })
    };
    match item {
        Item::Impl(block) if !only_for_tests(&block.attrs) => {
            let of = block.trait_.is_none().then(|| name_of(&block.self_ty));
            let of = of.flatten();
            let items = block.items.iter().filter_map(|item| match item {
                ImplItem::Fn(item) => method(of.as_ref(), &item.attrs, &item.sig),
                _ => None,
            });
            items.collect()
        }
        Item::Trait(block) => {
            let items = block.items.iter().filter_map(|item| match item {
                TraitItem::Fn(item) => method(None, &item.attrs, &item.sig),
                _ => None,
            });
            items.collect()
        }
        _ => Vec::new(),
    }
}

/// The functions of an item that is not for tests only, those of an `impl` or a trait included.
fn functions(item: &Item) -> Vec<(String, usize)> {
    let function = |attributes: &[Attribute], signature: &Signature| {
        let name = &signature.ident;
        let place = || (name.to_string(), name.span().start().line);
        (!only_for_tests(attributes)).then(place)
    };
    match item {
        Item::Fn(item) => function(&item.attrs, &item.sig).into_iter().collect(),
        Item::Impl(block) if !only_for_tests(&block.attrs) => {
            let items = block.items.iter().filter_map(|item| match item {
                ImplItem::Fn(item) => function(&item.attrs, &item.sig),
                _ => None,
            });
            items.collect()
        }
        Item::Trait(block) => {
            let items = block.items.iter().filter_map(|item| match item {
                TraitItem::Fn(item) => function(&item.attrs, &item.sig),
                _ => None,
            });
            items.collect()
        }
        _ => Vec::new(),
    }
}

/// The name of a constant or a static that is not for tests only.
fn constant(item: &Item) -> Option<(String, usize)> {
    let (name, attributes) = match item {
        Item::Const(item) => (&item.ident, &item.attrs),
        Item::Static(item) => (&item.ident, &item.attrs),
        _ => return None,
    };
    (!only_for_tests(attributes)).then(|| (name.to_string(), name.span().start().line))
}

/// The last segment of a type that is named by a path.
fn name_of(of: &Type) -> Option<String> {
    match of {
        Type::Path(of) => Some(of.path.segments.last()?.ident.to_string()),
        _ => None,
    }
}
