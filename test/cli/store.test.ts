import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { type Ended, start } from './command.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-cli-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Runs the command in a folder of its own, with memory in its default place there. */
const run = (args: readonly string[], input = '', env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  start('src/cli/main.ts', args, { THREADKEEP_STORE: '', ...env }, input, folder).ended
const said = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await run(args)
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}
const json = async (...args: string[]): Promise<unknown> => JSON.parse(await said(...args, '--json'))

describe('the commands on a store', () => {
  beforeAll(async () => {
    const talk = 'My cat is called Miso.\nThe walrus is called Bruno.\n'
    expect((await run(['chat', 'acme:ann', '--store', 'sqlite:'], talk)).code).toBe(0)
    expect(await said('remember', 'acme', 'opening hours', 'nine to five')).toBe(
      'acme knows opening hours (domain, confidence 0.5).\n',
    )
  })

  it('keep it in one file that only its owner may read', () => {
    expect(readdirSync(folder)).toEqual(['threadkeep.db'])
    expect(statSync(join(folder, 'threadkeep.db')).mode & 0o777).toBe(0o600)
  })

  it('list and show sessions', async () => {
    expect(await said('sessions', 'list')).toMatch(
      /^acme {2}0 messages, last written .* UTC\nacme:ann {2}4 messages, last written .* UTC\n$/,
    )
    expect(await json('sessions', 'list', 'acme', '--limit', '1')).toMatchObject({
      items: [{ key: 'acme', messages: 0 }],
      next: 'acme',
    })
    expect(await json('sessions', 'list', '--after', 'acme:ann')).toEqual({ items: [], next: null })
    expect(await said('sessions', 'show', 'acme:ann', '--limit', '2')).toMatch(
      /^acme:ann: 4 messages, 0 derived entries, .*\nm3 user: The walrus is called Bruno\.\nm4 assistant: /,
    )
    expect((await run(['sessions', 'show', 'acme:eve'])).stderr).toBe(
      'threadkeep: There is no session acme:eve. threadkeep sessions list tells which there are.\n',
    )
  })

  it('search, and remember more surely when told again', async () => {
    expect(await said('search', 'acme', 'walrus', 'Bruno', '--limit', '1')).toMatch(
      /^\d\.\d\d {2}acme:ann m3, .* UTC: The walrus is called Bruno\.\n$/,
    )
    expect(await json('search', 'acme', 'hours', '--kinds', 'knowledge')).toMatchObject({
      items: [{ key: 'acme', entry: { value: 'nine to five' } }],
    })
    expect(await said('search', 'acme', 'zebra')).toBe('Nothing was found.\n')
    expect(await said('search', 'acme', 'walrus', '--to', '2020-01-01')).toBe('Nothing was found.\n')
    expect(await said('remember', 'acme', 'opening hours', '{"from":9}')).toBe(
      'acme knows opening hours (domain, confidence 0.6).\n',
    )
  })

  verifies('X-12', 'export and import a bundle that comes back the same, also encrypted', async () => {
    expect(await said('export', '--out', 'whole.jsonl')).toBe('4 messages of 2 sessions are in whole.jsonl.\n')
    expect(await said('import', 'whole.jsonl', '--store', 'sqlite:copy.db')).toBe(
      '4 messages of 2 sessions were imported.\n',
    )
    expect(await said('import', 'whole.jsonl', '--store', 'sqlite:copy.db')).toBe(
      '0 messages of 0 sessions were imported.\n2 sessions were there already.\n',
    )
    expect(await said('export', '--store', 'sqlite:copy.db')).toBe(readFileSync(join(folder, 'whole.jsonl'), 'utf8'))
    writeFileSync(join(folder, 'secret.txt'), 'correct horse\n')
    await said('export', '--out', 'locked', '--passphrase-file', 'secret.txt')
    expect(readFileSync(join(folder, 'locked')).includes('Miso')).toBe(false)
    expect((await run(['import', 'locked', '--store', 'sqlite:third.db'])).stderr).toBe(
      'threadkeep: The bundle is encrypted; give the passphrase it was exported with.\n',
    )
    expect(await said('import', 'locked', '--store', 'sqlite:third.db', '--passphrase-file', 'secret.txt')).toBe(
      '4 messages of 2 sessions were imported.\n',
    )
    writeFileSync(join(folder, 'bent.jsonl'), readFileSync(join(folder, 'whole.jsonl'), 'utf8').replace('Miso', 'Mise'))
    const bent = await run(['import', 'bent.jsonl', '--store', 'sqlite:fourth.db'])
    expect([bent.code, bent.stdout]).toEqual([1, ''])
    expect(await said('sessions', 'list', '--store', 'sqlite:fourth.db')).toBe('No sessions.\n')
  })

  it('take in what other programs exported', async () => {
    writeFileSync(
      join(folder, 'talk.jsonl'),
      '{"role":"user","content":"I live in Lisbon."}\n{"role":"assistant","content":"Noted."}\n',
    )
    expect(await said('import', 'talk.jsonl', '--scope', 'me')).toBe('2 messages of 1 session were imported.\n')
    expect(await said('search', 'me', 'Lisbon', '--limit', '1')).toContain('me:talk m1')
    writeFileSync(join(folder, 'notes.txt'), 'just text')
    expect((await run(['import', 'notes.txt'])).stderr).toMatch(
      /^threadkeep: The file is none that can be imported: a Threadkeep bundle, ChatGPT's conversations\.json, /,
    )
  })

  verifies('H-09', 'keep an encrypted store under a key, and change the key', async () => {
    const [old, fresh] = ['a'.repeat(64), 'b'.repeat(64)]
    const sealed = ['--store', 'sqlite:sealed.db', '--store-key', 'env:KEY']
    expect((await run(['chat', 'acme:ann', ...sealed], 'My cat is called Miso.\n', { KEY: old })).code).toBe(0)
    expect(readFileSync(join(folder, 'sealed.db')).includes('Miso')).toBe(false)
    expect((await run(['search', 'acme', 'cat', '--limit', '1', ...sealed], '', { KEY: old })).stdout).toContain(
      'My cat is called Miso.',
    )
    const wrong = await run(['search', 'acme', 'cat', ...sealed], '', { KEY: fresh })
    expect([wrong.code, wrong.stdout]).toEqual([1, ''])
    const rotated = await run(['doctor', '--rotate-key', ...sealed], '', { KEY: `${fresh} ${old}` })
    expect(rotated).toEqual({
      code: 0,
      stdout: 'The keys of 1 session are wrapped under the new key; the old one is no longer needed.\n',
      stderr: '',
    })
    expect((await run(['search', 'acme', 'cat', '--limit', '1', ...sealed], '', { KEY: fresh })).stdout).toContain(
      'My cat is called Miso.',
    )
  })

  it('examine, copy and repair', async () => {
    expect(await said('doctor', '--backup', 'backup.db')).toMatch(
      /^Copied to backup\.db\.\nthreadkeep\.db: format 2, .*\nEverything is sound\.\n$/,
    )
    const bytes = readFileSync(join(folder, 'backup.db'))
    bytes.write('Brunz', bytes.indexOf('is called Bruno') + 10)
    writeFileSync(join(folder, 'backup.db'), bytes)
    const found = await run(['doctor', '--store', 'sqlite:backup.db'])
    expect(found.code).toBe(1)
    expect(found.stdout).toContain(
      'damaged: message m3 of acme:ann: its checksum differs from what was written\n1 fault. threadkeep doctor --repair repairs what can be repaired.\n',
    )
    expect(await json('doctor', '--store', 'sqlite:backup.db', '--repair')).toMatchObject({
      done: ['m3 of acme:ann was put aside'],
      after: { faults: [], quarantined: 1 },
    })
  })

  verifies('X-05', 'forget only when told to, and then for good', async () => {
    expect(await said('forget', 'acme:ann', '--message', 'm3')).toBe(
      'This would forget message m3 of acme:ann, for good. Add --yes to do it.\n',
    )
    expect(await said('forget', 'acme', '--text', 'walrus')).toBe(
      'This would forget whatever holds "walrus" in 2 sessions of acme, for good. Add --yes to do it.\n',
    )
    expect(readFileSync(join(folder, 'threadkeep.db')).includes('Bruno')).toBe(true)
    expect(await json('forget', 'acme', '--text', 'Bruno', '--yes')).toMatchObject({
      sessions: [{ key: 'acme:ann', entries: ['m3'] }],
    })
    expect(readFileSync(join(folder, 'threadkeep.db')).includes('Bruno')).toBe(false)
    expect(await said('forget', 'acme', '--scope', '--yes')).toBe(
      'acme: 1 entry forgotten\nacme:ann: 3 entries forgotten\n',
    )
    expect(await said('forget', 'acme', '--scope', '--yes')).toBe('There was nothing to forget.\n')
  })
})
