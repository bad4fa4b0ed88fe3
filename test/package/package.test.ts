import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'vite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkEnvironment } from '../../src/cli/options.ts'
import { createProgram } from '../../src/cli/program.ts'
import { isCampaign } from '../context/campaign.ts'
import { createDocx, createPdf, docxParagraph } from '../files/fixtures.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import { type InstalledPackage, installFromTarball, installNode, manifest } from './installedPackage.ts'

let installed: InstalledPackage
beforeAll(async () => {
  installed = await installFromTarball()
})
afterAll(() => rmSync(installed.folder, { recursive: true, force: true }))

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { cwd: installed.folder, encoding: 'utf8' })
const runTool = (...args: string[]): string => execFileSync('npx', args, { cwd: root, encoding: 'utf8' })
const evaluate = (node: string, script: string): string => run(node, '--input-type=module', '--eval', script).trim()
const contentOf = (file: string): string =>
  readFileSync(join(installed.folder, 'node_modules/threadkeep', file), 'utf8')
const importPaths = Object.keys(manifest.exports)
  .filter((path) => !path.endsWith('.json'))
  .map((path) => path.replace('.', 'threadkeep'))
/** Imports every export in one process, and returns `works` or the error for each. */
const importAll = (node: string): string[] =>
  JSON.parse(
    evaluate(
      node,
      `const outcome = (names) => (Object.keys(names).length > 0 ? 'works' : 'exports nothing')
      const importPath = (path) => import(path).then(outcome, ({ message }) => message)
      console.log(JSON.stringify(await Promise.all(${JSON.stringify(importPaths)}.map(importPath))))`,
    ),
  )

/** Starts the installed server on a free port, and stops it after `use`. */
async function withServer(use: (url: string) => Promise<void>): Promise<void> {
  const server = spawn(process.execPath, [installed.command, 'serve', '--port', '0', '--store', 'ram:'], {
    cwd: installed.folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const url = await new Promise<string>((resolve, reject) => {
      let output = ''
      server.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text
        const address = /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0]
        if (address !== undefined) resolve(address)
      })
      server.once('exit', (code) => reject(new Error(`The server exited with ${code}: ${output}`)))
    })
    await use(url)
  } finally {
    server.kill('SIGKILL')
  }
}

describe('published package', () => {
  it('passes publint', () => expect(() => runTool('publint', 'run', installed.tarball, '--strict')).not.toThrow())
  it('passes attw', () => expect(() => runTool('attw', installed.tarball, '--profile', 'esm-only')).not.toThrow())

  it('is one package of at most 25 MB, with its documentation, examples and licenses', () => {
    expect(readdirSync(join(installed.folder, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
      'threadkeep',
    ])
    const files = readdirSync(join(installed.folder, 'node_modules'), { recursive: true, withFileTypes: true })
    const bytes = files.filter((file) => file.isFile()).map((file) => statSync(join(file.parentPath, file.name)).size)
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(25_000_000)
    for (const file of ['README.md', 'CHANGELOG.md', 'docs/server.md', 'examples/chat.ts', 'LICENSE', 'NOTICE'])
      expect(contentOf(file)).not.toBe('')
    const vendored = readdirSync(join(installed.folder, 'node_modules/threadkeep/dist/vendor'))
    for (const name of vendored.filter((entry) => !entry.startsWith('@') && !entry.includes('.')))
      expect(contentOf('dist/vendor/LICENSES.txt')).toMatch(new RegExp(`^${name} \\d`, 'm'))
  })

  it('can be imported through every export', () => {
    expect(importAll(process.execPath)).toEqual(importPaths.map(() => 'works'))
  })

  it('stores memory in a SQLite file with its writer thread, and finds other forms of a German word', () => {
    const script = `import { openMemory } from 'threadkeep'
      await using memory = await openMemory({ store: 'sqlite:memory.db' })
      await memory.append('acme:ann', [{ role: 'user', content: 'Die Lieferungen kommen immer am Dienstag, sagte der Händler gestern.' }])
      console.log((await memory.search('acme', 'Wann kommt die Lieferung?')).length)`
    expect(evaluate(process.execPath, script)).toBe('1')
  })

  it('serves chats and reads documents', async () => {
    await withServer(async (url) => {
      const ask = async (content: string): Promise<string> => {
        const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content }] })
        const headers = { 'content-type': 'application/json' }
        const response = await fetch(`${url}/v1/acme:ann/chat/completions`, { method: 'POST', headers, body })
        return response.text()
      }
      await ask('My cat is called Miso.')
      expect(await ask('What is my cat called?')).toContain('Miso')
      const documents = {
        'price.pdf': createPdf(['The annual licence costs 240 euros.']),
        'hours.docx': createDocx(docxParagraph('The workshop opens at nine in the morning.')),
        'list.csv': 'item,stock\nlamp,14\n',
        'page.html': '<h1>Returns</h1><p>Parcels may be returned within thirty days.</p>',
      }
      for (const [name, content] of Object.entries(documents)) {
        const form = new FormData()
        form.append('file', new Blob([Buffer.from(content)]), name)
        const response = await fetch(`${url}/api/scopes/acme/files`, { method: 'POST', body: form })
        expect([response.status, await response.text()], name).toEqual([
          expect.toBeOneOf([200, 201, 202]),
          expect.any(String),
        ])
      }
      const search = async (question: string): Promise<string> =>
        (await fetch(`${url}/api/scopes/acme/search?q=${encodeURIComponent(question)}`)).text()
      await expect.poll(() => search('What does the annual licence cost?'), { timeout: 20_000 }).toContain('240')
      await expect.poll(() => search('When does the workshop open?'), { timeout: 20_000 }).toContain('nine')
    })
  })

  it('lets a bundler drop everything that is not used', async () => {
    const entry = join(installed.folder, 'entry.js')
    writeFileSync(entry, `import { parseKey } from 'threadkeep/browser'\nconsole.log(parseKey('acme:ann'))`)
    const output = await build({
      root: installed.folder,
      configFile: false,
      logLevel: 'error',
      build: { write: false, minify: true, lib: { entry, formats: ['es'] } },
    })
    const [chunk] = [output].flat().flatMap((built) => ('output' in built ? built.output : []))
    expect(chunk?.type === 'chunk' && chunk.code.length).toBeLessThan(8_000)
  })
})

