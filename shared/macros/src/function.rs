//! The function with an attribute: checks its form and splits it into its parts.

use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, Block, Error, FnArg, GenericArgument, Ident, ItemFn, Pat, PathArguments, PathSegment, Result,
    ReturnType, Signature, Type, TypeImplTrait, TypeReference, Visibility,
};

/// What the attribute makes of a function. Errors name it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Step,
    /// A step whose code gets several tasks at once.
    Batch,
    Workflow,
}

/// A function that was checked.
pub(crate) struct Function {
    pub(crate) role: Role,
    /// Its documentation, which the public item gets.
    pub(crate) docs: Vec<Attribute>,
    /// Its `cfg` attributes, which all generated items get.
    pub(crate) conditions: Vec<Attribute>,
    /// Its other attributes, which stay with its code.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    pub(crate) block: Block,
    /// The arguments, without a workflow's context.
    pub(crate) arguments: Vec<Argument>,
    /// The arguments and the states, in the order of the parameters.
    pub(crate) passed: Vec<Passed>,
    pub(crate) returned: Returned,
}

/// An argument.
pub(crate) struct Argument {
    /// The name that the generated code uses.
    pub(crate) name: Ident,
    pub(crate) ty: Type,
}

/// A parameter of a step's function, in order.
pub(crate) enum Passed {
    /// An argument.
    Argument(Ident),
    /// A state of this type, from the worker.
    State(Box<Type>),
}

/// What a function returns.
pub(crate) struct Returned {
    /// The whole type.
    pub(crate) ty: Type,
    /// The type in `Ok`, if the source names it.
    pub(crate) output: Option<Type>,
    /// The type in `Err`, if the source names it.
    pub(crate) error: Option<Type>,
    /// The trait that finds both, if the source doesn't name them.
    pub(crate) parts_of: &'static str,
}

impl Role {
    const fn a(self) -> &'static str {
        match self {
            Self::Step | Self::Batch => "a step",
            Self::Workflow => "a workflow",
        }
    }
}

impl Function {
    /// Parses and checks a function. An error says what it has to look like.
    pub(crate) fn read(tokens: proc_macro2::TokenStream, role: Role) -> Result<Self> {
        let span = tokens.clone();
        let mut item: ItemFn =
            syn::parse2(tokens).map_err(|error| match syn::parse2::<syn::Item>(span.clone()) {
                Ok(other) => Error::new_spanned(other, format!("{} is made of an `async fn`", role.a())),
                Err(_) => error,
            })?;
        check_signature(&item.sig, role)?;
        let returned = Returned::read(&item.sig, role)?;
        let (arguments, passed) = read_arguments(&mut item.sig, role)?;
        let (docs, others): (Vec<_>, Vec<_>) =
            item.attrs.into_iter().partition(|attribute| attribute.path().is_ident("doc"));
        let (conditions, attributes) =
            others.into_iter().partition(|attribute| attribute.path().is_ident("cfg"));
        Ok(Self {
            role,
            docs,
            conditions,
            attributes,
            visibility: item.vis,
            signature: item.sig,
            block: *item.block,
            arguments,
            passed,
            returned,
        })
    }

    /// The name if the attribute gives none.
    pub(crate) fn name(&self) -> String {
        self.signature.ident.unraw().to_string()
    }
}

fn check_signature(signature: &Signature, role: Role) -> Result<()> {
    let a = role.a();
    if let Some(receiver) = signature.receiver() {
        let message = format!(
            "{a} is a function of its own, not a method: it runs on another worker or another day, where \
             this value isn't; pass what it needs as arguments"
        );
        return Err(Error::new_spanned(receiver, message));
    }
    if signature.asyncness.is_none() {
        let message = format!("{a} is an async function: write `async fn {}`", signature.ident);
        return Err(Error::new_spanned(signature.fn_token, message));
    }
    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        let message = format!(
            "{a} can't be generic: it is found by its name alone, which has to mean one function; write one \
             for each type"
        );
        return Err(Error::new_spanned(&signature.generics, message));
    }
    if let syn::Safety::Unsafe(token) = &signature.safety {
        return Err(Error::new_spanned(
            token,
            format!("{a} can't be unsafe: nobody checks before it is run"),
        ));
    }
    Ok(())
}

