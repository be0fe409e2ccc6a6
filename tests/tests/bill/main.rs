//! A month's bill: `tickover cost` against the templates, and against what the guide's order asks of AWS.

#[cfg(test)]
mod guide;
#[cfg(test)]
mod order;
#[cfg(test)]
mod shop;
#[cfg(test)]
mod templates;
#[cfg(test)]
mod visibility;
