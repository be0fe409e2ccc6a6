"""Calls AWS for tests and `cargo xtask`, with the environment's credentials and region.

Standard input: a JSON list of calls, each [service, operation, parameters] as boto3 names them. Standard output: the JSON
list of their answers. Lists that AWS divides into pages come whole. The first refusal ends it with status 1.
"""

import json
import sys

import boto3

clients = {}


def call(service, operation, parameters):
    client = clients.setdefault(service, boto3.client(service))
    if client.can_paginate(operation):
        return client.get_paginator(operation).paginate(**parameters).build_full_result()
    return getattr(client, operation)(**parameters)


json.dump([call(*each) for each in json.load(sys.stdin)], sys.stdout, default=str)
