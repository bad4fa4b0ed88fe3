import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { providerNames } from '../../src/providers/provider.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import { runCommand } from './command.ts'
import { runInProcess, runsInProcess } from './inProcess.ts'

/** Runs a command that ends at its arguments. */
const run = (args: readonly string[], input = '', env = {}) =>
  runsInProcess(args) ? runInProcess(args, env, undefined, input) : runCommand(args, input, env)

describe('threadkeep', () => {
  it('chat --help lists every provider', async () => {
    const { stdout } = await run(['chat', '--help'])
    for (const name of providerNames) expect(stdout).toMatch(new RegExp(`\\b${name}\\b`))
  })

  it('--version prints the version', async () => {
    const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { version: string }
    expect(await run(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })

  it('without arguments prints help to standard error and exits with 2', async () => {
    const { code, stdout, stderr } = await run([])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^Usage: threadkeep /)
  })

  const invalid: readonly (readonly [args: readonly string[], message: string])[] = [
    [['serv'], "unknown command 'serv' (Did you mean serve?). See threadkeep --help."],
    [['serv', '--help'], "unknown command 'serv' (Did you mean serve?). See threadkeep --help."],
    [['help', 'serv'], "unknown command 'serv' (Did you mean serve?). See threadkeep --help."],
    [['keys', 'rovoke', '--help'], "unknown command 'rovoke' (Did you mean revoke?). See threadkeep keys --help."],
    [['forget'], "missing required argument 'key'. See threadkeep forget --help."],
    [['upkeep', 'run'], 'Name a session: scope:session, --scope NAME or --all.'],
    [['upkeep', 'run', 'a:b', '--all'], 'Name only one: scope:session, --scope NAME or --all.'],
    [['completion', 'csh'], 'Unknown shell "csh". Use one of: bash, zsh, fish.'],
    [['serve', '--prot', '1'], "unknown option '--prot' (Did you mean --port?). See threadkeep serve --help."],
    [
      ['serve', 'now'],
      "too many arguments for 'serve'. Expected 0 arguments but got 1: now. See threadkeep serve --help.",
    ],
    [['serve', '--port'], "option '--port <number>' argument missing. See threadkeep serve --help."],
    [['serve', '--port', '80a'], 'port is "80a"; it must be a whole number, from 0 to 65535.'],
    [['serve', '--port', '65536'], 'port is "65536"; it must be a whole number, from 0 to 65535.'],
    [['serve', '--budget', '0'], 'budget is "0"; it must be a whole number, 1 or more.'],
    [
      ['serve', '--profile', 'nope'],
      'profile is "nope"; it must be one of ephemeral, support, summary, agent, handoff, thread.',
    ],
    [
      ['serve', '--store', 'mysql://me:secret@host'],
      'store is "mysql://…@host"; it must be ram:, sqlite:PATH, postgres://…, pglite:PATH or redis://….',
    ],
    [
      ['serve', '--upstream', 'localhost'],
      'upstream must be an http:// or https:// address without a user name and password, such as http://localhost:11434/v1.',
    ],
    [
      ['chat', 'a b'],
      'The scope of key "a b" may hold only the letters A-Z and a-z, digits and _ + - . @. Write scope or scope:session, for example acme:+15551234567.',
    ],
    [
      ['serve', '--store', 'sqlite:x.db', '--profile', 'ephemeral'],
      'Profile ephemeral is RAM-only and refuses a durable store. Omit store, or choose a durable profile such as thread.',
    ],
    [
      ['serve', '--store-key', 'env:X'],
      'A ram: store is never written to disk and takes no key. Remove the key, or use sqlite:PATH.',
    ],
    [
      ['sessions', 'list', '--store', 'sqlite:nowhere.db'],
      'No store at nowhere.db. Start one with threadkeep chat or threadkeep serve, or set its path with --store sqlite:PATH.',
    ],
    [
      ['search', 'acme', 'cat'],
      'store is "ram:"; this command needs sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE or pglite:PATH.',
    ],
    [
      ['search', 'acme', 'cat', '--kinds', 'cats'],
      'Unknown kind "cats" in --kinds. Use message, summary, fact, knowledge, item.',
    ],
    [
      ['search', 'acme', 'cat', '--from', 'soon'],
      'from is "soon"; it must be a date such as 2026-03-01 or 2026-03-01T12:00:00Z.',
    ],
    [
      ['remember', 'acme', 'hours', 'nine', '--category', 'opinion'],
      'category is "opinion"; it must be one of domain, execution_pattern, user_preference, website_knowledge, error_pattern.',
    ],
    [['remember', 'acme', 'hours', 'nine', '--confidence', '2'], 'confidence is 2; it must be a number from 0 to 1.'],
    [
      ['forget', 'acme'],
      'acme is a scope. Add --scope to delete it with all its sessions, or --text to delete entries that contain a text.',
    ],
    [['forget', 'acme:ann', '--text', 'x'], '--text and --scope need a scope. Use acme instead of acme:ann.'],
    [['forget', 'acme', '--text', 'x', '--scope'], '--message, --text and --scope cannot be combined. Choose one.'],
    [['import', 'nowhere.jsonl'], 'Cannot read nowhere.jsonl. Name the file to import.'],
    [
      ['export', '--passphrase-file', 'nowhere.txt'],
      'Cannot read the passphrase from nowhere.txt. Name a file with one line.',
    ],
    [
      ['chat', '--provider', 'nope'],
      'Unknown provider "nope". Use one of: openai, anthropic, gemini, xai, local, offline.',
    ],
    [['chat', '--provider', 'xai'], 'apiKey is missing: provider xai needs a key. Pass apiKey or set XAI_API_KEY.'],
  ]
  for (const [args, message] of invalid) {
    verifies('S-02', `invalid input prints one line and exits with 2: ${args.join(' ')}`, async () => {
      expect(await run(args)).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` })
    })
  }

  verifies('S-02', 'invalid input with --json prints the error as JSON', async () => {
    const runForError = async (...args: string[]) => {
      const { code, stdout, stderr } = await run([...args, '--json'])
      expect([code, stdout]).toEqual([2, ''])
      return JSON.parse(stderr) as unknown
    }
    expect(await runForError('serve', '--port', 'x')).toEqual({
      error: { code: 'bad-option', message: 'port is "x"; it must be a whole number, from 0 to 65535.', param: 'port' },
    })
    expect(await runForError('serve', '--nope')).toEqual({
      error: {
        code: 'usage',
        message: "unknown option '--nope' (Did you mean --open?). See threadkeep serve --help.",
        param: null,
      },
    })
  })

  it('reads settings from the environment, with precedence for flags', async () => {
    expect((await run(['serve', '--port', 'y'], '', { THREADKEEP_PORT: 'x' })).stderr).toContain('port is "y"')
    expect((await run(['serve', '--port', '0'], '', { THREADKEEP_STORE: 'mongo:a' })).stderr).toContain(
      'store is "mongo:a"',
    )
    expect((await run(['chat'], '', { THREADKEEP_PROFILE: 'nope' })).stderr).toContain('Unknown profile "nope".')
    const variables = { THREADKEEP_PORT: ' ', THREADKEEP_UPSTREAM: 'x', OPENAI_BASE_URL: 'http://localhost/v1' }
    expect((await run(['serve'], '', variables)).stderr).toContain('upstream must be')
  })
})
