//! Mistakes in steps that get several tasks at once.

use tickover::prelude::*;

#[tickover::step(remote, batch(0, within = "2s"))]
async fn empty(docs: Vec<u32>) -> Vec<Result<u32>> {
    docs.into_iter().map(Ok).collect()
}

#[tickover::step(remote, batch(1001, within = "2s"))]
async fn too_many(docs: Vec<u32>) -> Vec<Result<u32>> {
    docs.into_iter().map(Ok).collect()
}

#[tickover::step(remote, batch(-5, within = "2s"))]
async fn negative(docs: Vec<u32>) -> Vec<Result<u32>> {
    docs.into_iter().map(Ok).collect()
}

#[tickover::step(remote, batch(50, within = "21s"))]
async fn too_long(docs: Vec<u32>) -> Vec<Result<u32>> {
    docs.into_iter().map(Ok).collect()
}

#[tickover::step(remote, batch(50, within = "-1s"))]
async fn before(docs: Vec<u32>) -> Vec<Result<u32>> {
    docs.into_iter().map(Ok).collect()
}

#[tickover::step(remote, batch(within = "2s"))]
async fn unbounded(docs: Vec<u32>) -> Vec<Result<u32>> {
    docs.into_iter().map(Ok).collect()
}

#[tickover::step(remote, batch(50, until = "2s"))]
async fn unknown(docs: Vec<u32>) -> Vec<Result<u32>> {
    docs.into_iter().map(Ok).collect()
}

#[tickover::step(remote, batch)]
async fn bare(docs: Vec<u32>) -> Vec<Result<u32>> {
    docs.into_iter().map(Ok).collect()
}

#[tickover::step(batch(50))]
async fn inline(docs: Vec<u32>) -> Vec<Result<u32>> {
    docs.into_iter().map(Ok).collect()
}

#[tickover::step(remote, batch(50))]
async fn one(doc: u32) -> Vec<Result<u32>> {
    vec![Ok(doc)]
}

#[tickover::step(remote, batch(50))]
async fn two(docs: Vec<u32>, more: Vec<u32>) -> Vec<Result<u32>> {
    docs.into_iter().chain(more).map(Ok).collect()
}

#[tickover::step(remote, batch(50))]
async fn nothing(docs: Vec<u32>) {
    drop(docs);
}

#[tickover::step(remote, batch(50))]
async fn together(docs: Vec<u32>) -> Result<u32> {
    Ok(docs.into_iter().sum())
}

fn main() {}
