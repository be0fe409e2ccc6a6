// Decides on questions about policies as the judge does. Standard input: `{"policies": […], "questions": [{action, resource,
// keys}, …]}`, with the policies' documents and, for a record, its partition key. It prints the list of its decisions.
import { text } from "node:stream/consumers";
import { isAllowed } from "./judge.mjs";

const { policies, questions } = JSON.parse(await text(process.stdin));
const named = policies.map((policy, place) => ({ name: `policy ${place}`, policy }));
const decisions = [];
for (const question of questions) decisions.push(await isAllowed(named, question));
console.log(JSON.stringify(decisions));
