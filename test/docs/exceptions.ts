/** Commands of the documentation that its tests do not run, with the reason. Add a command only if no test can run it. */
export const commandsNotRun: Readonly<Record<string, string>> = {
  'npm install threadkeep': 'test/package installs the packed package',
  'npm ci': 'the tests run in a checkout that is installed',
  'npm test': 'runs these tests',
  'npm run check': 'runs these tests',
  'npm run docs': 'test/docs/reference.test.ts compares its result',
  'npm run campaign': 'runs for hours; test/campaign runs a slice',
  'npm --prefix bench ci': 'installs other products',
  'npm run bench -- context': 'runs for minutes; test/bench covers its parts',
  'npm run bench -- recall --data DIR': 'needs data that is not part of the repository',
  'npm run bench -- peers --data DIR': 'needs data that is not part of the repository',
  'npm run bench -- fit --data DIR': 'needs data that is not part of the repository',
  'npm run bench -- prefix --data DIR': 'needs data that is not part of the repository',
  'npm run bench -- future --data DIR': 'needs data that is not part of the repository',
  'npm run bench -- upkeep --data DIR': 'needs data that is not part of the repository',
  'npm run bench -- summaries --data DIR': 'needs data that is not part of the repository',
  'npm run bench -- handoff --data DIR': 'needs data that is not part of the repository',
  'npm run bench -- mcp': 'runs for minutes; test/bench covers its parts',
  'npm run bench -- proxy': 'runs for minutes; test/bench covers its parts',
  'npm run bench -- store': 'runs for minutes; test/bench covers its parts',
  'threadkeep bench': 'runs for a minute; test/cli/bench.test.ts runs it on less',
  'threadkeep lab --out report.html': 'runs for half a minute; test/cli/lab.test.ts runs it on less',
  'claude mcp add threadkeep -- npx -y threadkeep mcp --store sqlite:~/threadkeep.db --allow .':
    'another product; test/mcp/docs.test.ts starts the same command',
  'ollama pull nomic-embed-text': 'another product',
  'docker build --tag threadkeep .': 'needs a registry of images',
  'docker run --volume threadkeep:/data threadkeep keys create --scope acme': 'needs a registry of images',
  'docker run --detach --publish 127.0.0.1:4848:4848 --volume threadkeep:/data --env OPENAI_API_KEY threadkeep serve --upstream https://api.openai.com/v1':
    'needs a registry of images',
  'sudo npm install --global threadkeep': 'changes the machine',
  'sudo cp deploy/threadkeep.service /etc/systemd/system/': 'changes the machine',
  'sudo systemctl enable --now threadkeep': 'changes the machine',
  'journalctl --unit threadkeep': 'needs the service',
}

/** Blocks in languages without an interpreter here, by page and language, with the test that covers them or a reason. */
export const blocksNotRun: Readonly<Record<string, string>> = {
  'README.md text': 'captured screens of a terminal',
  'docs/mcp.md json': 'configurations of MCP clients; test/mcp/docs.test.ts starts each',
  'docs/mcp.md toml': 'test/mcp/docs.test.ts starts it',
  'docs/mcp.md yaml': 'test/mcp/docs.test.ts starts it',
  'docs/evaluation.md json': 'a dataset; test/docs/shell.test.ts measures it',
  'docs/guides/operator.md caddyfile': 'needs Caddy',
  'docs/guides/operator.md nginx': 'needs nginx',
}
