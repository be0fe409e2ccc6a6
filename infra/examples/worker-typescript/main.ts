import { work } from "./worker.js";

await work(process.argv[2] ?? "default", {
  welcome: async (task) => ({ sent: task.input.to }),
});
