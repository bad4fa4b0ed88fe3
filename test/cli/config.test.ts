import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import { createCliHarness, exitCodes, lines } from './cliHarness.ts'
import type { ProcessResult } from './command.ts'
import { startProgram } from './command.ts'
import { runInProcess } from './inProcess.ts'

const { folder } = createCliHarness('config')

/** Creates a working directory with these files. */
const createFolder = (files: Readonly<Record<string, string>> = {}): string => {
  const created = mkdtempSync(join(folder, 'cwd-'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(created, name), text)
  return created
}
const run = (
  cwd: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ProcessResult> => runInProcess(['config', ...args], { THREADKEEP_STORE: '', ...env }, cwd)
const printJson = async (cwd: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) => {
  const { code, stdout, stderr } = await run(cwd, ['print', '--json', ...args], env)
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as {
    file: string | null
    settings: Record<string, { value: unknown; from: string; name?: string }>
  }
}

describe('threadkeep config', () => {
  verifies('S-02', 'print › without a configuration › shows the defaults', async () => {
    const { stdout } = await run(createFolder(), ['print'])
    expect(stdout.split('\n')).toEqual([
      'listen.host            default  "127.0.0.1"',
      'listen.port            default  4848',
      'listen.allowedHosts    default  []',
      'listen.allowedOrigins  default  []',
      'store                  default  "sqlite:threadkeep.db"',
      'profile                default  "thread"',
      'budget                 default  "auto"',
      'history                default  "auto"',
      'contextWindows         default  {}',
      'tenantProfile          default  "thread"',
      'sessions               default  true',
      'profiles               default  {}',
      'templates              default  {}',
      'upstreams              default  []',
      'keys.file              default  "threadkeep-keys.json"',
      'limits.bodyBytes       default  33554432',
      'limits.fileBytes       default  20000000',
      'limits.forwardBytes    default  536870912',
      'timeouts.firstByte     default  600000',
      'timeouts.idle          default  120000',
      'timeouts.total         default  1800000',
      'retries.attempts       default  3',
      'retries.baseDelay      default  500',
      'retries.maxDelay       default  20000',
      'log.level              default  "warn"',
      'sweepInterval          default  10000',
      'shutdown.grace         default  30000',
      '',
    ])
  })

  verifies('S-02', 'print › shows the flag, variable or file of each value, and hides secrets', async () => {
    const config = {
      listen: { port: 1, host: '::1' },
      profile: 'agent',
      budget: 5,
      upstreams: [{ base: 'http://a/v1', key: 'sk-1' }],
    }
    const cwd = createFolder({ 'threadkeep.config.json': JSON.stringify(config) })
    const { file, settings } = await printJson(cwd, ['--port', '3'], {
      THREADKEEP_PORT: '2',
      THREADKEEP_PROFILE: 'support',
    })
    expect([
      file,
      settings['listen.port'],
      settings['listen.host'],
      settings.profile,
      settings.budget,
      settings.upstreams,
    ]).toEqual([
      'threadkeep.config.json',
      { value: 3, from: 'flag', name: '--port' },
      { value: '::1', from: 'file' },
      { value: 'support', from: 'environment', name: 'THREADKEEP_PROFILE' },
      { value: 5, from: 'file' },
      { value: [{ base: 'http://a/v1', key: '***' }], from: 'file' },
    ])
    expect((await run(cwd, ['print', '--port', '3'])).stdout).toContain(
      '\nlisten.port            --port                  3\n',
    )
    const over = await printJson(cwd, [], { OPENAI_BASE_URL: 'http://b/v1', OPENAI_API_KEY: 'sk-2' })
    expect(over.settings.upstreams).toEqual({
      value: [{ name: 'upstream', base: 'http://b/v1', protocol: 'openai', key: '***' }],
      from: 'environment',
      name: 'OPENAI_BASE_URL',
    })
  })

  it('finds the file by flag, by variable or by its default name', async () => {
    const cwd = createFolder({
      'a.json': '{ "budget": 1 }',
      'b.json': '{ "budget": 2 }',
      'threadkeep.config.ts': 'export default { budget: 3 as number }',
    })
    expect((await printJson(cwd, ['--config', 'a.json'], { THREADKEEP_CONFIG: 'b.json' })).settings.budget?.value).toBe(
      1,
    )
    expect((await printJson(cwd, [], { THREADKEEP_CONFIG: 'b.json' })).settings.budget?.value).toBe(2)
    expect(await printJson(cwd)).toMatchObject({
      file: 'threadkeep.config.ts',
      settings: { budget: { value: 3, from: 'file' } },
    })
  })

  verifies('S-02', 'check › with a valid configuration › reports it and creates no files', async () => {
    const config = { profile: 'small', profiles: { small: { extends: 'support' } }, templates: { sales: {} } }
    const cwd = createFolder({ 'threadkeep.config.json': JSON.stringify(config) })
    expect(await run(cwd, ['check'])).toEqual({
      code: 0,
      stdout: 'threadkeep.config.json is valid: profile small, templates sales.\n',
      stderr: '',
    })
    expect(JSON.parse((await run(cwd, ['check', '--json'])).stdout)).toEqual({
      ok: true,
      file: 'threadkeep.config.json',
      profile: 'small',
      templates: ['sales'],
      embedder: null,
      unsetVariables: [],
    })
    expect((await run(createFolder(), ['check'])).stdout).toBe(
      'The configuration is valid: profile thread, templates none.\n',
    )
    expect(readdirSync(cwd)).toEqual(['threadkeep.config.json'])
  })

  verifies(
    ['S-02', 'P-04'],
    'check › without the keys that the shipped example names › warns and succeeds',
    async () => {
      const cwd = createFolder({
        'threadkeep.config.json': readFileSync(`${root}examples/threadkeep.config.json`, 'utf8'),
      })
      const names = ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'THREADKEEP_WEBHOOK_SECRET']
      const { code, stdout, stderr } = await run(cwd, ['check'])
      expect([code, stdout]).toEqual([0, 'threadkeep.config.json is valid: profile support, templates sales.\n'])
      expect(stderr).toBe(
        lines(...names.map((name) => `warning: ${name} is not set. Set it before you start the server.`)),
      )
      expect(JSON.parse((await run(cwd, ['check', '--json'])).stdout)).toMatchObject({ unsetVariables: names })
      expect(
        await run(cwd, ['check'], Object.fromEntries(names.map((name) => [name, 'x']))).then((r) => r.stderr),
      ).toBe('')
      expect((await run(cwd, ['print'])).code).toBe(0)
      expect(await startProgram('src/cli/main.ts', ['serve'], {}, '', cwd).result).toMatchObject({
        code: 2,
        stderr: 'threadkeep: upstreams[0].keyEnv is "OPENAI_API_KEY"; it must be the name of a variable that is set.\n',
      })
    },
  )

  const invalid: readonly (readonly [text: string, message: string])[] = [
    [
      '{',
      'The configuration threadkeep.config.json cannot be used: it is not valid JSON at line 1. Check commas and quotes.',
    ],
    [
      '{ "listen": { "prot": 1 } }',
      'threadkeep.config.json: listen.prot is not a field of listen. Use one of: host, port, allowedHosts, allowedOrigins.',
    ],
    [
      '{ "profiles": { "a": { "extends": "thread", "budget": 0 } } }',
      'profiles.a.budget is 0; it must be a whole number, 1 or more.',
    ],
  ]
  for (const [text, message] of invalid) {
    verifies(
      'S-02',
      `check and serve › with an invalid configuration › print one line and exit with 2: ${text}`,
      async () => {
        const cwd = createFolder({ 'threadkeep.config.json': text })
        expect(await run(cwd, ['check'])).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` })
        expect(await startProgram('src/cli/main.ts', ['serve'], {}, '', cwd).result).toEqual({
          code: 2,
          stdout: '',
          stderr: `threadkeep: ${message}\n`,
        })
      },
    )
  }

  for (const args of [[], ['print'], ['check']]) {
    verifies('S-02', `--help prints usage, examples and exit codes: config ${args.join(' ')}`, async () => {
      const { code, stdout } = await run(folder, [...args, '--help'])
      expect(code).toBe(0)
      expect(stdout).toMatch(/^Usage: threadkeep config /)
      expect(stdout).toContain('\nExamples:\n  threadkeep config ')
      expect(stdout).toContain(exitCodes)
    })
  }
})
