import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Command } from 'commander'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { toCliError } from '../../src/cli/errors.ts'
import { createProgram } from '../../src/cli/program.ts'
import { openMemory } from '../../src/index.ts'
import { startProgram } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { user } from '../server/start.ts'
import { Canaries } from './canaries.ts'
import { foreignFiles } from './foreignFiles.ts'

const folder = mkdtempSync(join(realpathSync(tmpdir()), 'threadkeep-masking-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const pathOf = (name: string): string => join(folder, name)
const [file, audit, keys] = [pathOf('store.db'), pathOf('audit.jsonl'), pathOf('keys.json')]
const storeFlags = ['--store', `sqlite:${file}`]

/**
 * Effect of a command: it writes to the store, reads it, works without one, or runs as a process of its own until its
 * input ends. The test checks which of them holds.
 */
type Effect = 'writes' | 'reads' | 'no store' | 'process'
type Run = { readonly effect: Effect; readonly args?: readonly string[]; readonly canFail?: boolean }

/** A run of every command that succeeds. Its arguments and options are then replaced by secrets one by one. */
const runs: Readonly<Record<string, Run>> = {
  serve: { effect: 'process' },
  chat: { effect: 'process' },
  mcp: { effect: 'process' },
  save: { effect: 'writes', args: [pathOf('chat.jsonl')] },
  restore: { effect: 'writes' },
  'sessions list': { effect: 'reads' },
  'sessions show': { effect: 'reads', args: ['acme:ann'] },
  search: { effect: 'reads', args: ['acme', 'cat'] },
  facts: { effect: 'reads', args: ['acme:ann'] },
  summaries: { effect: 'reads', args: ['acme:ann'] },
  optimizer: { effect: 'reads' },
  replay: { effect: 'reads', args: ['acme:ann', '--profile', 'thread'] },
  remember: { effect: 'writes', args: ['acme', 'cat', 'Miso'] },
  'knowledge list': { effect: 'reads', args: ['acme'] },
  'knowledge approve': { effect: 'writes', args: ['acme', 'k1'] },
  'knowledge restore': { effect: 'writes', args: ['acme', 'k1'] },
  'knowledge reject': { effect: 'writes', args: ['acme', 'k2', '--yes'] },
  forget: { effect: 'writes', args: ['acme:gone', '--yes'] },
  context: { effect: 'reads', args: ['acme:ann'] },
  'upkeep run': { effect: 'writes', args: ['acme:ann'] },
  completion: { effect: 'no store', args: ['bash'] },
  complete: { effect: 'no store', args: ['ses'] },
  export: { effect: 'reads' },
  import: { effect: 'writes', args: [pathOf('import.jsonl')] },
  migrate: { effect: 'reads', args: [`sqlite:${file}`, `sqlite:${pathOf('copy.db')}`] },
  doctor: { effect: 'reads' },
  'audit verify': { effect: 'reads', args: ['--log', audit] },
  'audit show': { effect: 'reads', args: ['--log', audit] },
  'keys create': { effect: 'no store', args: ['--file', keys, '--scope', 'acme'] },
  'keys list': { effect: 'no store', args: ['--file', keys] },
  'keys revoke': { effect: 'no store', args: ['--file', keys, 'x'], canFail: true },
  'config print': { effect: 'no store' },
  'config check': { effect: 'no store' },
  bench: { effect: 'no store', args: [pathOf('missing.json')], canFail: true },
  lab: { effect: 'no store', args: ['--sizes', '0'], canFail: true },
}

/** Options whose value is a place that the user chooses for his own files, or the store of this test. */
const places: ReadonlySet<string> = new Set([
  'store',
  'out',
  'backup',
  'directory',
  'file',
  'log',
  'config',
  'keys',
  'allow',
])

const leavesOf = (command: Command, path: readonly string[] = []): readonly (readonly [string, Command])[] =>
  command.commands.length === 0
    ? [[path.join(' '), command]]
    : command.commands.flatMap((inner) => leavesOf(inner, [...path, inner.name()]))

/** Lists the arguments of a command with a secret in one argument or option each. */
function withSecrets(command: Command, args: readonly string[], secret: string): readonly (readonly string[])[] {
  const textsFor = (name: string): readonly string[] =>
    /^(?:key|session|scope|workspace|after|continues)$/.test(name) ? [secret, `acme:${secret}`] : [`see ${secret}`]
  const positional = command.registeredArguments.flatMap((argument, index) => {
    const given = args.findIndex((arg) => arg.startsWith('--'))
    const before = (given < 0 ? args : args.slice(0, given)).slice(0, index)
    const after = args.slice(Math.min(index + 1, given < 0 ? args.length : given))
    return before.length < index ? [] : textsFor(argument.name()).map((text) => [...before, text, ...after])
  })
  const options = command.options.flatMap((option) =>
    (option.required || option.optional) && !places.has(option.name())
      ? textsFor(option.name()).map((text) => [...args, option.long ?? '', text])
      : [],
  )
  return [...positional, ...options]
}

/** Runs a command in this process. Returns its output, and its error as the program would print it. */
async function run(args: readonly string[]): Promise<{ readonly output: string; readonly error: string }> {
  let output = ''
  const write = ((chunk: string | Uint8Array, ...rest: readonly unknown[]) => {
    output += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8')
    const callback = rest.at(-1)
    // Streams wait for the callback.
    if (typeof callback === 'function') process.nextTick(callback as () => void)
    return true
  }) as typeof process.stdout.write
  const [stdout, stderr, { exitCode }] = [process.stdout.write, process.stderr.write, process]
  process.stdout.write = write
  process.stderr.write = write
  try {
    await createProgram().configureOutput({ writeOut: write, writeErr: write }).parseAsync(args, { from: 'user' })
    return { output, error: '' }
  } catch (error) {
    return { output, error: toCliError(error).message }
  } finally {
    process.stdout.write = stdout
    process.stderr.write = stderr
    process.exitCode = exitCode
  }
}

/** Digest of all rows of the store. */
function digestStore(): string {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all()
    const rows = tables.map(({ name }) => [name, database.prepare(`SELECT * FROM "${String(name)}"`).all()])
    return JSON.stringify(rows, (_, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value,
    )
  } finally {
    database.close()
  }
}

/** Files that the commands have written, apart from those that the test has. */
const listFiles = (): readonly string[] =>
  readdirSync(folder)
    .filter((name) => !['chat.jsonl', 'import.jsonl'].includes(name))
    .map(pathOf)

describe('a secret in any argument', () => {
  const canaries = new Canaries()
  const leaves = leavesOf(createProgram())
  beforeAll(async () => {
    await using memory = await openMemory({ store: `sqlite:${file}` })
    await memory.append('acme:ann', [user('My cat is called Miso.')])
    await memory.append('acme:gone', [user('Hello.')])
    for (const key of ['cat', 'dog']) await memory.remember('acme', { category: 'domain', key, value: 'Miso' })
  })

  verifies(
    ['R-02', 'X-08'],
    'of a command that runs until its input ends › is in no file and no line of its log',
    async () => {
      const secretOf = (name: string): string => `Use ${canaries.create(name)} for it.`
      const start = (args: readonly string[], input?: string) =>
        startProgram(
          'src/cli/main.ts',
          [...args, ...storeFlags],
          { THREADKEEP_AUDIT_LOG: audit, THREADKEEP_STORE: '' },
          input,
          folder,
        )
      const serve = async () => {
        const server = start(['serve', '--port', '0', '--json', '--log', 'debug'])
        const { url } = JSON.parse(await server.waitForOutput('\n')) as { url: string }
        const secret = secretOf('serve')
        await fetch(`${url}/v1/acme:bob/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-request-id': secret, 'user-agent': secret },
          body: JSON.stringify({ model: secret, messages: [user(secret)] }),
        })
        await fetch(`${url}/api/sessions/acme:${encodeURIComponent(secret)}`)
        server.process.kill('SIGTERM')
        const { code, stdout, stderr } = await server.result
        return { code, log: stdout + stderr }
      }
      const chat = async () => {
        const { code, stderr } = await start(['chat', 'demo:me'], `${secretOf('chat')}\n/receipt\n`).result
        return { code, log: stderr }
      }
      const mcp = async () => {
        const secret = secretOf('mcp')
        const call = (id: number, method: string, params: object) =>
          `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`
        const info = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'a', version: '1' } }
        const input = [
          call(1, 'initialize', info),
          call(2, 'tools/call', { name: 'save_session', arguments: { messages: [user(secret)], title: secret } }),
          call(3, 'tools/call', { name: 'read_file', arguments: { path: `${folder}/${secret}.txt` } }),
        ]
        const { code, stderr } = await start(['mcp', '--allow', folder], input.join('')).result
        return { code, log: stderr }
      }
      const results = await Promise.all([serve(), chat(), mcp()])
      expect(results.map(({ code }) => code)).toEqual([0, 0, 0])
      expect(results.map(({ log }) => canaries.findInText(log))).toEqual([[], [], []])
      expect(existsSync(audit)).toBe(true)
      expect(canaries.findIn(file, listFiles())).toEqual([])
    },
  )

  verifies(
    ['R-02', 'X-08'],
    'of any other command › is in no file and not printed; commands that read write nothing',
    async () => {
      expect(leaves.map(([name]) => name).sort()).toEqual(Object.keys(runs).sort())
      writeFileSync(pathOf('chat.jsonl'), `${JSON.stringify(user(`Use ${canaries.create('save file')}.`))}\n`)
      writeFileSync(pathOf('import.jsonl'), foreignFiles.openai(canaries.create('import file')))
      const problems: string[] = []
      for (const [name, command] of leaves) {
        const { effect, args = [], canFail = false } = runs[name] as Run
        if (effect === 'process') continue
        const secret = canaries.create(name)
        const flags = command.options.some((option) => option.long === '--store') ? storeFlags : []
        const before = digestStore()
        const { error } = await run([...name.split(' '), ...args, ...flags])
        if (error !== '' && !canFail) problems.push(`${name} fails: ${error}`)
        for (const given of withSecrets(command, args, secret)) {
          const { output, error } = await run([...name.split(' '), ...given, ...flags])
          const found = canaries.findInText(output + error)
          if (found.length > 0)
            problems.push(`${name} ${given.join(' ')} prints ${found}: ${output}${error}`.slice(0, 300))
        }
        const hasWritten = digestStore() !== before
        if (hasWritten !== (effect === 'writes')) problems.push(`${name} ${hasWritten ? 'writes' : 'does not write'}`)
      }
      expect(problems).toEqual([])
      expect(canaries.findIn(file, listFiles())).toEqual([])
      expect(readFileSync(keys, 'utf8')).toContain('acme')
    },
  )
})
