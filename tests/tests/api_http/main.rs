//! The HTTP API as a caller sees it: the router behind a real socket, over a service in virtual time.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod bad_reports;
#[cfg(test)]
mod bad_times;
#[cfg(test)]
mod batch_claims;
mod batches;
#[cfg(test)]
mod callbacks;
#[cfg(test)]
mod document;
#[cfg(test)]
mod failing;
#[cfg(test)]
mod failure_code;
#[cfg(test)]
mod flow;
#[cfg(test)]
mod incident;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod leaving;
#[cfg(test)]
mod life;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod operate;
#[cfg(test)]
mod operations;
#[cfg(test)]
mod places;
#[cfg(test)]
mod rates;
#[cfg(test)]
mod support;
#[cfg(test)]
mod transport;
