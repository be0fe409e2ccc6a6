//! The Lambda functions as AWS runs them: the real binaries, invoked with events as AWS services send them, against
//! tables and queues over the network. Also a worker outside of Lambda that uses the same ones.

#[cfg(test)]
mod callbacks;
#[cfg(test)]
mod cold_start;
#[cfg(test)]
mod dead_letters;
#[cfg(test)]
mod deployment;
#[cfg(test)]
mod direct;
#[cfg(test)]
mod gateway;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod newer_records;
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod polling;
#[cfg(test)]
mod seldom;
#[cfg(test)]
mod tick;
#[cfg(test)]
mod timers;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod worker;
