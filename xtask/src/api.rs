//! `cargo xtask api`: the public face, as a listing that is kept in the repository.
//!
//! The listing is made from the sources, by parsing them: so it needs no nightly compiler, and has
//! the items of all features at once. What it cannot see, it has no business with: there are no
//! macros that make public items. `--compiler` compares it with what the compiler sees.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use quote::ToTokens;
use syn::{
    Attribute, Fields, File, Ident, ImplItem, Item, ItemImpl, ItemMod, TraitItem, Type, UseTree,
    Visibility, parse_quote,
};

use crate::Verdict;
use crate::cargo::root;
use crate::tool::Tool;

/// Compare the public face with its listing in `public-api.txt`.
///
/// Every change to what users can name shows up in the listing, and so in the review.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write the listing anew instead
    #[arg(long)]
    bless: bool,
    /// Compare the listing with what the compiler sees too (needs nightly and cargo-public-api)
    #[arg(long)]
    compiler: bool,
}

const LISTING: &str = "public-api.txt";

const PUBLIC_API: Tool = Tool {
    command: "public-api",
    does: "lists the public items that the compiler sees",
    toolchain: Some("nightly"),
};

pub(crate) fn run(args: Args) -> Verdict {
    let api = Api::of(&root().join("src/lib.rs"))?;
    let listing = api.listing();
    let path = root().join(LISTING);
    let mut right = true;
    if args.bless {
        fs::write(&path, &listing)?;
        println!("wrote {LISTING}");
    } else {
        let kept = fs::read_to_string(&path).with_context(|| format!("{LISTING} is missing"))?;
        right = is_same(&kept, &listing);
    }
    if args.compiler {
        right &= api.is_what_the_compiler_sees()?;
    }
    Ok(right)
}

/// Tells what is different, line by line, in no more than the order of the lines.
fn is_same(kept: &str, listing: &str) -> bool {
    if kept == listing {
        println!("the public face is as {LISTING} says");
        return true;
    }
    let only_in = |a: &str, b: &str, mark: char| {
        let b: BTreeSet<&str> = b.lines().collect();
        for line in a.lines().filter(|line| !b.contains(line)) {
            println!("{mark} {line}");
        }
    };
    only_in(kept, listing, '-');
    only_in(listing, kept, '+');
    println!(
        "the public face is not as {LISTING} says; if that is meant, `cargo xtask api --bless`"
    );
    false
}

/// A module of the sources.
struct Module {
    items: Vec<Item>,
    children: BTreeMap<String, Module>,
}

impl Module {
    fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let parsed = syn::parse_file(&text).with_context(|| file.display().to_string())?;
        Self::new(parsed.items, file)
    }

    fn new(items: Vec<Item>, file: &Path) -> anyhow::Result<Self> {
        let mut children = BTreeMap::new();
        for item in &items {
            let Item::Mod(module) = item else { continue };
            // The core shows nothing of itself; tests and what is hidden are nobody's face.
            if module.ident == "raw" || is_hidden(&module.attrs) {
                continue;
            }
            children.insert(module.ident.to_string(), Self::child(module, file)?);
        }
        Ok(Module { items, children })
    }

    fn child(module: &ItemMod, file: &Path) -> anyhow::Result<Self> {
        if let Some((_, items)) = &module.content {
            return Self::new(items.clone(), file);
        }
        let name = module.ident.to_string();
        let stem = file.file_stem().and_then(|stem| stem.to_str());
        let own = matches!(stem, Some("lib" | "mod"));
        let directory = if own {
            file.with_file_name("")
        } else {
            file.with_extension("")
        };
        let candidates: [PathBuf; 2] = [
            directory.join(format!("{name}.rs")),
            directory.join(&name).join("mod.rs"),
        ];
        let found = candidates.iter().find(|path| path.is_file());
        Self::read(found.with_context(|| format!("where is the module {name}?"))?)
    }

    /// All modules below, this one included.
    fn all(&self) -> Vec<&Module> {
        let below = self.children.values().flat_map(Module::all);
        std::iter::once(self).chain(below).collect()
    }
}

