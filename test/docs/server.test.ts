import { execFile } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { planOf } from '../../src/server/config/plan.ts'
import { parseConfig } from '../../src/server/config/schema.ts'
import { givenIn, settle } from '../../src/server/config/settings.ts'
import { command, start } from '../cli/command.ts'
import { startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'

const shell = promisify(execFile)
const page = readFileSync(`${root}docs/server.md`, 'utf8')
const blocks = (language: string): readonly string[] =>
  [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, tongue, text]) =>
    tongue === language ? [text ?? ''] : [],
  )

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-docs-'))
/** Below node_modules, so that what is written there finds its packages; types are not taken off there, and the page has none. */
const place = `${root}node_modules/.cache/docs-test/`
afterAll(() => {
  rmSync(folder, { recursive: true })
  rmSync(place, { recursive: true, force: true })
})
const secrets = { OPENAI_API_KEY: 'sk-1', ANTHROPIC_API_KEY: 'sk-2', THREADKEEP_WEBHOOK_SECRET: 'sesame' }

/** Programs as the page names them. A server that would not end is checked instead, and a refusal is a failure. */
function programs(): string {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  const main = `${process.execPath} ${root}src/cli/main.ts`
  const shims = {
    threadkeep: `if [ "$1" = serve ]; then shift; exec ${main} config check "$@"; fi\nexec ${main} "$@"`,
    curl: 'PATH=$REAL_PATH exec curl -sS --fail-with-body -w "\\n" "$@"',
  }
  for (const [name, text] of Object.entries(shims)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  return bin
}

describe('docs/server.md', () => {
  verifies('S-02', 'has commands that do what it says, in the order in which they are told', async () => {
    await using upstream = await startUpstream()
    copyFileSync(`${root}examples/threadkeep.config.json`, join(folder, 'threadkeep.config.json'))
    const running = command(
      ['serve', '--port', '0', '--upstream', upstream.url],
      { ...secrets, THREADKEEP_STORE: '' },
      folder,
    )
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(await running.until('curl '))?.[0] ?? ''
    try {
      const script = ['set -eu', ...blocks('sh')].join('\n').replaceAll('http://127.0.0.1:4848', url)
      const env = { ...secrets, PATH: `${programs()}:${process.env.PATH}`, REAL_PATH: process.env.PATH }
      const { stdout } = await shell('sh', ['-c', script], { cwd: folder, env })
      const expected = [
        'threadkeep.config.json is in order: profile support, templates sales.',
        '"name":"returns.txt"',
        '"key":"acme:bob.phone"',
        '"saved":',
        '"status":"ok"',
        'threadkeep_',
        '"openapi":"3.1.0"',
        'is good for nothing from now on.',
      ]
      expect(stdout).toMatch(/^listen\.port +--port +8080$/m)
      expect(expected.filter((text) => !stdout.includes(text))).toEqual([])
      const asked = upstream.requests.filter(({ path }) => path.endsWith('/chat/completions')).map(({ text }) => text)
      expect(asked.at(-2)).toContain('My cat is called Miso.')
      expect(asked.filter((text) => text.includes('dogs are better'))).toHaveLength(1)
    } finally {
      running.process.kill()
      expect((await running.ended).code).toBe(0)
    }
  })

  verifies('S-03', 'has a program that runs with nothing but its base addresses changed', async () => {
    const running = command(['serve', '--port', '0'])
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(await running.until('curl '))?.[0] ?? ''
    mkdirSync(place, { recursive: true })
    const ended = []
    for (const [at, text] of blocks('ts').entries()) {
      writeFileSync(`${place}${at}.mjs`, text.replaceAll('http://127.0.0.1:4848', url))
      ended.push(await start(`node_modules/.cache/docs-test/${at}.mjs`, []).ended)
    }
    running.process.kill()
    await running.ended
    expect(ended).toEqual([{ code: 0, stdout: 'chat.completion response message\n', stderr: '' }])
  })

  for (const [at, text] of blocks('json').entries()) {
    it(`has a configuration that is in order (${at + 1})`, () => {
      const config = parseConfig(JSON.parse(text))
      expect(() => planOf(settle([givenIn(config, 'file')], undefined), secrets)).not.toThrow()
    })
  }

  it('tells every field of the configuration, and its defaults', () => {
    const told = new Set([...page.matchAll(/`([a-z]\w+)(?:\.\w+)?`/gi)].map(([, name]) => name))
    const { given } = settle([], undefined)
    const fields = [
      'storeKey',
      'secrets',
      'upkeep',
      'defaultScope',
      'webhook',
      'prices',
      ...[...given.keys()].map((field) => field.split('.')[0] ?? ''),
    ]
    expect(fields.filter((field) => !told.has(field))).toEqual([])
  })
})
