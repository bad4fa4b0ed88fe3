import { execFile } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { AuditLog } from '../../src/mcp/files/audit.ts'
import { compileCacheEnv, startCommand } from '../cli/command.ts'
import { runInProcess } from '../cli/inProcess.ts'
import { startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import { commandsNotRun } from './exceptions.ts'
import { blocksOf, generatedPages, pageAt, pages } from './pages.ts'

const execute = promisify(execFile)
const secrets = { OPENAI_API_KEY: 'sk-1', ANTHROPIC_API_KEY: 'sk-2', THREADKEEP_WEBHOOK_SECRET: 'sesame' }
const serverUrl = 'http://127.0.0.1:4848'
const folder = mkdtempSync(join(tmpdir(), 'threadkeep-shell-'))
const skippedFile = join(folder, 'skipped')
writeFileSync(skippedFile, '')
afterAll(() => rmSync(folder, { recursive: true }))

const commandSocket = join(folder, 'commands')
let previousCommand: Promise<unknown> = Promise.resolve()
/**
 * Runs the commands of the scripts in this process, one after the other: starting a process takes longer than most
 * commands. A request names a folder with the arguments, the environment and the input; the exit code is the response.
 */
const commandServer = createServer(async (request, response) => {
  const call = await text(request)
  const readList = (name: string): readonly string[] => readFileSync(join(call, name), 'utf8').split('\0').slice(0, -1)
  const env = Object.fromEntries(
    readList('env').map((line) => [line.split('=')[0] ?? '', line.replace(/^[^=]*=/s, '')]),
  )
  const run = () =>
    runInProcess(readList('args'), { THREADKEEP_STORE: '', ...env }, env.PWD, readFileSync(join(call, 'input'), 'utf8'))
  const running = previousCommand.then(run)
  previousCommand = running.catch(() => undefined)
  const { code, stdout, stderr } = await running.catch((error: Error) => ({
    code: 1,
    stdout: '',
    stderr: error.message,
  }))
  writeFileSync(join(call, 'stdout'), stdout)
  writeFileSync(join(call, 'stderr'), stderr)
  response.end(String(code))
})
beforeAll(() => new Promise<void>((resolve) => void commandServer.listen(commandSocket, resolve)))
afterAll(() => void commandServer.close())

/**
 * Creates the programs that the documentation uses. `threadkeep serve` only checks the configuration, curl fails on an
 * HTTP error, and commands that tests do not run are recorded.
 */
const bin = ((): string => {
  const path = join(folder, 'bin')
  mkdirSync(path)
  const skip = 'echo "$(basename "$0") $*" >> "$SKIPPED"'
  const listed = Object.keys(commandsNotRun).map((command) => `'${command}') ${skip}; exit 0;;`)
  const skipListed = `case "$(basename "$0") $*" in ${listed.join(' ')} *) ;; esac`
  const shims: Readonly<Record<string, string>> = {
    threadkeep: `${skipListed.replaceAll("'threadkeep bench')", "'threadkeep bench'|'threadkeep bench ')")}
if [ "$1" = serve ]; then shift; set -- config check "$@"; fi
call=$(mktemp -d) && printf '%s\\0' "$@" > "$call/args" && env -0 > "$call/env" && cat > "$call/input"
code=$(PATH=$REAL_PATH curl -sS --unix-socket '${commandSocket}' --data-binary "$call" http://localhost/)
cat "$call/stderr" >&2; cat "$call/stdout"; exit "$code"`,
    npx: 'if [ "$1" = -y ]; then shift; fi\nexec "$@"',
    npm: `if [ "$1" = start ]; then shift; [ "$1" = -- ] && shift; exec threadkeep serve "$@"; fi\n${skip}`,
    curl: 'PATH=$REAL_PATH exec curl -sS --fail-with-body -w "\\n" "$@"',
    ...Object.fromEntries(['claude', 'ollama', 'docker', 'sudo', 'journalctl', 'createdb'].map((name) => [name, skip])),
  }
  for (const [name, text] of Object.entries(shims)) {
    writeFileSync(join(path, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(path, name), 0o755)
  }
  return path
})()

/** Answers like Ollama, with the same vector for every text. */
async function startOllama(): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { input = [] } = JSON.parse(Buffer.concat(chunks).toString() || '{}') as { input?: string | string[] }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ model: 'nomic-embed-text', embeddings: [input].flat().map(() => [1, 2, 2]) }))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: async () => void server.close() }
}