fn is_hidden(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| {
        let text = attr.to_token_stream().to_string().replace(' ', "");
        text == "#[doc(hidden)]" || text.starts_with("#[cfg(test") || text.contains("doctest")
    })
}

/// What users can name, by the module they name it in.
#[derive(Default)]
struct Api {
    modules: BTreeMap<String, Vec<Item>>,
    /// Where each type and trait is.
    homes: BTreeMap<String, String>,
    impls: Vec<ItemImpl>,
}

impl Api {
    fn of(lib: &Path) -> anyhow::Result<Self> {
        let module = Module::read(lib)?;
        let mut api = Api::default();
        api.collect("podcache", &module)?;
        for module in module.all() {
            for item in &module.items {
                if let Item::Impl(item) = item
                    && !is_hidden(&item.attrs)
                    && name_of(&item.self_ty).is_some_and(|name| api.homes.contains_key(&name))
                {
                    api.impls.push(item.clone());
                }
            }
        }
        Ok(api)
    }

    fn collect(&mut self, path: &str, module: &Module) -> anyhow::Result<()> {
        let mut exported = Vec::new();
        for item in &module.items {
            match item {
                Item::Use(item) if is_public(&item.vis) => {
                    for (from, name) in leaves(&item.tree)? {
                        let source = module.children.get(&from);
                        let found = source.into_iter().flat_map(|source| &source.items);
                        let found = found.filter(|item| ident(item).is_some_and(|i| i == name));
                        let before = exported.len();
                        exported.extend(found.cloned());
                        ensure!(exported.len() > before, "where is {path}::{name}?");
                    }
                }
                Item::Mod(item) if is_public(&item.vis) => {
                    let name = item.ident.to_string();
                    if let Some(child) = module.children.get(&name) {
                        self.collect(&format!("{path}::{name}"), child)?;
                    }
                }
                item if vis(item).is_some_and(is_public) => exported.push(item.clone()),
                _ => {}
            }
        }
        for item in &exported {
            let name = ident(item).context("an item without a name")?;
            if let Some(other) = self.homes.insert(name.clone(), path.to_owned()) {
                bail!("both {other} and {path} have a {name}: their impls cannot be told apart");
            }
        }
        exported.sort_by_key(ident);
        self.modules.insert(path.to_owned(), exported);
        Ok(())
    }

    fn listing(&self) -> String {
        let mut listing = String::from(
            "The public face, with all features: written by `cargo xtask api --bless`.\n",
        );
        for (path, items) in &self.modules {
            listing += &format!("\n==== {path} ====\n");
            for item in items {
                let name = ident(item);
                let mut parts = vec![stub(item.clone())];
                let own = self.impls.iter().filter(|i| name_of(&i.self_ty) == name);
                parts.extend(own.cloned().filter_map(outline));
                let (item, mut impls) = {
                    let mut texts = parts.into_iter().map(print);
                    (texts.next().expect("the item"), texts.collect::<Vec<_>>())
                };
                impls.sort();
                listing += &format!("\n{item}");
                listing.extend(impls);
            }
        }
        listing
    }

