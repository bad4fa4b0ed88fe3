import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { root } from '../shape/source.ts'
import { packPackage } from './packed.ts'

// Below node_modules, so that the unpacked package resolves its dependencies like an installed one.
const testFolder = `${root}node_modules/.cache/package-test/`
const installed = `${testFolder}node_modules/threadkeep/`
const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
  exports: Record<string, unknown>
  bin: { threadkeep: string }
}
let tarball = ''

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { cwd: testFolder, encoding: 'utf8' })

describe('published package', () => {
  beforeAll(async () => {
    rmSync(testFolder, { recursive: true, force: true })
    mkdirSync(installed, { recursive: true })
    tarball = await packPackage()
    run('tar', '-xzf', tarball, '-C', installed, '--strip-components', '1')
  })

  it('passes publint', () => expect(() => run('npx', 'publint', 'run', tarball, '--strict')).not.toThrow())
  it('passes attw', () => expect(() => run('npx', 'attw', tarball, '--profile', 'esm-only')).not.toThrow())

  it('can be imported through every export', () => {
    for (const name of Object.keys(manifest.exports).filter((path) => !path.endsWith('.json'))) {
      const load = `console.log(Object.keys(await import(${JSON.stringify(name.replace('.', 'threadkeep'))})).length > 0)`
      expect(run(process.execPath, '--input-type=module', '--eval', load).trim(), name).toBe('true')
    }
  })

  it('stores memory in a SQLite file with its writer thread', () => {
    const use = `import { openMemory } from 'threadkeep'
      await using memory = await openMemory({ store: 'sqlite:${testFolder}kept.db' })
      await memory.append('acme:ann', [{ role: 'user', content: 'My cat is called Miso.' }])
      console.log((await memory.search('acme', 'cat')).length)`
    expect(run(process.execPath, '--input-type=module', '--eval', use)).toBe('1\n')
  })

  it('provides the threadkeep command', () =>
    expect(run(process.execPath, installed + manifest.bin.threadkeep, '--help')).toContain('threadkeep'))
})