/** Text that the commands of a page must print. */
const expected: Readonly<Record<string, readonly string[]>> = {
  'README.md': ['My cat is called Miso.'],
  'docs/server.md': [
    'threadkeep.config.json is valid: profile support, templates sales.',
    '"name":"returns.txt"',
    '"key":"acme:bob.phone"',
    '"saved":',
    '"status":"ok"',
    'threadkeep_',
    '"openapi":"3.1.0"',
    '<!doctype html>',
    'Revoked key ',
  ],
  'docs/guides/mcp-user.md': ['12 March'],
  'docs/guides/operator.md': ['is valid', '"ready":true', 'threadkeep_'],
  'docs/reference/configuration.md': ['8080'],
}

/** Creates the files that a page expects: a store with a conversation, an audit log, data to measure. */
async function createFiles(page: string, cwd: string): Promise<void> {
  await using memory = await openMemory({ store: `sqlite:${cwd}/threadkeep.db` })
  await memory.append('acme:ann', [{ role: 'user', content: 'My dog is called Rex.' }])
  const operation = { at: 0, user: 'ann', operation: 'write', path: '/etc/passwd', outcome: 'refused' } as const
  await new AuditLog(join(cwd, 'threadkeep-audit.jsonl')).append({ ...operation, why: 'outside' })
  if (page === 'docs/server.md')
    copyFileSync(`${root}examples/threadkeep.config.json`, join(cwd, 'threadkeep.config.json'))
  if (page !== 'docs/evaluation.md') return
  const { blocks } = pageAt(page)
  const textOf = (language: string): string => blocks.find((block) => block.language === language)?.text ?? ''
  writeFileSync(join(cwd, 'chats.json'), textOf('json'))
  writeFileSync(join(cwd, 'peer.ts'), textOf('ts'))
}

type PageResult = { readonly stdout: string; readonly requests: readonly string[] }

async function runPage(page: string): Promise<PageResult> {
  const cwd = join(folder, page.replaceAll(/[/.]/g, '-'))
  mkdirSync(join(cwd, 'etc'), { recursive: true })
  await createFiles(page, cwd)
  await using ollama = await startOllama()
  const script = ['set -eu', ...blocksOf('sh').flatMap((block) => (block.page === page ? [block.text] : []))]
    .join('\n')
    .replaceAll('/etc/threadkeep/', `${cwd}/etc/`)
    .replaceAll('ollama:nomic-embed-text', `ollama:nomic-embed-text@${ollama.url}`)
  if (!script.includes(serverUrl)) return { stdout: await runScript(script, cwd), requests: [] }
  await using upstream = await startUpstream()
  const flags = page === 'docs/server.md' ? ['--upstream', upstream.url] : []
  const server = startCommand(['serve', '--port', '0', ...flags], { ...secrets, THREADKEEP_STORE: '' }, cwd)
  try {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(await server.waitForOutput('curl '))?.[0] ?? ''
    const stdout = await runScript(script.replaceAll(serverUrl, url), cwd)
    const turns = upstream.requests.filter(({ path }) => path.endsWith('/chat/completions'))
    return { stdout, requests: turns.map(({ text }) => text) }
  } finally {
    server.process.kill()
    await server.result
  }
}

async function runScript(script: string, cwd: string): Promise<string> {
  const { PATH } = process.env
  const settings = { ...secrets, ...compileCacheEnv, PATH: `${bin}:${PATH}`, REAL_PATH: PATH }
  const running = execute('sh', ['-c', script], { cwd, env: { ...settings, SKIPPED: skippedFile, HOME: cwd } })
  running.child.stdin?.end()
  return (await running).stdout
}

describe('sh blocks of the documentation', () => {
  const withCommands = pages.filter(
    ({ path, blocks }) => blocks.some(({ language }) => language === 'sh') && !generatedPages.has(path),
  )

  for (const { path } of withCommands) {
    verifies(
      'P-03',
      `${path} › commands in order, next to a server › succeed and print what they promise`,
      async () => {
        const { stdout, requests } = await runPage(path)
        expect((expected[path] ?? []).filter((text) => !stdout.includes(text))).toEqual([])
        if (path !== 'docs/server.md') return
        expect(stdout).toMatch(/^listen\.port +--port +8080$/m)
        expect(requests.at(-2)).toContain('My cat is called Miso.')
        expect(requests.filter((text) => text.includes('dogs are better'))).toHaveLength(1)
      },
    )
  }

  it('exceptions › compared with the commands that were not run › are exactly those', () => {
    const skipped = new Set(
      readFileSync(skippedFile, 'utf8')
        .trim()
        .split('\n')
        .map((line) => line.trim()),
    )
    const message =
      'Commands that were not run must be listed in test/docs/exceptions.ts with a reason, and only those.'
    expect([...skipped].sort(), message).toEqual(Object.keys(commandsNotRun).sort())
  })
})
