import { once } from 'node:events'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join, relative } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type ProcessResult, startProgram } from '../cli/command.ts'
import { installPackage } from '../package/packed.ts'
import { startServer } from '../server/start.ts'
import { root } from '../shape/source.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

const createPath = createTempPaths()
/** A project of a user, into which the examples are copied. */
const project = createPath('')
const reply = 'From what you told me: "My cat is called Miso."'

/** Runs a program in the project. */
const runCopy = (file: string, env: Readonly<Record<string, string>> = {}): Promise<ProcessResult> =>
  startProgram(relative(root, join(project, file)), [], env, '', project).result

/** Programs that need no server, and what their output contains. */
const programs: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  'chat.ts': [`> What is my cat called?\n${reply}\n`, / of 2000 tokens\)/],
  'durable.ts': ['Messages from earlier runs: 0\nFound in acme:ann: My cat is called Miso.\nDeleted: m1 of acme:bob\n'],
  'upkeep.ts': [
    /^Summary 1 covers 6 messages\. Context: \d+ of 3000 tokens\.$/m,
    'Preferences: {"theme":"light"}\nFacts: bees sleep\nSources: https://example.com/bees\n',
    'Stored: I prefer dark mode. My password is ⟨secret:…⟩.\n',
  ],
  'support-bot.ts': [
    /\[acme:\+15551234567\] What is my order number\?\n.*"Hello, my order number is 12345\."/,
    /\[acme:customer@example\.com\].*\n.*30 days for a full refund/,
    /\[globex:customer@example\.com\].*\n.*Returns are not possible/,
    /\[acme:web_session_abc123\].*\n.*12345/,
    'Ended: true\n',
  ],
  'session-end.ts': ['acme (ended): My lamp arrived. I wish it had a dimmer.\nacme (expired): I love the new shade.\n'],
  'mcp-client.ts': ['Rename the function parse in src/parse.ts to parseDate.'],
}

/** Clients of a running server, and what their output contains. */
const clients: Readonly<Record<string, readonly string[]>> = {
  'openai-client.ts': [reply],
  'anthropic-client.ts': [reply],
  'langchain.ts': [reply],
  'ai-sdk.ts': [`> What is my cat called?\n${reply}\n`],
}

function expectOutput({ code, stdout, stderr }: ProcessResult, texts: readonly (string | RegExp)[]): void {
  expect(code, stderr).toBe(0)
  for (const text of texts)
    if (typeof text === 'string') expect(stdout).toContain(text)
    else expect(stdout).toMatch(text)
}

