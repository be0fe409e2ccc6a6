// From a request to AWS to what IAM is asked about it: actions, each with its resource and the partition keys of its items.
import { ACCOUNT, REGION } from "./template.mjs";

const TRANSACTED = { ConditionCheck: "ConditionCheckItem", Put: "PutItem", Update: "UpdateItem", Delete: "DeleteItem", Get: "GetItem" };

/** The calls of a request, by its `x-amz-target` and its body. `partitions` has the partition key of the table and its indexes. */
export function calls(target, body, partitions) {
  const [service, operation] = (target ?? "").split(".");
  const found = { DynamoDB_20120810: ofTable, AmazonSQS: ofQueue, secretsmanager: ofSecret }[service];
  if (!found) throw new Error(`no permission is known for the request ${target}`);
  return found(operation, JSON.parse(body), partitions);
}

function ofTable(operation, request, partitions) {
  const pk = partitions[""];
  const table = (name) => `arn:aws:dynamodb:${REGION}:${ACCOUNT}:table/${name}`;
  const one = (operation, name, keys) => ({ action: `dynamodb:${operation}`, resource: table(name), keys });
  const key = (item) => item[pk].S;
  switch (operation) {
    case "GetItem":
    case "UpdateItem":
    case "DeleteItem":
      return [one(operation, request.TableName, [key(request.Key)])];
    case "PutItem":
      return [one(operation, request.TableName, [key(request.Item)])];
    case "BatchGetItem":
      return Object.entries(request.RequestItems).map(([name, { Keys }]) => one(operation, name, Keys.map(key)));
    case "TransactWriteItems":
    case "TransactGetItems":
      // Neither is an action of its own: each item needs the permission of what is done with it.
      return request.TransactItems.flatMap(Object.entries).map(([kind, item]) =>
        one(TRANSACTED[kind], item.TableName, [key(item.Key ?? item.Item)]));
    case "Query": {
      const index = request.IndexName;
      const call = one(operation, request.TableName, [queried(request, partitions[index ?? ""])]);
      return [index ? { ...call, resource: `${call.resource}/index/${index}` } : call];
    }
    case "Scan": {
      const call = one(operation, request.TableName);
      return [request.IndexName ? { ...call, resource: `${call.resource}/index/${request.IndexName}` } : call];
    }
    default:
      throw new Error(`no permission is known for ${operation} of DynamoDB`);
  }
}

/** The partition key that a query names: `attribute = :value` in its condition. */
function queried({ KeyConditionExpression, ExpressionAttributeNames = {}, ExpressionAttributeValues }, attribute) {
  for (const [, name, value] of KeyConditionExpression.matchAll(/(#?\w+)\s*=\s*(:\w+)/g)) {
    if ((ExpressionAttributeNames[name] ?? name) === attribute) return ExpressionAttributeValues[value].S;
  }
  throw new Error(`no ${attribute} in ${KeyConditionExpression}`);
}

function ofQueue(operation, request) {
  // The permission for one message is that for a batch of them.
  const action = `sqs:${operation.replace(/Batch$/, "")}`;
  if (operation === "ListQueues") return [{ action, resource: "*" }];
  const name = request.QueueName ?? request.QueueUrl.split("/").pop();
  return [{ action, resource: `arn:aws:sqs:${REGION}:${ACCOUNT}:${name}` }];
}

function ofSecret(operation, { SecretId }) {
  // A name is a part of the ARN, whose last six characters are Secrets Manager's own.
  const arn = `arn:aws:secretsmanager:${REGION}:${ACCOUNT}:secret:${SecretId}-000000`;
  return [{ action: `secretsmanager:${operation}`, resource: SecretId.startsWith("arn:") ? SecretId : arn }];
}
