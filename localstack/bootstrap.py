#!/usr/bin/env python3
"""Creates the table and the queues of infra/core.yaml, and queues of infra/queue.yaml, in an emulator, and no other
resources.

A worker on this machine, the command line and experiments need only these. `sam deploy` creates the functions, the
schedule and the HTTP interface. The names start with "tickover-local", so they differ from those of a deployed system
called "tickover".

The resources are read from the templates, so they are not listed a second time. Existing resources are not changed, so
the program may run several times. It needs boto3, which LocalStack's container and the emulator without Docker have.

LocalStack doesn't start it as a program. It calls `exec(code, {})`: there is no `__file__`, and `__name__` is not
"__main__". An exception makes LocalStack report a failure; `sys.exit` would end LocalStack's own thread.
"""

import os
import re
from pathlib import Path

import boto3
import yaml

PREFIX = os.environ.get("TICKOVER_LOCAL_NAME", "tickover-local")
# The queues of tasks, as in localstack.env.
QUEUES = ["default", "orders"]
# The templates' folder in LocalStack's container, set by compose.yaml. A program finds it in the repository.
TEMPLATES = os.environ.get("TICKOVER_TEMPLATES")


class Loader(yaml.SafeLoader):
    """YAML whose tags are CloudFormation's functions: `!Sub x` is {"Sub": x}."""


def function(loader, tag, node):
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    return {tag: value}


Loader.add_multi_constructor("!", function)


def text(value, names):
    """A text, plain or as `!Sub`, with the names replaced by their values."""
    value = value["Sub"] if isinstance(value, dict) else value
    return re.sub(r"\$\{([^}]+)\}", lambda found: names[found[1]], value)


def make_table(dynamodb, properties):
    try:
        dynamodb.create_table(
            TableName=PREFIX,
            BillingMode=properties["BillingMode"],
            AttributeDefinitions=properties["AttributeDefinitions"],
            KeySchema=properties["KeySchema"],
            GlobalSecondaryIndexes=[
                {name: index[name] for name in ("IndexName", "KeySchema", "Projection")}
                for index in properties["GlobalSecondaryIndexes"]
            ],
        )
        print("made table", PREFIX)
    except dynamodb.exceptions.ResourceInUseException:
        pass
    dynamodb.get_waiter("table_exists").wait(TableName=PREFIX, WaiterConfig={"Delay": 1})
    expiry = dynamodb.describe_time_to_live(TableName=PREFIX)["TimeToLiveDescription"]
    if expiry["TimeToLiveStatus"] not in ("ENABLED", "ENABLING"):
        dynamodb.update_time_to_live(
            TableName=PREFIX, TimeToLiveSpecification=properties["TimeToLiveSpecification"]
        )


def make_queue(sqs, name, attributes):
    try:
        return sqs.get_queue_url(QueueName=name)["QueueUrl"]
    except sqs.exceptions.QueueDoesNotExist:
        url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        print("made queue", name)
        return url


def dead_letters(sqs, target, urls, names):
    """The URL of the queue that a redrive policy refers to, by its logical id or by its ARN."""
    if "GetAtt" in target:
        return urls[target["GetAtt"].removesuffix(".Arn")]
    name = text({"Sub": target["Sub"].rsplit(":", 1)[1]}, names)
    return sqs.get_queue_url(QueueName=name)["QueueUrl"]


def make_queues(sqs, template, names):
    """Creates the queues of a template. Dead-letter queues come first: the other queues refer to them. Without class
    queues, which programs don't look for if they have a list of queues."""
    found = template["Resources"].items()
    made = [(key, value) for key, value in found if value.get("Condition") != "HasPriorities"]
    queues = [(key, value["Properties"]) for key, value in made if value["Type"] == "AWS::SQS::Queue"]
    urls = {}
    for logical_id, properties in sorted(queues, key=lambda queue: "RedrivePolicy" in queue[1]):
        attributes = {
            name: str(properties[name])
            for name in ("VisibilityTimeout", "MessageRetentionPeriod")
            if name in properties
        }
        policy = properties.get("RedrivePolicy")
        if policy:
            dead = dead_letters(sqs, policy["deadLetterTargetArn"], urls, names)
            found = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]
            attributes["RedrivePolicy"] = '{"deadLetterTargetArn":"%s","maxReceiveCount":"%d"}' % (
                found["QueueArn"],
                policy["maxReceiveCount"],
            )
        urls[logical_id] = make_queue(sqs, text(properties["QueueName"], names), attributes)


def template(name):
    if TEMPLATES:
        folder = Path(TEMPLATES)
    elif "__file__" in globals():
        folder = Path(__file__).resolve().parent.parent / "infra"
    else:
        raise RuntimeError("bootstrap: TICKOVER_TEMPLATES must name the templates' folder")
    return yaml.load((folder / name).read_text(), Loader)


def main():
    settings = {
        "endpoint_url": os.environ.get("AWS_ENDPOINT_URL", "http://127.0.0.1:4566"),
        "region_name": os.environ.get("AWS_DEFAULT_REGION", "us-east-1"),
        # An emulator accepts any credentials. Without these, boto3 would search for real ones.
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
    }
    core, of_tasks = template("core.yaml"), template("queue.yaml")
    make_table(boto3.client("dynamodb", **settings), core["Resources"]["Table"]["Properties"])
    sqs = boto3.client("sqs", **settings)
    make_queues(sqs, core, {"System": PREFIX})
    for queue in QUEUES:
        make_queues(sqs, of_tasks, {"System": PREFIX, "Queue": queue})
    print("bootstrap: ready")


# This file is never imported, so it doesn't check `__name__`.
main()
