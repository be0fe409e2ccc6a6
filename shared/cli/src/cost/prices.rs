//! The prices, each with the page that publishes it and when it was read.

use clap::Args;

/// List prices of us-east-1 in US dollars, on demand and without free tiers. Pages are those of aws.amazon.com.
#[derive(Args, Debug)]
#[expect(clippy::struct_field_names, reason = "they are the names of the options")]
#[command(next_help_heading = "Prices, in US dollars: us-east-1, on demand, without free tiers")]
pub(crate) struct Prices {
    /// A million write units (/dynamodb/pricing/on-demand, September 2026)
    #[arg(long, default_value_t = 0.625, value_name = "USD")]
    pub(crate) write_price: f64,
    /// A million read units (/dynamodb/pricing/on-demand, September 2026)
    #[arg(long, default_value_t = 0.125, value_name = "USD")]
    pub(crate) read_price: f64,
    /// A GB in the table for a month (/dynamodb/pricing/on-demand, November 2025)
    #[arg(long, default_value_t = 0.25, value_name = "USD")]
    pub(crate) storage_price: f64,
    /// A GB of the table for a month of point-in-time recovery (/dynamodb/pricing/on-demand, November 2025)
    #[arg(long, default_value_t = 0.20, value_name = "USD")]
    pub(crate) recovery_price: f64,
    /// A million requests to SQS (/sqs/pricing, September 2026)
    #[arg(long, default_value_t = 0.40, value_name = "USD")]
    pub(crate) message_price: f64,
    /// A million requests to an HTTP API (/api-gateway/pricing, September 2026)
    #[arg(long, default_value_t = 1.0, value_name = "USD")]
    pub(crate) http_price: f64,
    /// A million invocations (/lambda/pricing, September 2026)
    #[arg(long, default_value_t = 0.20, value_name = "USD")]
    pub(crate) invocation_price: f64,
    /// A million GB-seconds of functions on arm64 (/lambda/pricing, September 2026)
    #[arg(long, default_value_t = 13.3334, value_name = "USD")]
    pub(crate) compute_price: f64,
    /// A million invocations of the tick by the scheduler (/eventbridge/pricing, September 2026)
    #[arg(long, default_value_t = 1.0, value_name = "USD")]
    pub(crate) scheduler_price: f64,
    /// A GB of logs that is written (/cloudwatch/pricing, June 2026)
    #[arg(long, default_value_t = 0.50, value_name = "USD")]
    pub(crate) log_price: f64,
    /// A GB of logs that is kept for a month, before its compression (/cloudwatch/pricing, June 2026)
    #[arg(long, default_value_t = 0.03, value_name = "USD")]
    pub(crate) log_storage_price: f64,
    /// A custom metric for a month (/cloudwatch/pricing, June 2026)
    #[arg(long, default_value_t = 0.30, value_name = "USD")]
    pub(crate) metric_price: f64,
    /// An alarm for a month, for each metric that it compares (/cloudwatch/pricing, June 2026)
    #[arg(long, default_value_t = 0.10, value_name = "USD")]
    pub(crate) alarm_price: f64,
    /// A dashboard for a month, after an account's first three (/cloudwatch/pricing, June 2026)
    #[arg(long, default_value_t = 3.0, value_name = "USD")]
    pub(crate) dashboard_price: f64,
}
