#!/bin/sh
# Deploys the same stack without SAM: CloudFormation creates everything except the functions' code, which
# `cargo lambda deploy` uploads.
#
#   infra/deploy-with-cargo-lambda.sh BUCKET [STACK] [Parameter=value…]
#
# BUCKET is your bucket for the packaged template. It needs the AWS CLI and cargo-lambda. Until a function has its code,
# its invocations fail and are retried. Run it again for every new version; code that hasn't changed is kept.
set -eu
bucket=${1:?the name of an S3 bucket is missing}
stack=${2:-tickover}
shift
[ $# -eq 0 ] || shift
architecture=${ARCHITECTURE:-arm64}
cd "$(dirname "$0")/.."

folder=target/functions/$architecture
case $architecture in
    arm64) flag=--arm64 ;;
    *) flag=--x86-64 ;;
esac
set -- "Architecture=$architecture" "$@"
functions="schedule claim complete tick gateway worker"

packages=
for function in $functions; do packages="$packages --package tickover-$function"; done
# shellcheck disable=SC2086 # One word for each package.
cargo lambda build --release --locked "$flag" --bins $packages --lambda-dir "$folder"

aws cloudformation package --template-file infra/template.yaml --s3-bucket "$bucket" \
    --output-template-file target/packaged.yaml >/dev/null
aws cloudformation deploy --template-file target/packaged.yaml --stack-name "$stack" --no-fail-on-empty-changeset \
    --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND --parameter-overrides "$@"

# Only the code changes: the stack has the role, the environment and the rest.
for function in $functions; do
    cargo lambda deploy --lambda-dir "$folder" --binary-name "tickover-$function" "$stack-$function"
done
