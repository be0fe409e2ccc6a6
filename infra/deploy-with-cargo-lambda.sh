#!/bin/sh
# Deploys a core and the orders worker without SAM: cargo-lambda builds the functions, and CloudFormation deploys each
# stack together with its code.
#
#   infra/deploy-with-cargo-lambda.sh BUCKET [SYSTEM] [Parameter=value…]
#
# BUCKET is your bucket for the archives of the code. It needs the AWS CLI and cargo-lambda. Parameters are those of
# core.yaml and worker.yaml; each stack gets those that it has. Run it again for every new version. The environment's
# ARCHITECTURE is arm64 or x86_64.
set -eu
bucket=${1:?the name of an S3 bucket is missing}
system=${2:-tickover}
shift
[ $# -eq 0 ] || shift
architecture=${ARCHITECTURE:-arm64}
cd "$(dirname "$0")/.."

case $architecture in
    arm64) flag=--arm64 ;;
    *) flag=--x86-64 ;;
esac
set -- "System=$system" "Architecture=$architecture" "$@"

folder=$PWD/target/functions/$architecture
# One after the other: each has only the parts of its libraries that it uses itself.
for function in schedule claim complete tick gateway worker; do
    cargo lambda build --release --locked "$flag" --package "tickover-$function" --lambda-dir "$folder"
done

# Arguments: the template's name, the stack's name, parameters. Puts the built folders in place of the sources, uploads
# them as archives, and deploys the template that names these archives.
deploy() {
    template=$1
    stack=$2
    shift 2
    sed "s|Code: ../functions/|Code: $folder/tickover-|" "infra/$template.yaml" >"$folder/$template.yaml"
    aws cloudformation package --template-file "$folder/$template.yaml" --s3-bucket "$bucket" \
        --output-template-file "$folder/$template-packaged.yaml" >/dev/null
    aws cloudformation deploy --template-file "$folder/$template-packaged.yaml" --stack-name "$stack" \
        --s3-bucket "$bucket" --no-fail-on-empty-changeset --capabilities CAPABILITY_IAM --parameter-overrides "$@"
}

deploy core "$system" "$@"
deploy worker "$system-worker-orders" "$@"
