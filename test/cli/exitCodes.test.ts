import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'
import { openMemory } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness } from './cliHarness.ts'
import { listCommands } from './commandTree.ts'

const { folder, run } = createCliHarness('exit-codes')
const leaves = listCommands(createProgram()).filter(({ command }) => command.commands.length === 0)

/** Arguments that succeed and that fail, by command; a failure is not an error of usage. */
type Case = {
  readonly success: readonly string[]
  readonly failure?: readonly string[]
  readonly input?: string
}

const damaged = ['--store', 'sqlite:damaged.db']
const cases: Readonly<Record<string, Case>> = {
  // Runs until a signal; serve.test.ts and interrupt.test.ts have the others.
  serve: { success: ['--help'], failure: ['--port', '0', ...damaged] },
  chat: { success: ['--store', 'ram:'], input: 'Hello\n', failure: [...damaged] },
  mcp: { success: ['--store', 'ram:'], failure: [...damaged] },
  context: { success: ['acme:ann'], failure: ['acme:ann', '--budget', '1'] },
  'sessions list': { success: [], failure: [...damaged] },
  'sessions show': { success: ['acme:ann'], failure: ['acme:ann', ...damaged] },
  search: { success: ['acme', 'cat'], failure: ['acme', 'cat', ...damaged] },
  facts: { success: ['acme:ann'], failure: ['acme:ann', ...damaged] },
  summaries: { success: ['acme:ann'], failure: ['acme:ann', ...damaged] },
  replay: { success: ['acme:ann', '--profile', 'summary'], failure: ['acme:ann', '--profile', 'summary', ...damaged] },
  optimizer: { success: [], failure: [...damaged] },
  remember: { success: ['acme', 'hours', 'nine'], failure: ['acme', 'hours', 'nine', ...damaged] },
  'knowledge list': { success: ['acme'], failure: ['acme', ...damaged] },
  'knowledge approve': { success: ['zoo', 'k1'], failure: ['zoo', 'k1', ...damaged] },
  'knowledge restore': { success: ['zoo', 'k1'], failure: ['zoo', 'k1', ...damaged] },
  'knowledge reject': { success: ['zoo', 'k1', '--dry-run'], failure: ['zoo', 'k1', ...damaged] },
  forget: { success: ['acme:ann', '--dry-run'], failure: ['acme:ann', '--yes', ...damaged] },
  'upkeep run': { success: ['acme:ann'], failure: ['acme:ann', ...damaged] },
  save: { success: ['chat.txt'], failure: ['chat.txt', ...damaged] },
  restore: { success: [], failure: [...damaged] },
  export: { success: ['--out', 'out.jsonl'], failure: [...damaged] },
  migrate: {
    success: ['sqlite:threadkeep.db', 'sqlite:copy.db'],
    failure: ['sqlite:threadkeep.db', 'sqlite:damaged.db'],
  },
  import: { success: ['talk.jsonl'], failure: ['broken.jsonl'] },
  doctor: { success: [], failure: [...damaged] },
  'keys create': { success: ['--scope', 'acme'], failure: ['--scope', 'acme', '--file', 'broken.jsonl'] },
  'keys list': { success: [], failure: ['--file', 'broken.jsonl'] },
  'keys revoke': { success: ['ID', '--yes'], failure: ['abcdefgh', '--yes', '--file', 'broken.jsonl'] },
  'config print': { success: [] },
  'config check': { success: [] },
  'audit verify': { success: ['--log', 'audit.jsonl'], failure: ['--log', 'broken.jsonl'] },
  'audit show': { success: ['--log', 'audit.jsonl'], failure: ['--log', 'broken.jsonl'] },
  completion: { success: ['bash'] },
  complete: { success: ['--', 'ses'] },
  bench: { success: ['--limit', '1', '--metric', 'update', '--system', 'window'] },
  lab: { success: ['--sizes', '100', '--types', 'chat', '--compression', 'none', '--algorithm', 'window'] },
}

let keyId = ''

beforeAll(async () => {
  await using memory = await openMemory({ store: `sqlite:${join(folder, 'threadkeep.db')}`, upkeep: false })
  await memory.append('acme:ann', [
    { role: 'user', content: 'My cat is called Miso.' },
    { role: 'assistant', content: 'Noted.' },
  ])
  await memory.remember('zoo', { category: 'domain', key: 'walrus', value: 'Bruno', by: 'assistant' })
  writeFileSync(join(folder, 'damaged.db'), 'not a database '.repeat(1_000))
  writeFileSync(join(folder, 'chat.txt'), 'User: Fix the login test.\nAssistant: Done.\n')
  writeFileSync(join(folder, 'talk.jsonl'), '{"role":"user","content":"Hello"}\n')
  writeFileSync(join(folder, 'broken.jsonl'), '{"bundle":"threadkeep","format":1}\n{"x":1}\n')
  writeFileSync(join(folder, 'audit.jsonl'), '')
  keyId = (JSON.parse((await run(['keys', 'create', '--scope', 'x', '--json'])).stdout) as { id: string }).id
  // `restore` needs a saved session.
  expect((await run(['save', 'chat.txt'])).code).toBe(0)
})

describe('exit codes', () => {
  it('are listed for every command', () =>
    expect(Object.keys(cases).sort()).toEqual(leaves.map(({ path }) => path).sort()))

  for (const { path } of leaves) {
    const { success = [], failure, input = '' } = cases[path] ?? {}
    const words = path.split(' ')
    verifies('S-02', `${path} › success › is 0`, async () => {
      const args = success.map((word) => (word === 'ID' ? keyId : word))
      const { code, stderr } = await run([...words, ...args], input)
      expect([code, stderr.replaceAll(/^threadkeep: MCP server ready.*\n/g, '')]).toEqual([
        0,
        path === 'restore' ? expect.stringContaining('New session') : '',
      ])
    })
    if (failure !== undefined)
      verifies('S-02', `${path} › failure › is 1, with one line that says why`, async () => {
        const { code, stdout, stderr } = await run([...words, ...failure], input)
        expect(code, stderr + stdout).toBe(1)
        expect(stderr + stdout).toMatch(/\S/)
        expect(stderr).not.toMatch(/\n\s+at /)
      })
    verifies('S-02', `${path} › unknown option › is 2, and names the help of the command`, async () => {
      const { code, stdout, stderr } = await run([...words, '--nonsense-option'])
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toMatch(
        new RegExp(`^threadkeep: (?:unknown|required) option .*See threadkeep ${path} --help\\.\\n$`),
      )
    })
  }

  for (const { path, command } of listCommands(createProgram()).filter(({ command }) => command.commands.length > 0)) {
    const words = path.split(' ').filter((word) => word !== '')
    verifies('S-02', `threadkeep ${path} without a subcommand › is 2, with help on standard error`, async () => {
      const { code, stdout, stderr } = await run(words)
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toMatch(/^Usage: threadkeep /)
      expect(command.commands.length).toBeGreaterThan(0)
    })
  }
})
