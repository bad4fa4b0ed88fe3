import { execFile } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/server/config/schema.ts'
import { resolveServerConfig } from '../../src/server/config/serverConfig.ts'
import { mergeSettings, toConfigSource } from '../../src/server/config/settings.ts'
import { startCommand, startProgram } from '../cli/command.ts'
import { startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'

const shell = promisify(execFile)
const page = readFileSync(`${root}docs/server.md`, 'utf8')
const blocks = (language: string): readonly string[] =>
  [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, blockLanguage, text]) =>
    blockLanguage === language ? [text ?? ''] : [],
  )

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-docs-'))
/**
 * Folder below node_modules, so that programs of the page resolve packages. Node does not strip types there; the page
 * has none.
 */
const programFolder = `${root}node_modules/.cache/docs-test/`
afterAll(() => {
  rmSync(folder, { recursive: true })
  rmSync(programFolder, { recursive: true, force: true })
})
const secrets = { OPENAI_API_KEY: 'sk-1', ANTHROPIC_API_KEY: 'sk-2', THREADKEEP_WEBHOOK_SECRET: 'sesame' }

/**
 * Creates the programs used on the page. `threadkeep serve` only checks the configuration, and curl fails on an HTTP
 * error.
 */
function createPrograms(): string {
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
  verifies('S-02', 'shell commands › run in order › produce the documented results', async () => {
    await using upstream = await startUpstream()
    copyFileSync(`${root}examples/threadkeep.config.json`, join(folder, 'threadkeep.config.json'))
    const running = startCommand(
      ['serve', '--port', '0', '--upstream', upstream.url],
      { ...secrets, THREADKEEP_STORE: '' },
      folder,
    )
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(await running.waitForOutput('curl '))?.[0] ?? ''
    try {
      const script = ['set -eu', ...blocks('sh')].join('\n').replaceAll('http://127.0.0.1:4848', url)
      const env = { ...secrets, PATH: `${createPrograms()}:${process.env.PATH}`, REAL_PATH: process.env.PATH }
      const { stdout } = await shell('sh', ['-c', script], { cwd: folder, env })
      const expected = [
        'threadkeep.config.json is valid: profile support, templates sales.',
        '"name":"returns.txt"',
        '"key":"acme:bob.phone"',
        '"saved":',
        '"status":"ok"',
        'threadkeep_',
        '"openapi":"3.1.0"',
        'Revoked key ',
      ]
      expect(stdout).toMatch(/^listen\.port +--port +8080$/m)
      expect(expected.filter((text) => !stdout.includes(text))).toEqual([])
      const requests = upstream.requests
        .filter(({ path }) => path.endsWith('/chat/completions'))
        .map(({ text }) => text)
      expect(requests.at(-2)).toContain('My cat is called Miso.')
      expect(requests.filter((text) => text.includes('dogs are better'))).toHaveLength(1)
    } finally {
      running.process.kill()
      expect((await running.result).code).toBe(0)
    }
  })

  verifies('S-03', 'program › with its base URLs replaced › runs', async () => {
    const running = startCommand(['serve', '--port', '0'])
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(await running.waitForOutput('curl '))?.[0] ?? ''
    mkdirSync(programFolder, { recursive: true })
    const results = []
    for (const [index, text] of blocks('ts').entries()) {
      writeFileSync(`${programFolder}${index}.mjs`, text.replaceAll('http://127.0.0.1:4848', url))
      results.push(await startProgram(`node_modules/.cache/docs-test/${index}.mjs`, []).result)
    }
    running.process.kill()
    await running.result
    expect(results).toEqual([{ code: 0, stdout: 'chat.completion response message\n', stderr: '' }])
  })

  for (const [index, text] of blocks('json').entries()) {
    it(`configuration ${index + 1} is valid`, () => {
      const config = parseConfig(JSON.parse(text))
      expect(() =>
        resolveServerConfig(mergeSettings([toConfigSource(config, 'file')], undefined), secrets),
      ).not.toThrow()
    })
  }

  it('documents every field of the configuration', () => {
    const documented = new Set([...page.matchAll(/`([a-z]\w+)(?:\.\w+)?`/gi)].map(([, name]) => name))
    const { values } = mergeSettings([], undefined)
    const fields = [
      'storeKey',
      'secrets',
      'upkeep',
      'defaultScope',
      'webhook',
      'prices',
      ...[...values.keys()].map((field) => field.split('.')[0] ?? ''),
    ]
    expect(fields.filter((field) => !documented.has(field))).toEqual([])
  })
})
