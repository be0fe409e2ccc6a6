"""Arguments: a system's name, and services that there aren't, of those that boto3 names. Prints what there is of the system
in the account and region, one resource in a line."""

import re
import sys

import boto3


def every(service, operation, key, **parameters):
    """All entries of a list that AWS divides into pages."""
    client = boto3.client(service)
    return client.get_paginator(operation).paginate(**parameters).build_full_result().get(key, [])


def is_of(system, name):
    """Whether a part of the name is the system's, or begins with it and a hyphen."""
    return any(part == system or part.startswith(system + "-") for part in re.split("[/:]", name))


def stacks(system):
    """The system's stacks, with their statuses."""
    found = {each["StackName"]: each["StackStatus"] for each in every("cloudformation", "describe_stacks", "Stacks")}
    return {name: found[name] for name in found if is_of(system, name) and found[name] != "DELETE_COMPLETE"}


LISTS = [
    ("queue", "sqs", "list_queues", "QueueUrls", None),
    ("table", "dynamodb", "list_tables", "TableNames", None),
    ("function", "lambda", "list_functions", "Functions", "FunctionName"),
    ("event source", "lambda", "list_event_source_mappings", "EventSourceMappings", "FunctionArn"),
    ("schedule", "scheduler", "list_schedules", "Schedules", "Name"),
    ("rule", "events", "list_rules", "Rules", "Name"),
    ("API", "apigatewayv2", "get_apis", "Items", "Name"),
    ("role", "iam", "list_roles", "Roles", "RoleName"),
    ("alarm", "cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    ("parameter", "ssm", "describe_parameters", "Parameters", "Name"),
    ("secret", "secretsmanager", "list_secrets", "SecretList", "Name"),
    ("policy", "iam", "list_policies", "Policies", "PolicyName"),
    ("log group", "logs", "describe_log_groups", "logGroups", "logGroupName"),
    ("dashboard", "cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"),
]


def left(system, lacking=()):
    """Each resource as its kind and its name."""
    yield from (("stack", name) for name in stacks(system))
    for kind, service, operation, key, name in (row for row in LISTS if row[1] not in lacking):
        only_ours = {"Scope": "Local"} if operation == "list_policies" else {}
        found = every(service, operation, key, **only_ours)
        names = [each[name] if name else each for each in found]
        yield from ((kind, each) for each in names if is_of(system, each))


if __name__ == "__main__":
    for kind, name in left(sys.argv[1], sys.argv[2:]):
        print(kind, name)