fn read_arguments(signature: &mut Signature, role: Role) -> Result<(Vec<Argument>, Vec<Passed>)> {
    let (mut arguments, mut passed) = (Vec::new(), Vec::new());
    let states: Vec<_> = signature.inputs.iter_mut().map(take_state).collect();
    let signature = &*signature;
    for (index, (argument, state)) in signature.inputs.iter().zip(states).enumerate() {
        // `check_signature` has refused a receiver already.
        let FnArg::Typed(argument) = argument else { continue };
        if let Some(attribute) = state {
            passed.push(Passed::State(Box::new(read_state(&attribute, &argument.ty, role)?)));
            continue;
        }
        if role == Role::Workflow && index == 0 {
            check_context(&argument.ty, signature)?;
            continue;
        }
        check_owned(&argument.ty, role)?;
        let name = argument_name(&argument.pat, index);
        passed.push(Passed::Argument(name.clone()));
        let ty = if role == Role::Batch { element(&argument.ty)? } else { (*argument.ty).clone() };
        arguments.push(Argument { name, ty });
    }
    match role {
        Role::Batch if arguments.len() != 1 => Err(Error::new_spanned(
            &signature.inputs,
            "a step with a batch takes one argument, the inputs of its tasks, beside its states: write `Vec<…>`",
        )),
        Role::Workflow if signature.inputs.is_empty() => Err(no_context(&signature.ident, signature)),
        Role::Workflow if arguments.len() > 1 => Err(Error::new_spanned(
            &signature.inputs[2],
            "a workflow takes one input beside its context; put several into a struct or a tuple",
        )),
        Role::Step | Role::Batch | Role::Workflow => Ok((arguments, passed)),
    }
}

/// The type of one input of a batch.
fn element(ty: &Type) -> Result<Type> {
    let vec = last_segment(ty).filter(|segment| segment.ident == "Vec");
    if let Some([element]) = vec.map(types_in).as_deref() {
        return Ok(element.clone());
    }
    let message = format!(
        "a step with a batch gets the inputs of several tasks at once: write `Vec<{}>`; a caller passes one of them",
        shown(ty)
    );
    Err(Error::new_spanned(ty, message))
}

/// Removes the attribute `#[state]` from an argument.
fn take_state(argument: &mut FnArg) -> Option<Attribute> {
    let FnArg::Typed(argument) = argument else { return None };
    let place = argument.attrs.iter().position(|attribute| attribute.path().is_ident("state"))?;
    Some(argument.attrs.remove(place))
}

/// The type of the state behind an argument.
fn read_state(attribute: &Attribute, ty: &Type, role: Role) -> Result<Type> {
    if attribute.meta.require_path_only().is_err() {
        let message = "`#[state]` stands alone: its argument's type says which state it is";
        return Err(Error::new_spanned(attribute, message));
    }
    if role == Role::Workflow {
        let message = "a workflow has no state of its worker's: its code runs again from the top on any worker, and may \
                       only do what is remembered; give the state to its steps";
        return Err(Error::new_spanned(attribute, message));
    }
    match ty {
        Type::Reference(TypeReference { mutability: None, lifetime: None, elem, .. }) => Ok((**elem).clone()),
        Type::Reference(reference) => {
            let message = format!(
                "a state is shared by all steps that run at once: write `&{}`, with a lock inside if it changes",
                shown(&reference.elem)
            );
            Err(Error::new_spanned(reference, message))
        }
        other => {
            let message = format!("a state is borrowed from the worker: write `&{}`", shown(other));
            Err(Error::new_spanned(other, message))
        }
    }
}

fn check_context(ty: &Type, signature: &Signature) -> Result<()> {
    let is_context = last_segment(ty).is_some_and(|segment| segment.ident == "Ctx");
    if is_context { Ok(()) } else { Err(no_context(ty, signature)) }
}

fn no_context(place: impl quote::ToTokens, signature: &Signature) -> Error {
    let message = format!(
        "a workflow's first argument is its context, through which it runs steps, sleeps and waits: write \
         `async fn {}(ctx: Ctx, …)`",
        signature.ident
    );
    Error::new_spanned(place, message)
}

/// An argument's own name, so that editors show it. Patterns get a number.
fn argument_name(pattern: &Pat, index: usize) -> Ident {
    match pattern {
        Pat::Ident(pattern) if pattern.subpat.is_none() => pattern.ident.clone(),
        _ => Ident::new(&format!("argument_{index}"), proc_macro2::Span::call_site()),
    }
}

fn check_owned(ty: &Type, role: Role) -> Result<()> {
    let mut borrowed = Borrowed { found: None, a: role.a() };
    // On a copy, though nothing is changed: `Visit` is a feature of syn that no other macro asks for, and with it all
    // dependencies of a worker would be compiled apart from those of the other functions.
    borrowed.visit_type_mut(&mut ty.clone());
    borrowed.found.map_or(Ok(()), Err)
}

/// Finds types that can't be stored.
struct Borrowed {
    found: Option<Error>,
    a: &'static str,
}