    /// The paths of all types, traits, functions, constants, fields and variants.
    fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for (path, items) in &self.modules {
            names.insert(path.clone());
            for item in items {
                let name = ident(item).unwrap_or_default();
                let own = format!("{path}::{name}");
                let fields = |fields: &Fields, of: &str| -> Vec<String> {
                    let named = fields.iter().filter(|field| is_public(&field.vis));
                    let named = named.filter_map(|field| field.ident.as_ref());
                    named
                        .map(|field| format!("{of}::{}", plain(field)))
                        .collect()
                };
                match item {
                    Item::Struct(item) => names.extend(fields(&item.fields, &own)),
                    Item::Enum(item) => {
                        for variant in &item.variants {
                            let of = format!("{own}::{}", variant.ident);
                            let inner = variant.fields.iter().filter_map(|f| f.ident.as_ref());
                            names.extend(inner.map(|field| format!("{of}::{}", plain(field))));
                            names.insert(of);
                        }
                    }
                    Item::Trait(item) => {
                        for item in &item.items {
                            if let TraitItem::Fn(item) = item {
                                names.insert(format!("{own}::{}", item.sig.ident));
                            }
                        }
                    }
                    _ => {}
                }
                names.insert(own);
            }
        }
        for item in self.impls.iter().filter(|item| item.trait_.is_none()) {
            let name = name_of(&item.self_ty).unwrap_or_default();
            let own = format!("{}::{name}", self.homes[&name]);
            for item in &item.items {
                match item {
                    ImplItem::Fn(item) if is_public(&item.vis) => {
                        names.insert(format!("{own}::{}", item.sig.ident));
                    }
                    ImplItem::Const(item) if is_public(&item.vis) => {
                        names.insert(format!("{own}::{}", item.ident));
                    }
                    _ => {}
                }
            }
        }
        names
    }

    fn is_what_the_compiler_sees(&self) -> Verdict {
        PUBLIC_API.demand()?;
        let output = Command::new("cargo")
            .args(["+nightly", "public-api", "--package", "podcache"])
            // Without the impls that every type has, and those that are derived.
            .args(["--all-features", "-sss"])
            .current_dir(root())
            .env_remove("CARGO")
            .env_remove("RUSTUP_TOOLCHAIN")
            .output()
            .context("cargo does not start")?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout)?;
        let listed = self.names();
        let mut seen = BTreeSet::new();
        let mut of_trait = false;
        for line in text.lines() {
            if line.starts_with("impl") || line.starts_with("unsafe impl") {
                of_trait = line.contains(" for ");
                continue;
            }
            let path = path_in(line).with_context(|| format!("no path in `{line}`"))?;
            // What an impl of a trait has is the trait's; it goes on until something that is in a
            // module.
            let parent = path.rsplit_once("::").map_or("", |(parent, _)| parent);
            of_trait &= !self.modules.contains_key(parent);
            if !of_trait {
                seen.insert(path);
            }
        }
        for name in seen.difference(&listed) {
            println!("the compiler sees {name}, which is not listed");
        }
        for name in listed.difference(&seen) {
            println!("{name} is listed, but the compiler does not see it");
        }
        println!(
            "{} items are listed, the compiler sees {}",
            listed.len(),
            seen.len()
        );
        Ok(seen == listed)
    }
}

/// A name as the compiler has it, which needs no `r#`.
fn plain(ident: &Ident) -> String {
    let ident = ident.to_string();
    ident.strip_prefix("r#").unwrap_or(&ident).to_owned()
}

/// The path in a line of cargo-public-api, without generics.
fn path_in(line: &str) -> Option<String> {
    let mut path = String::new();
    let mut depth = 0;
    for c in line[line.find("podcache")?..].chars() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ if depth > 0 => {}
            _ if c.is_alphanumeric() || c == '_' || c == ':' => path.push(c),
            _ => break,
        }
    }
    Some(path.trim_end_matches(':').to_owned())
}

