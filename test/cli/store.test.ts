import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness } from './cliHarness.ts'

const { folder, run, output, json } = createCliHarness('store')

describe('commands on a store', () => {
  beforeAll(async () => {
    const input = 'My cat is called Miso.\nThe walrus is called Bruno.\n'
    expect((await run(['chat', 'acme:ann', '--store', 'sqlite:'], input)).code).toBe(0)
    expect(await output('remember', 'acme', 'opening hours', 'nine to five')).toBe(
      'Stored opening hours in acme (domain, confidence 0.5).\n',
    )
  })

  it('create one file that only its owner can read', () => {
    expect(readdirSync(folder)).toEqual(['threadkeep.db'])
    expect(statSync(join(folder, 'threadkeep.db')).mode & 0o777).toBe(0o600)
  })

  it('sessions › list and show', async () => {
    expect(await output('sessions', 'list')).toMatch(/^acme:ann {2}4 messages {2}last written .* UTC\n$/)
    expect(await json('sessions', 'list', 'acme', '--limit', '1')).toMatchObject({
      items: [{ key: 'acme:ann', messages: 4 }],
      next: null,
    })
    expect(await json('sessions', 'list', '--after', 'acme:ann')).toEqual({ items: [], next: null })
    expect(await output('sessions', 'show', 'acme:ann', '--limit', '2')).toMatch(
      /^acme:ann: 4 messages, 0 derived entries, .*\nm3 user: The walrus is called Bruno\.\nm4 assistant: /,
    )
    expect((await run(['sessions', 'show', 'acme:eve'])).stderr).toBe(
      'threadkeep: No session acme:eve. Run threadkeep sessions list to see all sessions.\n',
    )
  })

  it('search finds messages and knowledge; remember raises the confidence of a repeated statement', async () => {
    expect(await output('search', 'acme', 'walrus', 'Bruno', '--limit', '1')).toMatch(
      /^\d\.\d\d {2}acme:ann m3 {2}.* UTC {2}The walrus is called Bruno\.\n$/,
    )
    expect(await json('search', 'acme', 'hours', '--kinds', 'knowledge')).toMatchObject({
      items: [{ key: 'acme', entry: { value: 'nine to five' } }],
    })
    expect(await output('search', 'acme', 'zebra')).toBe('No results.\n')
    expect(await output('search', 'acme', 'walrus', '--to', '2020-01-01')).toBe('No results.\n')
    expect(await output('remember', 'acme', 'opening hours', '{"from":9}')).toBe(
      'Stored opening hours in acme (domain, confidence 0.6).\nIt replaces opening hours: nine to five\n',
    )
  })

  verifies('T-14', 'search › with a date phrase › finds only entries of that time', async () => {
    const day = 86_400_000
    const store = sqliteStore(join(folder, 'dated.db'))
    const memory = await openMemory({ store, upkeep: false })
    await memory.append('acme:ann', [
      { role: 'user', content: 'The parrot was green.', at: Date.now() - 400 * day },
      { role: 'user', content: 'The parrot is red.', at: Date.now() - 40 * day },
    ])
    await memory.close()
    const found = async (...query: string[]) =>
      (await output('search', 'acme', ...query, '--store', 'sqlite:dated.db')).trim().split('\n').length
    expect(await output('search', 'acme', 'parrot in the last 90 days', '--store', 'sqlite:dated.db')).toMatch(
      /^\d\.\d\d {2}acme:ann m2 {2}.* {2}The parrot is red\.\n$/,
    )
    expect(await found('parrot')).toBe(2)
  })

  verifies(
    'X-12',
    'export and import › round-trip a bundle byte for byte, also encrypted, and reject a changed one',
    async () => {
      expect(await output('export', '--out', 'whole.jsonl')).toBe('Exported 4 messages of 1 session to whole.jsonl.\n')
      expect(await output('import', 'whole.jsonl', '--store', 'sqlite:copy.db')).toBe(
        'Imported 4 messages of 1 session.\n',
      )
      expect(await output('import', 'whole.jsonl', '--store', 'sqlite:copy.db')).toBe(
        'Imported 0 messages of 0 sessions.\n1 session unchanged.\n',
      )
      expect(await output('export', '--store', 'sqlite:copy.db')).toBe(
        readFileSync(join(folder, 'whole.jsonl'), 'utf8'),
      )
      writeFileSync(join(folder, 'secret.txt'), 'correct horse\n')
      await output('export', '--out', 'locked', '--passphrase-file', 'secret.txt')
      expect(readFileSync(join(folder, 'locked')).includes('Miso')).toBe(false)
      expect((await run(['import', 'locked', '--store', 'sqlite:third.db'])).stderr).toBe(
        'threadkeep: The bundle is encrypted; give the passphrase it was exported with.\n',
      )
      expect(await output('import', 'locked', '--store', 'sqlite:third.db', '--passphrase-file', 'secret.txt')).toBe(
        'Imported 4 messages of 1 session.\n',
      )
      writeFileSync(
        join(folder, 'changed.jsonl'),
        readFileSync(join(folder, 'whole.jsonl'), 'utf8').replace('Miso', 'Mise'),
      )
      const changed = await run(['import', 'changed.jsonl', '--store', 'sqlite:fourth.db'])
      expect([changed.code, changed.stdout]).toEqual([1, ''])
      expect(await output('sessions', 'list', '--store', 'sqlite:fourth.db')).toMatch(/^No sessions yet\./)
    },
  )

  verifies(
    'R-06',
    'commands › with a session for a scope, an unknown session or no words › name the remedy',
    async () => {
      const refusals = [
        [['sessions', 'list', 'acme:ann'], 'acme:ann is a session, not a tenant. Use acme.'],
        [['export', '--scope', 'acme:ann'], 'acme:ann is a session, not a tenant. Use acme.'],
        [['remember', 'acme:ann', 'color', 'red'], 'acme:ann is a session, not a tenant. Use acme.'],
        [['upkeep', 'run', '--scope', 'acme:ann'], 'acme:ann is a session, not a tenant. Use acme.'],
        [['export', '--key', 'acme:eve'], 'No session acme:eve. Run threadkeep sessions list to see all sessions.'],
        [['search', 'acme', ''], 'The query is empty. Name the words to search for.'],
      ] as const
      for (const [args, message] of refusals) {
        const { code, stdout, stderr } = await run(args)
        expect([args, code, stdout, stderr]).toEqual([args, 2, '', `threadkeep: ${message}\n`])
      }
    },
  )

  it('import accepts exports of other programs and rejects other files', async () => {
    writeFileSync(
      join(folder, 'talk.jsonl'),
      '{"role":"user","content":"I live in Lisbon."}\n{"role":"assistant","content":"Noted."}\n',
    )
    expect(await output('import', 'talk.jsonl', '--scope', 'me')).toBe('Imported 2 messages of 1 session.\n')
    expect(await output('search', 'me', 'Lisbon', '--limit', '1')).toContain('me:talk m1')
    writeFileSync(join(folder, 'notes.txt'), 'just text')
    expect((await run(['import', 'notes.txt'])).stderr).toMatch(
      /^threadkeep: Unknown file format. Use one of: a Threadkeep bundle, ChatGPT's conversations\.json, /,
    )
  })

  verifies('H-09', 'encrypt a store with --store-key; doctor --rotate-key replaces the key', async () => {
    const [old, fresh] = ['a'.repeat(64), 'b'.repeat(64)]
    const encrypted = ['--store', 'sqlite:encrypted.db', '--store-key', 'env:KEY']
    expect((await run(['chat', 'acme:ann', ...encrypted], 'My cat is called Miso.\n', { KEY: old })).code).toBe(0)
    expect(readFileSync(join(folder, 'encrypted.db')).includes('Miso')).toBe(false)
    expect((await run(['search', 'acme', 'cat', '--limit', '1', ...encrypted], '', { KEY: old })).stdout).toContain(
      'My cat is called Miso.',
    )
    const wrong = await run(['search', 'acme', 'cat', ...encrypted], '', { KEY: fresh })
    expect([wrong.code, wrong.stdout]).toEqual([1, ''])
    const rotated = await run(['doctor', '--rotate-key', ...encrypted], '', { KEY: `${fresh} ${old}` })
    expect(rotated).toEqual({
      code: 0,
      stdout: 'Rotated the keys of 1 session. The old key is no longer needed.\n',
      stderr: '',
    })
    expect((await run(['search', 'acme', 'cat', '--limit', '1', ...encrypted], '', { KEY: fresh })).stdout).toContain(
      'My cat is called Miso.',
    )
  })

  it('doctor checks, backs up and repairs', async () => {
    expect(await output('doctor', '--backup', 'backup.db')).toMatch(
      /^Copied the store to backup\.db\.\nthreadkeep\.db: format 7, .*\nNo damage found\.\n$/,
    )
    const bytes = readFileSync(join(folder, 'backup.db'))
    bytes.write('Brunz', bytes.indexOf('is called Bruno') + 10)
    writeFileSync(join(folder, 'backup.db'), bytes)
    const found = await run(['doctor', '--store', 'sqlite:backup.db'])
    expect(found.code).toBe(1)
    expect(found.stdout).toContain(
      'damaged: message m3 of acme:ann: its checksum differs from what was written\n1 fault. Run threadkeep doctor --repair.\n',
    )
    expect(await json('doctor', '--store', 'sqlite:backup.db', '--repair')).toMatchObject({
      actions: ['m3 of acme:ann was quarantined'],
      after: { faults: [], quarantined: 1 },
    })
  })

  verifies('X-05', 'forget shows a preview without --yes, and deletes permanently with it', async () => {
    expect(await run(['forget', 'acme:ann', '--message', 'm3'])).toEqual({
      code: 2,
      stdout:
        'Would delete for good:\n  acme:ann: 1 message\n    m3 user: The walrus is called Bruno.\nIn total: 1 message.\n',
      stderr: 'threadkeep: Nothing was deleted. Add --yes to confirm.\n',
    })
    expect(await output('forget', 'acme', '--text', 'walrus', '--dry-run')).toContain('m3 user: The walrus is called')
    expect(readFileSync(join(folder, 'threadkeep.db')).includes('Bruno')).toBe(true)
    expect(await json('forget', 'acme', '--text', 'Bruno', '--yes')).toMatchObject({
      sessions: [{ key: 'acme:ann', entries: ['m3'] }],
    })
    expect(readFileSync(join(folder, 'threadkeep.db')).includes('Bruno')).toBe(false)
    expect(await output('forget', 'acme', '--scope', '--yes')).toBe(
      'acme: deleted 1 entry\nacme:ann: deleted 3 entries\n',
    )
    expect(await output('forget', 'acme', '--scope', '--yes')).toBe('Nothing to delete.\n')
  })
})