impl VisitMut for Borrowed {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        let (owned, state) = match &*reference.elem {
            Type::Slice(slice) => (format!("Vec<{}>", shown(&slice.elem)), String::new()),
            Type::Path(path) if path.path.is_ident("str") => ("String".to_owned(), String::new()),
            other if self.a == Role::Step.a() => {
                let of_worker =
                    format!(", or `#[state] …: &{}` if it is something that the worker has", shown(other));
                (shown(other), of_worker)
            }
            other => (shown(other), String::new()),
        };
        let a = self.a;
        let message = format!(
            "{a} can't borrow its arguments: they are stored and read again, perhaps by another worker; write \
             `{owned}`{state}"
        );
        self.found.get_or_insert(Error::new_spanned(&*reference, message));
    }

    fn visit_type_impl_trait_mut(&mut self, ty: &mut TypeImplTrait) {
        let message = format!(
            "{} needs to know the types of its arguments to read them; write the type itself",
            self.a
        );
        self.found.get_or_insert(Error::new_spanned(&*ty, message));
        visit_mut::visit_type_impl_trait_mut(self, ty);
    }
}

impl Returned {
    fn read(signature: &Signature, role: Role) -> Result<Self> {
        let a = role.a();
        if role == Role::Batch {
            return Self::read_batch(signature);
        }
        let ReturnType::Type(_, ty) = &signature.output else {
            let message = format!("{a} returns a `Result`, because it can fail: write `-> Result<()>`");
            return Err(Error::new_spanned(&signature.ident, message));
        };
        let segment = last_segment(ty).filter(|segment| segment.ident.to_string().ends_with("Result"));
        let Some(segment) = segment else {
            let message =
                format!("{a} returns a `Result`, because it can fail: write `Result<{}>`", shown(ty));
            return Err(Error::new_spanned(ty, message));
        };
        check_error(ty, segment, role)?;
        // Only a type named `Result` has its types in known positions. An alias with another name may have them
        // anywhere.
        let mut types = if segment.ident == "Result" { types_in(segment) } else { Vec::new() }.into_iter();
        let (output, error) = (types.next(), types.next());
        Ok(Self { ty: (**ty).clone(), output, error, parts_of: "Fallible" })
    }

    /// The compiler finds the types in a list of results, or in a result of one.
    fn read_batch(signature: &Signature) -> Result<Self> {
        let ReturnType::Type(_, ty) = &signature.output else {
            let message = "a step with a batch returns one result for each input: write `-> Vec<Result<()>>`, or \
                           `-> Result<Vec<Result<()>>>` if all can fail together";
            return Err(Error::new_spanned(&signature.ident, message));
        };
        Ok(Self { ty: (**ty).clone(), output: None, error: None, parts_of: "BatchReturned" })
    }
}

/// Crates whose errors contain any error and can't be deserialised.
const OPAQUE_ERRORS: [&str; 3] = ["anyhow", "color_eyre", "eyre"];

/// Refuses errors that can't be stored, and says what to write instead. The compiler's own error would be about a
/// missing trait of a type from another crate.
fn check_error(ty: &Type, result: &PathSegment, role: Role) -> Result<()> {
    let types = types_in(result);
    let of_crate =
        |ty: &Type| first_segment(ty).is_some_and(|name| OPAQUE_ERRORS.iter().any(|of| name == of));
    let is_boxed = |ty: &Type| last_segment(ty).is_some_and(|segment| segment.ident == "Box");
    let error = types.get(1);
    if !of_crate(ty) && !error.is_some_and(|error| of_crate(error) || is_boxed(error)) {
        return Ok(());
    }
    let (a, output) = (role.a(), types.first().map_or_else(|| "()".to_owned(), shown));
    let instead = match role {
        Role::Step | Role::Batch => format!("Result<{output}, tickover::Failure>"),
        Role::Workflow => format!("tickover::Result<{output}>"),
    };
    let message = format!(
        "{a}'s error is stored and read again, which an error that may be anything can't be: write `{instead}`, into \
         which `?` turns errors that have a type; others go with \
         `.map_err(|error| tickover::Failure::new(\"failed\", format!(\"{{error:#}}\")))?`"
    );
    Err(Error::new_spanned(error.unwrap_or(ty), message))
}

fn first_segment(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) if path.qself.is_none() => path.path.segments.first().map(|segment| &segment.ident),
        Type::Group(group) => first_segment(&group.elem),
        Type::Paren(paren) => first_segment(&paren.elem),
        _ => None,
    }
}

/// A type as people write it, without the white space between tokens.
fn shown(ty: &Type) -> String {
    let text = ty.to_token_stream().to_string();
    [(" < ", "<"), (" >", ">"), (" :: ", "::"), (" ,", ","), ("& ", "&")]
        .iter()
        .fold(text, |text, (spaced, tight)| text.replace(spaced, tight))
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        Type::Group(group) => last_segment(&group.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        _ => None,
    }
}

fn types_in(segment: &PathSegment) -> Vec<Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return Vec::new() };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    });
    types.collect()
}
