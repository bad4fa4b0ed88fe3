import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { parseBodies, sealBundle } from '../portable/sealBundle.ts'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness } from './cliHarness.ts'

const { folder, run, output } = createCliHarness('signed')
const pathOf = (name: string): string => join(folder, name)
const secret = 'My cat is called Miso.'

/** Imports into a store that stays empty. Returns exit code, output and error. */
async function refuse(bundle: Uint8Array | string, ...flags: readonly string[]): Promise<readonly unknown[]> {
  writeFileSync(pathOf('given.jsonl'), bundle)
  const { code, stdout, stderr } = await run(['import', 'given.jsonl', '--store', 'sqlite:refused.db', ...flags])
  expect(await output('sessions', 'list', '--store', 'sqlite:refused.db')).toMatch(/^No sessions yet\./)
  return [code, stdout, stderr]
}

describe('export --sign and import --verify', () => {
  beforeAll(async () => {
    await using memory = await openMemory({ store: `sqlite:${pathOf('threadkeep.db')}` })
    await memory.append('acme:ann', [{ role: 'user', content: secret }])
    for (const [name, digits] of Object.entries({ key: 'a1', other: 'b2' }))
      writeFileSync(pathOf(name), digits.repeat(32), { mode: 0o600 })
    await output('export', '--out', 'signed.jsonl', '--sign', 'file:key')
  })

  verifies('R-04', 'with the same key › imports the bundle, which is exported again byte for byte', async () => {
    const imported = 'Imported 1 message of 1 session.\n'
    const store = ['--store', 'sqlite:copy.db']
    expect(await output('import', 'signed.jsonl', '--verify', 'file:key', ...store)).toBe(imported)
    expect(await output('export', '--sign', 'file:key', ...store)).toBe(readFileSync(pathOf('signed.jsonl'), 'utf8'))
    expect(await output('import', 'signed.jsonl', '--store', 'sqlite:unverified.db')).toBe(imported)
  })

  verifies('R-04', 'with another key, or without a signature › imports nothing', async () => {
    const signed = readFileSync(pathOf('signed.jsonl'))
    const refused = (problem: string) => [
      1,
      '',
      `threadkeep: The bundle ${problem}; nothing was imported. Import a bundle that was exported with the key, or leave out the verification.\n`,
    ]
    expect(await refuse(signed, '--verify', 'file:other')).toEqual(refused('is signed with another key'))
    expect(await refuse(await output('export'), '--verify', 'file:key')).toEqual(refused('is not signed'))
    const [code, , error] = await refuse(signed, '--verify', 'file:missing')
    expect([code, error]).toEqual([1, expect.stringContaining('missing')])
  })

  verifies('R-04', 'with a changed byte › imports nothing, also if all hashes are computed again', async () => {
    const signed = readFileSync(pathOf('signed.jsonl'))
    const places = [signed.indexOf('Miso'), signed.indexOf('"at":') + 5, signed.lastIndexOf('"signature":"') + 13]
    for (const place of [...places, signed.length - 4]) {
      const changed = Buffer.from(signed)
      changed[place] = (changed[place] as number) ^ 1
      const [code, printed] = await refuse(changed, '--verify', 'file:key')
      expect([place, code, printed]).toEqual([place, 1, ''])
    }
    const bodies = parseBodies(Buffer.from(signed.toString().replace('Miso', 'Mise')))
    const [code, , error] = await refuse(sealBundle(bodies), '--verify', 'file:key')
    expect([code, error]).toEqual([1, expect.stringContaining('is signed with another key')])
  })
})