describe('examples, copied into a project that installed the package', () => {
  beforeAll(async () => {
    // The configuration needs the keys of its model servers.
    cpSync(join(root, 'examples'), project, { recursive: true, filter: (path) => !path.endsWith('.config.json') })
    writeFileSync(join(project, 'package.json'), '{ "type": "module", "private": true }')
    await installPackage(project)
  })

  it('are all tested, start with how to run them, and need no file of this repository', () => {
    const files = readdirSync(join(root, 'examples'), { recursive: true }).map(String)
    const runnable = files.filter((file) => /\.(?:ts|js|sh)$/.test(file))
    const tested = [...Object.keys(programs), ...Object.keys(clients)]
    expect(runnable.toSorted()).toEqual([...tested, 'browser/page.js', 'browser/serve.ts', 'coding-agent.sh'].sort())
    for (const file of [...runnable, 'browser/index.html']) {
      const text = readFileSync(join(root, 'examples', file), 'utf8')
      expect(text.split('\n').slice(0, 4).join('\n'), file).toMatch(/Run(?: it twice)?: .*\n.*(?:Needs|Loaded)/)
      expect(text, file).not.toMatch(/from '\.\.\//)
    }
    const readme = readFileSync(join(root, 'examples/README.md'), 'utf8')
    for (const name of readdirSync(join(root, 'examples')))
      if (name !== 'README.md') expect(readme).toContain(`[${name}](${name})`)
  })

  it.each(Object.entries(programs))('%s › without a key › prints what it should', async (file, texts) =>
    expectOutput(await runCopy(file), texts),
  )

  it('durable.ts › run again › remembers and has deleted the secret', async () => {
    expectOutput(await runCopy('durable.ts'), ['Messages from earlier runs: 1\n', 'Deleted: nothing\n'])
    expect(readFileSync(join(project, 'example.db')).includes('4711')).toBe(false)
  })

  it.each(Object.entries(clients))('%s › with a local server › answers from memory', async (file, texts) => {
    await using server = await startServer()
    expectOutput(await runCopy(file, { THREADKEEP_URL: server.url }), texts)
    expect(server.faults).toEqual([])
  })

  it('browser › served on the local machine › loads only its own files', async () => {
    const serving = startProgram(
      relative(root, join(project, 'browser/serve.ts')),
      [],
      { PORT: '0' },
      undefined,
      project,
    )
    try {
      const base = /http:\S+/.exec(await serving.waitForOutput('Open '))?.[0] ?? ''
      const page = await (await fetch(base)).text()
      expect(page).not.toMatch(/https?:/)
      const loaded = await loadModules([new URL('page.js', base).href, new URL('threadkeep/browser.js', base).href])
      expect(loaded.length).toBeGreaterThan(20)
      for (const path of [
        '../package.json',
        '%2e%2e/package.json',
        '..%2fpackage.json',
        'threadkeep/../../package.json',
      ])
        expect((await fetch(`${base}${path}`)).status).toBe(404)
    } finally {
      serving.process.kill()
      await serving.result
    }
  })

  it('browser › with a message › shows the context', async () => {
    writeFileSync(join(project, 'pageTest.js'), pageTest)
    expectOutput(await runCopy('pageTest.js'), ['"pre":"User: My cat is called Miso."', 'of 500 tokens'])
  })

  it('coding-agent.sh › with an agent › starts the server and passes its address', async () => {
    const port = await findFreePort()
    const commands = join(project, 'commands')
    mkdirSync(commands)
    writeFileSync(join(commands, 'npx'), npxCommand, { mode: 0o755 })
    writeFileSync(join(commands, 'agent.mjs'), agentProgram)
    const env = {
      PATH: [commands, process.execPath.replace(/\/[^/]*$/, ''), process.env.PATH].join(':'),
      PORT: port,
    }
    const script = `import { spawnSync } from 'node:child_process'
      const { status, stdout, stderr } = spawnSync('sh', ['coding-agent.sh', 'What is in here?'], { encoding: 'utf8' })
      process.stdout.write(stdout)
      process.stderr.write(stderr)
      process.exitCode = status`
    writeFileSync(join(project, 'agentTest.js'), script)
    expectOutput(await runCopy('agentTest.js', env), ['asked with key any: What is in here?\n', /\nanswer: \S+/])
    await expect(fetch(`http://127.0.0.1:${port}/readyz`)).rejects.toThrow()
  })
})

async function findFreePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return String(port)
}

/** Loads modules with everything they import, like a browser. Returns their addresses. */
async function loadModules(start: readonly string[]): Promise<readonly string[]> {
  const loaded = new Set<string>()
  for (const queue = [...start]; queue.length > 0; ) {
    const url = queue.pop() as string
    if (loaded.has(url)) continue
    loaded.add(url)
    const response = await fetch(url)
    expect([url, response.status, response.headers.get('content-type')]).toEqual([
      url,
      200,
      'text/javascript; charset=utf-8',
    ])
    const code = await response.text()
    const imports = [...code.matchAll(/^(?:import|export)\b[^'"]*?from\s*["']([^"']+)["']/gm)].map(
      ([, name = '']) => name,
    )
    for (const name of imports) {
      if (name.startsWith('.')) queue.push(new URL(name, url).href)
      else expect(name).toBe('threadkeep/browser')
    }
  }
  return [...loaded]
}

/** Runs the script of the page with as much of a document as it uses. */
const pageTest = `
  let submit
  const shown = {}
  const form = { addEventListener: (_, listener) => { submit = listener }, reset() {} }
  globalThis.document = {
    querySelector: (name) => (name === 'form' ? form : { replaceChildren: (text) => { shown[name] = text } }),
  }
  globalThis.FormData = class { get() { return 'My cat is called Miso.' } }
  await import('./browser/page.js')
  await submit({ preventDefault() {} })
  console.log(JSON.stringify(shown))`

/** Stands in for npx: starts the installed package, and a small agent instead of the real one. */
const npxCommand = `#!/bin/sh
if [ "$1" = threadkeep ]; then shift; exec node node_modules/threadkeep/dist/cli/main.js "$@"; fi
[ "$1 $2 $3" = '--yes @anthropic-ai/claude-code --print' ] || exit 2
exec node commands/agent.mjs "$4"
`

const agentProgram = `
  import Anthropic from '@anthropic-ai/sdk'
  const client = new Anthropic()
  console.log('asked with key ' + client.apiKey + ': ' + process.argv[2])
  const reply = await client.messages.create({
    model: 'any', max_tokens: 100, messages: [{ role: 'user', content: process.argv[2] }],
  })
  console.log('answer: ' + reply.content.map(({ text }) => text).join(''))`