describe('deployment files', () => {
  const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8')
  const listOf = (instruction: string): readonly string[] =>
    JSON.parse(new RegExp(`^${instruction} (\\[.*\\])$`, 'm').exec(dockerfile)?.[1] ?? 'null')
  const environment = (text: string): Record<string, string> =>
    Object.fromEntries(
      [...text.matchAll(/\b(THREADKEEP_\w+|NODE_ENV)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]),
    )

  /** Starts the image's command in the installed package. */
  function startImage(...args: readonly string[]) {
    const [, file = '', ...entryArgs] = listOf('ENTRYPOINT')
    const env = environment(dockerfile)
    const command = file.replace('/opt/threadkeep', join(installed.folder, 'node_modules/threadkeep'))
    return spawn(process.execPath, [command, ...entryArgs, ...args], {
      cwd: installed.folder,
      env: { ...env, THREADKEEP_STORE: env.THREADKEEP_STORE?.replace('/data', installed.folder) },
    })
  }

  it('Dockerfile › without keys › refuses to serve other machines', async () => {
    const [code] = await once(startImage(...listOf('CMD')), 'exit')
    expect(code).toBe(2)
  })

  it('Dockerfile › with --open › answers the health check and ends on SIGTERM', async () => {
    const server = startImage(...listOf('CMD'), '--open', '--port', '0')
    const [output] = await once(server.stdout.setEncoding('utf8'), 'data')
    const [, port = ''] = /:(\d+)/.exec(output) ?? []
    const [, healthUrl = ''] = /wget .*(http:\S+)/.exec(dockerfile) ?? []
    expect((await fetch(healthUrl.replace('4848', port))).status).toBe(200)
    server.kill('SIGTERM')
    expect(await once(server, 'exit')).toEqual([0, null])
  })

  it('threadkeep.service › sets variables that the command knows, and starts a command that exists', () => {
    const unit = readFileSync(join(root, 'deploy/threadkeep.service'), 'utf8')
    expect(() => checkEnvironment(environment(unit + dockerfile), [])).not.toThrow()
    const [, name = ''] = /^ExecStart=\/usr\/bin\/env threadkeep (\w+)$/m.exec(unit) ?? []
    expect(createProgram().commands.map((command) => command.name())).toContain(name)
  })
})

describe('published package on old versions of Node', () => {
  const needNode = new Set([
    'threadkeep',
    ...['sqlite', 'postgres', 'redis', 'encrypted'].map((store) => `threadkeep/${store}`),
  ])

  for (const version of isCampaign ? ['20.20.2', '22.14.0'] : ['20.20.2']) {
    const sentence = `Threadkeep needs Node 24 or newer; this is Node ${version}. Install a newer version from https://nodejs.org or with your version manager.`

    verifies(
      'P-02',
      `import › on Node ${version} › works, or fails with one sentence that says what to install`,
      () => {
        const expected = importPaths.map((path) => (needNode.has(path) ? sentence : 'works'))
        expect(importAll(installNode(version))).toEqual(expected)
      },
    )

    verifies('P-02', `threadkeep › on Node ${version} › prints one sentence and exits with 1`, () => {
      const node = installNode(version)
      for (const args of [['--help'], ['serve'], ['mcp'], ['chat']]) {
        const { status, stdout, stderr } = spawnSync(node, [installed.command, ...args], { encoding: 'utf8' })
        expect({ status, stdout, stderr }).toEqual({ status: 1, stdout: '', stderr: `${sentence}\n` })
      }
    })
  }
})
