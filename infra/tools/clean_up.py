"""Argument: a system's name. Deletes its stacks, what they keep, and its archives, without asking. Prints each step.

It deletes all that `left_overs.py` can find of a system. So it is only for systems that a test has made.
"""

import sys
import time

import boto3
from botocore.exceptions import ClientError, WaiterError

from left_overs import every, is_of, left, stacks

# How long a stack's own change, and then its deletion, may take.
BOUND_SECONDS = 1800
LOOK_EVERY_SECONDS = 5
# A function that runs while it is deleted makes its log group once more: after so many looks without one, none comes.
LOOKS_WITHOUT = 4
# The stack in which SAM has its bucket, and its output.
SAM_STACK, SAM_BUCKET = "aws-sam-cli-managed-default", "SourceBucket"

system = sys.argv[1]
formation, tables, logs = (boto3.client(name) for name in ("cloudformation", "dynamodb", "logs"))


def say(*words):
    print("clean-up:", *words, flush=True)


def our_tables():
    return [name for name in every("dynamodb", "list_tables", "TableNames") if is_of(system, name)]


def unprotect(table):
    if tables.describe_table(TableName=table)["Table"].get("DeletionProtectionEnabled"):
        say("the table", table, "is no longer protected")
        tables.get_waiter("table_exists").wait(TableName=table)
        tables.update_table(TableName=table, DeletionProtectionEnabled=False)


def settle(stack):
    """Waits for a change that CloudFormation doesn't let a deletion interrupt."""
    end = time.monotonic() + BOUND_SECONDS
    while time.monotonic() < end:
        status = stacks(system).get(stack, "")
        if not status.endswith("_IN_PROGRESS") or status.split("_")[0] in ("CREATE", "REVIEW", "DELETE"):
            return
        time.sleep(LOOK_EVERY_SECONDS)


def delete_stack(stack):
    say("deleting the stack", stack)
    settle(stack)
    try:
        formation.delete_stack(StackName=stack)
        attempts = BOUND_SECONDS // LOOK_EVERY_SECONDS
        waiter = formation.get_waiter("stack_delete_complete")
        waiter.wait(StackName=stack, WaiterConfig={"Delay": LOOK_EVERY_SECONDS, "MaxAttempts": attempts})
    except (ClientError, WaiterError) as error:
        say(error)


def delete_archives():
    found = every("cloudformation", "describe_stacks", "Stacks")
    outputs = [output for stack in found if stack["StackName"] == SAM_STACK for output in stack.get("Outputs", [])]
    for bucket in (output["OutputValue"] for output in outputs if output["OutputKey"] == SAM_BUCKET):
        prefix = {"Bucket": bucket, "Prefix": system + "/"}
        pages = boto3.client("s3").get_paginator("list_object_versions").paginate(**prefix)
        objects = [each for page in pages for key in ("Versions", "DeleteMarkers") for each in page.get(key, [])]
        say("deleting", len(objects), "archives and templates in", bucket)
        for each in objects:
            boto3.client("s3").delete_object(Bucket=bucket, Key=each["Key"], VersionId=each["VersionId"])


# The second time is for stacks whose deletion failed, such as one that was being created with a protected table.
for _ in range(2):
    for table in our_tables():
        unprotect(table)
    # A core has a shorter name than its workers, which must be deleted before it.
    for stack in sorted(stacks(system), key=len, reverse=True):
        delete_stack(stack)
for table in our_tables():
    say("deleting the table", table)
    unprotect(table)
    tables.delete_table(TableName=table)
    tables.get_waiter("table_not_exists").wait(TableName=table, WaiterConfig={"Delay": LOOK_EVERY_SECONDS})
delete_archives()
looks = 0
while looks < LOOKS_WITHOUT:
    time.sleep(LOOK_EVERY_SECONDS if looks else 0)
    groups = [name for kind, name in left(system) if kind == "log group"]
    looks = 0 if groups else looks + 1
    for name in groups:
        say("deleting the log group", name)
        logs.delete_log_group(logGroupName=name)
