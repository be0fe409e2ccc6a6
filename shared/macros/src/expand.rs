//! Generates the code for an attribute and its function.
//!
//! All names are full paths, so that the code doesn't depend on the imports of a user's file.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Ident, LitStr, Result, Type};
use tickover_core::batch::Batch;
use tickover_core::duration::Millis;
use tickover_core::retry::{Delay, Jitter, MaxAttempts, RetryPolicy};
use tickover_core::timeout::OnTimeout;

use crate::flow::Flow;
use crate::function::{Function, Passed, Returned, Role};
use crate::options::{Place, StepOptions, WorkflowOptions};

/// Generates a function that makes the step, a type for the step, and the step's code.
pub(crate) fn step(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = StepOptions::read(arguments)?;
    let role = if options.batch.is_some() { Role::Batch } else { Role::Step };
    let function = Function::read(item, role)?;
    let Function { docs, conditions, visibility, arguments, returned, .. } = &function;
    let ident = &function.signature.ident;
    let code = code(&function);
    let name = name(options.name.as_ref(), &function);
    let (keys, calls) = (options.flow.keys(), options.flow.calls());
    let batch = options.batch;
    let options = step_options(&options);
    let Attempt { states, attempt } = attempt(&function);
    let (output, error) = (returned.output(), returned.error());
    let names: Vec<_> = arguments.iter().map(|argument| &argument.name).collect();
    let types: Vec<_> = arguments.iter().map(|argument| &argument.ty).collect();
    // One argument is sent as itself, several as a tuple, none as the unit.
    let (input, input_type) = match (names.as_slice(), types.as_slice()) {
        ([name], [ty]) => (quote!(#name), quote!(#ty)),
        _ => (quote!((#(#names),*)), quote!((#(#types),*))),
    };
    let run = run(batch, &input, &attempt);
    Ok(quote! {
        #(#docs)*
        #(#conditions)*
        #visibility fn #ident(#(#names: #types),*) -> ::tickover::Step<#output, #error> {
            #(#keys)*
            ::tickover::__private::step_of::<#ident>(#input) #(#calls)*
        }

        #(#conditions)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "it has its function's name")]
        #visibility enum #ident {}

        #(#conditions)*
        const _: () = {
            #code

            impl ::tickover::StepHandler for #ident {
                const NAME: &'static ::core::primitive::str = #name;
                type Input = #input_type;
                type Output = #output;
                type Error = #error;

                fn options() -> ::tickover::StepOptions {
                    #options
                }

                #states

                #run
            }
            ::tickover::__private::inventory::submit! { ::tickover::__private::LinkedStep::of::<#ident>() }
        };
    })
}

/// The methods that run a step.
fn run(batch: Option<Batch>, input: &TokenStream, attempt: &TokenStream) -> TokenStream {
    let Some(batch) = batch else {
        return quote! {
            fn run(
                #input: Self::Input,
                __states: &::tickover::__private::States,
            ) -> ::tickover::__private::Attempt<Self::Output, Self::Error> {
                #attempt
            }
        };
    };
    let (max, within) = (batch.max(), batch.within().as_u64());
    quote! {
        fn run(
            __input: Self::Input,
            __states: &::tickover::__private::States,
        ) -> ::tickover::__private::Attempt<Self::Output, Self::Error> {
            let __batch = Self::run_batch(::std::vec![__input], __states);
            ::tickover::__private::only_one(Self::NAME, __batch)
        }

        fn batch() -> ::core::option::Option<::tickover::__private::Batch> {
            ::tickover::__private::Batch::new(#max, ::tickover::__private::Millis::new(#within)).ok()
        }

        fn run_batch(
            #input: ::std::vec::Vec<Self::Input>,
            __states: &::tickover::__private::States,
        ) -> ::tickover::__private::BatchAttempt<Self::Output, Self::Error> {
            #attempt
        }
    }
}

/// The call of a step's code.
struct Attempt {
    /// The method that lists its states, if it has any.
    states: Option<TokenStream>,
    attempt: TokenStream,
}

fn attempt(function: &Function) -> Attempt {
    let code_name = code_name(function);
    let (mut types, mut found, mut passed) = (vec![], vec![], vec![]);
    for (index, part) in function.passed.iter().enumerate() {
        match part {
            Passed::Argument(name) => passed.push(quote!(#name)),
            Passed::State(ty) => {
                let name = format_ident!("__state_{index}");
                found.push(quote!(let #name = ::tickover::__private::States::get::<#ty>(__states)?;));
                types.push(quote!(::tickover::__private::StateType::of::<#ty>()));
                passed.push(quote!(&#name));
            }
        }
    }
    let states = (!types.is_empty()).then(|| {
        quote! {
            fn states() -> ::std::vec::Vec<::tickover::__private::StateType> {
                ::std::vec![#(#types),*]
            }
        }
    });
    let mut outcome = quote!(#code_name(#(#passed),*).await);
    if function.role == Role::Batch {
        outcome = quote!(::tickover::__private::BatchReturned::settle(#outcome));
    }
    let attempt = quote! {
        #(#found)*
        ::core::result::Result::Ok(::std::boxed::Box::pin(async move { #outcome }))
    };
    Attempt { states, attempt }
}

/// Generates a function that returns the workflow, with its code inside. It isn't a constant: a pattern with the name of
/// a constant means that constant, everywhere in its module, and is no new variable.
pub(crate) fn workflow(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = WorkflowOptions::read(arguments)?;
    let function = Function::read(item, Role::Workflow)?;
    let Function { docs, conditions, visibility, arguments, returned, .. } = &function;
    let ident = &function.signature.ident;
    let code = code(&function);
    let code_name = code_name(&function);
    let name = name(options.name.as_ref(), &function);
    let settings = workflow_settings(&options);
    let output = returned.output();
    let (input_type, input) = arguments.first().map_or_else(
        || (quote!(()), quote!()),
        |argument| {
            let ty = &argument.ty;
            (quote!(#ty), quote!(input,))
        },
    );
    let asks = asks(&options.flow, &function, &input_type);
    let on_failure = options.on_failure.as_ref().map(|handler| {
        // The type is written out, so that the compiler shows a handler that doesn't fit beside the expected type.
        let handler_input = (!input.is_empty()).then(|| quote!(#input_type,));
        let handler = quote_spanned! {handler.span()=>
            let handler: fn(::tickover::Ctx, #handler_input ::tickover::Cause) -> _ = #handler;
        };
        quote! {
            .on_failure({
                #[allow(unused_variables, reason = "a workflow may have no input")]
                fn __on_failure(
                    ctx: ::tickover::Ctx,
                    input: #input_type,
                    cause: ::tickover::Cause,
                ) -> ::tickover::__private::BoxFuture<'static, ::tickover::Result<::core::option::Option<#output>>> {
                    #handler
                    ::tickover::__private::boxed(handler(ctx, #input cause))
                }
                __on_failure
            })
        }
    });
    let on_cancel = options.on_cancel.as_ref().map(|handler| {
        let handler_input = (!input.is_empty()).then(|| quote!(#input_type));
        let handler = quote_spanned! {handler.span()=>
            let handler: fn(::tickover::Ctx, #handler_input) -> _ = #handler;
        };
        quote! {
            .on_cancel({
                #[allow(unused_variables, reason = "a workflow may have no input")]
                fn __on_cancel(
                    ctx: ::tickover::Ctx,
                    input: #input_type,
                ) -> ::tickover::__private::BoxFuture<'static, ::tickover::Result<()>> {
                    #handler
                    ::tickover::__private::boxed(handler(ctx, #input))
                }
                __on_cancel
            })
        }
    });
    Ok(quote! {
        #(#docs)*
        #(#conditions)*
        #[must_use]
        #visibility const fn #ident() -> ::tickover::Workflow<#input_type, #output> {
            #code

            #[allow(unused_variables, reason = "a workflow may have no input")]
            fn __body(
                ctx: ::tickover::Ctx,
                input: #input_type,
            ) -> ::tickover::__private::BoxFuture<'static, ::tickover::Result<#output>> {
                ::tickover::__private::boxed(#code_name(ctx, #input))
            }

            ::tickover::Workflow::new(#name, __body) #settings #asks #on_failure #on_cancel
        }
    })
}

/// What the workflow's attribute asks of flow control, as a function of the input.
fn asks(flow: &Flow, function: &Function, input_type: &TokenStream) -> Option<TokenStream> {
    flow.first()?;
    let (keys, calls) = (flow.keys(), flow.calls());
    let input =
        function.arguments.first().map_or_else(|| quote!(_), |argument| argument.name.to_token_stream());
    Some(quote! {
        .asks({
            #[allow(unused_variables, reason = "a key may be a constant")]
            fn __asks(#input: &#input_type) -> ::tickover::__private::Asked {
                #(#keys)*
                ::tickover::__private::Asked::default() #(#calls)*
            }
            __asks
        })
    })
}

/// The user's function, under another name: the original name means the step or the workflow, also inside of the
/// function.
fn code(function: &Function) -> TokenStream {
    let Function { attributes, block, .. } = function;
    let mut signature = function.signature.clone();
    signature.ident = code_name(function);
    quote! {
        #(#attributes)*
        #[allow(clippy::unused_async, reason = "the attribute asks for an async function")]
        #signature #block
    }
}

fn code_name(function: &Function) -> Ident {
    let ident = &function.signature.ident;
    format_ident!("__{}", function.name(), span = ident.span())
}

fn name(given: Option<&LitStr>, function: &Function) -> LitStr {
    given.cloned().unwrap_or_else(|| LitStr::new(&function.name(), Span::call_site()))
}

impl Returned {
    fn output(&self) -> TokenStream {
        self.part(self.output.as_ref(), "Output")
    }

    fn error(&self) -> TokenStream {
        self.part(self.error.as_ref(), "Error")
    }

    /// A type that the source names, or a projection that the compiler resolves for an alias.
    fn part(&self, written: Option<&Type>, part: &str) -> TokenStream {
        if let Some(written) = written {
            return quote!(#written);
        }
        let (ty, part) = (&self.ty, Ident::new(part, Span::call_site()));
        let parts_of = Ident::new(self.parts_of, Span::call_site());
        quote_spanned!(ty.span()=> <#ty as ::tickover::__private::#parts_of>::#part)
    }
}

fn step_options(options: &StepOptions) -> TokenStream {
    // Said although it is the default: then the defaults of a kind don't replace it.
    let gives_no_retry = options.retry == Some(RetryPolicy::none());
    let retry = retry(&options.retry.clone().unwrap_or_else(RetryPolicy::none));
    let timeout = span(options.timeout);
    let attempt_timeout = span(options.attempt_timeout);
    let heartbeat = span(options.heartbeat);
    let schedule_to_start = span(options.schedule_to_start);
    let on_timeout = match options.on_timeout {
        OnTimeout::Retry => quote!(Retry),
        OnTimeout::Terminal => quote!(Terminal),
        OnTimeout::Cancel => quote!(Cancel),
    };
    let scope = if options.is_per_attempt { quote!(PerAttempt) } else { quote!(Global) };
    let place = match &options.place {
        Place::Inline => quote!(Inline),
        Place::Anywhere => quote!(Remote { queue: ::core::option::Option::None }),
        Place::Queue(queue) => {
            quote!(Remote { queue: ::tickover::__private::QueueName::parse(#queue).ok() })
        }
    };
    let at_most_once = options.at_most_once;
    quote! {
        ::tickover::StepOptions {
            retry: #retry,
            timeout: #timeout,
            scope: ::tickover::Scope::#scope,
            attempt_timeout: #attempt_timeout,
            heartbeat: #heartbeat,
            schedule_to_start: #schedule_to_start,
            on_timeout: ::tickover::OnTimeout::#on_timeout,
            place: ::tickover::Place::#place,
            at_most_once: #at_most_once,
            flow: ::core::default::Default::default(),
            given: ::tickover::__private::given(#gives_no_retry),
        }
    }
}

/// The code for a policy that was read from a short form.
fn retry(policy: &RetryPolicy) -> TokenStream {
    let retries = match policy.max_attempts {
        MaxAttempts::Limited(attempts) => attempts.get() - 1,
        MaxAttempts::Skip | MaxAttempts::Unlimited => 0,
    };
    let delay_ms = match &policy.delay {
        Delay::Fixed(delay) => delay.as_u64(),
        Delay::Listed(delays) => delays.first().map_or(0, |delay| delay.as_u64()),
    };
    let max_delay_ms = optional(policy.max_delay.map(Millis::as_u64).map(|ms| quote!(#ms)));
    let has_jitter = policy.jitter == Jitter::Full;
    let RetryPolicy { backoff, non_retryable, .. } = policy;
    quote! {
        ::tickover::__private::retry(
            #retries, #delay_ms, #backoff, #max_delay_ms, #has_jitter, &[#(#non_retryable),*],
        )
    }
}

fn workflow_settings(options: &WorkflowOptions) -> TokenStream {
    let set = |method: &str, millis: Option<Millis>| {
        let method = Ident::new(method, Span::call_site());
        let ms = millis.map(Millis::as_u64);
        ms.map(|ms| quote!(.#method(::tickover::__private::Millis::new(#ms))))
    };
    let execution_timeout = set("execution_timeout", options.timeout);
    let run_timeout = set("run_timeout", options.run_timeout);
    let on_failure_timeout = set("on_failure_timeout", options.on_failure_timeout);
    let on_cancel_timeout = set("on_cancel_timeout", options.on_cancel_timeout);
    let retry = options.retry.as_ref().map(|policy| quote!(.retry(#policy)));
    let codes = Some(&options.non_retryable).filter(|codes| !codes.is_empty());
    let non_retryable = codes.map(|codes| quote!(.non_retryable(&[#(#codes),*])));
    let queue = options.queue.as_ref().map(|queue| quote!(.queue(#queue)));
    let patches = Some(&options.patches).filter(|patches| !patches.is_empty());
    let patches = patches.map(|patches| quote!(.patches(&[#(#patches),*])));
    let on_drift = options.goes_on_after_drift.then(|| quote!(.on_drift(::tickover::OnDrift::GoOn)));
    quote! {
        #execution_timeout #run_timeout #retry #non_retryable #on_failure_timeout #on_cancel_timeout #queue #patches
        #on_drift
    }
}

/// The code for an optional duration.
fn span(span: Option<Millis>) -> TokenStream {
    let ms = span.map(Millis::as_u64);
    optional(ms.map(|ms| quote!(::tickover::__private::Millis::new(#ms))))
}

/// The code for any optional value.
fn optional(value: Option<TokenStream>) -> TokenStream {
    value.map_or_else(
        || quote!(::core::option::Option::None),
        |value| quote!(::core::option::Option::Some(#value)),
    )
}