/// An item without what is private, documentation and bodies.
fn stub(mut item: Item) -> Item {
    match &mut item {
        Item::Struct(item) => {
            keep_signature(&mut item.attrs);
            hide_private(&mut item.fields);
        }
        Item::Enum(item) => {
            keep_signature(&mut item.attrs);
            for variant in &mut item.variants {
                keep_signature(&mut variant.attrs);
                for field in &mut variant.fields {
                    keep_signature(&mut field.attrs);
                }
            }
        }
        Item::Trait(item) => {
            keep_signature(&mut item.attrs);
            for item in &mut item.items {
                if let TraitItem::Fn(item) = item {
                    keep_signature(&mut item.attrs);
                    item.default = None;
                    item.semi_token = Some(Default::default());
                }
            }
        }
        Item::Type(item) => keep_signature(&mut item.attrs),
        Item::Fn(function) => {
            keep_signature(&mut function.attrs);
            let (attrs, vis, sig) = (&function.attrs, &function.vis, &function.sig);
            return Item::Verbatim(quote::quote!(#(#attrs)* #vis #sig;));
        }
        Item::Const(item) => {
            keep_signature(&mut item.attrs);
        }
        _ => {}
    }
    item
}

/// The parts of an impl that a user can name; `None` if there are none.
fn outline(mut item: ItemImpl) -> Option<Item> {
    keep_signature(&mut item.attrs);
    let of_trait = item.trait_.is_some();
    item.items.retain_mut(|inner| match inner {
        ImplItem::Fn(function) => {
            keep_signature(&mut function.attrs);
            let keep = !of_trait && is_public(&function.vis) && !is_hidden(&function.attrs);
            let (attrs, vis, sig) = (&function.attrs, &function.vis, &function.sig);
            *inner = ImplItem::Verbatim(quote::quote!(#(#attrs)* #vis #sig;));
            keep
        }
        ImplItem::Const(constant) => {
            keep_signature(&mut constant.attrs);
            let keep = !of_trait && is_public(&constant.vis);
            let (attrs, vis) = (&constant.attrs, &constant.vis);
            let (name, ty) = (&constant.ident, &constant.ty);
            *inner = ImplItem::Verbatim(quote::quote!(#(#attrs)* #vis const #name: #ty;));
            keep
        }
        ImplItem::Type(_) => of_trait,
        _ => false,
    });
    (of_trait || !item.items.is_empty()).then_some(Item::Impl(item))
}

/// Leaves only the attributes that are part of the face.
fn keep_signature(attrs: &mut Vec<Attribute>) {
    const KEPT: [&str; 6] = [
        "cfg",
        "cfg_attr",
        "derive",
        "must_use",
        "non_exhaustive",
        "default",
    ];
    attrs.retain_mut(|attr| {
        let kept = KEPT.iter().any(|name| attr.path().is_ident(name));
        if attr.path().is_ident("must_use") {
            *attr = parse_quote!(#[must_use]); // its words are documentation
        }
        kept
    });
}

/// Puts a placeholder in the place of private fields.
fn hide_private(fields: &mut Fields) {
    match fields {
        Fields::Named(fields) => {
            let all = fields.named.len();
            let public = std::mem::take(&mut fields.named).into_iter();
            fields.named = public.filter(|field| is_public(&field.vis)).collect();
            for field in &mut fields.named {
                keep_signature(&mut field.attrs);
            }
            if fields.named.len() < all {
                let private: Fields = Fields::Named(parse_quote!({ private_fields: () }));
                fields.named.extend(private);
            }
        }
        Fields::Unnamed(fields) => {
            for field in &mut fields.unnamed {
                keep_signature(&mut field.attrs);
                if !is_public(&field.vis) {
                    field.ty = Type::Infer(parse_quote!(_));
                    field.vis = Visibility::Inherited;
                }
            }
        }
        Fields::Unit => {}
    }
}

fn print(item: Item) -> String {
    let file = File {
        shebang: None,
        attrs: Vec::new(),
        items: vec![item],
    };
    prettyplease::unparse(&file).replace("    private_fields: (),\n", "    // private fields\n")
}

fn is_public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

fn vis(item: &Item) -> Option<&Visibility> {
    Some(match item {
        Item::Struct(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Const(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Union(item) => &item.vis,
        _ => return None,
    })
}

fn ident(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Struct(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Const(item) => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// The name of the type that an impl is for, behind references too.
fn name_of(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|s| s.ident.to_string()),
        Type::Reference(reference) => name_of(&reference.elem),
        _ => None,
    }
}

/// The names that `pub use module::{…}` exports, each with its module.
fn leaves(tree: &UseTree) -> anyhow::Result<Vec<(String, String)>> {
    let UseTree::Path(path) = tree else {
        bail!("a public re-export that is not of the form `module::{{…}}`");
    };
    let module = path.ident.to_string();
    let names = match &*path.tree {
        UseTree::Name(name) => vec![name.ident.to_string()],
        UseTree::Group(group) => group
            .items
            .iter()
            .map(|tree| match tree {
                UseTree::Name(name) => Ok(name.ident.to_string()),
                _ => bail!("a public re-export from {module} that is not a plain name"),
            })
            .collect::<anyhow::Result<_>>()?,
        _ => bail!("a public re-export from {module} that is not a plain name"),
    };
    Ok(names
        .into_iter()
        .map(|name| (module.clone(), name))
        .collect())
}
