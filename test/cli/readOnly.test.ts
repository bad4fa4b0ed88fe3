import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { openStore } from '../../src/stores/open.ts'
import { createCliHarness } from './cliHarness.ts'
import { addAllSamples } from './sampleSessions.ts'

const { folder, output } = createCliHarness('read-only')
const file = join(folder, 'threadkeep.db')
const store = `sqlite:${file}`

beforeAll(() => addAllSamples(store))

/** Returns the revision of every session in the file. */
async function readRevisions(): Promise<Readonly<Record<string, number>>> {
  const opened = await openStore(store)
  try {
    const heads = await Promise.all((await opened.list({ limit: 100 })).map(({ key }) => opened.readHead(key, 0)))
    return Object.fromEntries(heads.map(({ key, revision }) => [`${key.scope}:${key.id}`, revision]))
  } finally {
    await opened.close()
  }
}

describe('commands that only read, on a session with overdue upkeep', () => {
  it('fixture: the file has all sessions, and upkeep of acme:due is overdue', async () => {
    // The agent of acme:bot has learnt something for its scope.
    expect(Object.keys(await readRevisions())).toEqual([
      'acme:',
      'acme:ann',
      'acme:bot',
      'acme:due',
      'shop:eve',
      'shop:kim',
      'zoo:',
    ])
    copyFileSync(file, join(folder, 'due.db'))
    await using memory = await openMemory({ store: `sqlite:${join(folder, 'due.db')}` })
    await memory.append('acme:due', [{ role: 'user', content: 'Go on.' }])
    await memory.upkeep.whenIdle()
    expect(await memory.upkeep.summaries('acme:due')).toHaveLength(1)
  })

  const reads: readonly (readonly [command: string, expected: RegExp])[] = [
    ['facts acme:due', /^No facts yet: .* Run "threadkeep upkeep run acme:due"/],
    ['facts acme:due --record', /"summary_version": 0/],
    ['summaries acme:due', /^No summaries yet: .* Run "threadkeep upkeep run acme:due --force"/],
    ['summaries acme:due --lost', /^No summaries yet: /],
    ['optimizer', /^runs {15}2\n/],
    ['optimizer acme:due --snapshots', /^No runs\.\n$/],
    ['knowledge list acme', /^No knowledge in acme yet\./],
    ['context acme:due', /\n\[user\]\n/],
    ['context acme:due --receipt --budget 500', / of 500 tokens, /],
    ['forget acme:due --dry-run', /acme:due: 60 messages\n/],
    ['forget acme --scope --dry-run', /In total: 3 sessions, /],
    ['replay acme:due --profile thread', /\nNo differences\.\n$/],
    ['replay acme:due --from agent --profile support --text', /\n\n/],
  ]
  for (const [command, expected] of reads) {
    it(`${command} writes nothing`, async () => {
      const before = await readRevisions()
      expect(await output(...command.split(' '))).toMatch(expected)
      expect(await readRevisions()).toEqual(before)
    })
  }
})
