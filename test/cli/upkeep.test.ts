import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Incoming, type MemoryOptions, openMemory, profiles } from '../../src/index.ts'
import type { Memory } from '../../src/memory.ts'
import { openStore } from '../../src/stores/open.ts'
import { verifies } from '../requirements/verifies.ts'
import { type Ended, start } from './command.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-upkeep-'))
afterAll(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'threadkeep.db')
const store = `sqlite:${file}`

/** Runs the command in a folder of its own, with memory in its default place there. */
const run = (...args: readonly string[]): Promise<Ended> =>
  start('src/cli/main.ts', args, { THREADKEEP_STORE: '' }, '', folder).ended
const said = async (...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await run(...args)
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}
const lines = (...all: readonly string[]): string => all.map((line) => `${line}\n`).join('')
const json = async <T>(...args: readonly string[]): Promise<T> => JSON.parse(await said(...args, '--json')) as T

const minute = 60_000
let now = 0
const clock = (): number => now

/** Uses a memory on the file until nothing is left to do. */
async function fill(options: MemoryOptions, use: (memory: Memory) => Promise<void>): Promise<void> {
  await using memory = await openMemory({ store, clock, ...options })
  await use(memory)
  if (options.upkeep !== false) await memory.upkeep.settled()
}

const step = (number: number): string =>
  `Here is step ${number} of the plan, told at length so that there is something to sum up. `.repeat(14).trim()
const always = (text: string) => (): string => text
const turns = (count: number, content: (place: number) => string): Incoming[] =>
  Array.from({ length: count }, (_, place) => ({
    role: place % 2 === 0 ? 'user' : 'assistant',
    content: content(place),
  }))

/** A long chat in which a preference changes: the first seventeen messages are summed up. */
async function chat(memory: Memory): Promise<void> {
  now = Date.UTC(2026, 2, 1, 9)
  const told = [
    'I prefer dark mode.',
    "Let's go with PostgreSQL for the archive.",
    'My cat is called Miso. Never deploy on Fridays.',
    'Actually I prefer light mode now. See https://example.com/report first.',
  ]
  for (const [place, content] of told.entries()) {
    await memory.append('acme:ann', [
      { role: 'user', content },
      { role: 'assistant', content: step(place + 1) },
    ])
    now += 60 * minute
  }
  const next = (place: number): string =>
    place % 2 === 0 ? `What comes after step ${place / 2 + 4}?` : step((place - 1) / 2 + 5)
  await memory.append('acme:ann', turns(12, next))
}

/** An agent that says the same four times, and is looked after twice. */
async function work(memory: Memory): Promise<void> {
  now = Date.UTC(2026, 2, 2, 9)
  await memory.append('acme:bot', turns(4, always(step(1))))
  for (const content of ['Go on.', 'Go on, please.']) {
    now += 3 * minute
    await memory.sweep()
    await memory.upkeep.settled()
    await memory.append('acme:bot', [{ role: 'user', content }])
  }
}

/** In one session so many numbers that no summary of the first twenty messages can hold them all, in the other none. */
async function orders(memory: Memory): Promise<void> {
  now = Date.UTC(2026, 2, 3, 9)
  const order = (place: number): string =>
    Array.from({ length: 20 }, (_, at) => `Parcel ${10_000 + place * 100 + at} weighs ${2_000 + at * 7} grams.`).join(
      ' ',
    )
  await memory.append('shop:eve', turns(50, order))
  await memory.append('shop:kim', turns(50, always('and so it goes on and on')))
}

/** What people and models tell a scope, and a message in its own memory. */
async function tell(memory: Memory): Promise<void> {
  now = Date.UTC(2026, 2, 4, 9)
  await memory.remember('zoo', { category: 'domain', key: 'opening hours', value: 'nine to five' })
  await memory.remember('zoo', { category: 'domain', key: 'walrus', value: 'Bruno', confidence: 0.3, by: 'assistant' })
  await memory.remember('zoo', {
    category: 'user_preference',
    key: 'diet',
    value: ['fish'],
    confidence: 0.9,
    by: 'assistant',
  })
  await memory.append('zoo', [{ role: 'user', content: 'Feed the walrus.' }])
}

beforeAll(async () => {
  await fill({}, tell)
  await fill({ profile: 'summary' }, chat)
  await fill({ profile: 'agent' }, work)
  await fill({ profile: { ...profiles.support, durability: 'durable', lifetime: { whenFull: 'refuse' } } }, orders)
  // Under the profile the command opens it with, this session is due for a summary.
  await fill({ upkeep: false }, async (memory) => void (await memory.append('acme:due', turns(60, step))))
})

/** Commands that look at a session nobody has looked after, and what they show of it. */
const looks: readonly (readonly [command: string, shown: RegExp])[] = [
  ['facts acme:due', /^No facts\.\n$/],
  ['facts acme:due --record', /"summary_version": 0/],
  ['summaries acme:due', /^No summaries\.\n$/],
  ['summaries acme:due --lost', /^No summaries\.\n$/],
  ['optimizer', /^runs {15}2\n/],
  ['optimizer acme:due --snapshots', /^No runs\.\n$/],
  ['knowledge list acme', /^acme knows nothing\.\n$/],
  ['replay acme:due --profile thread', /\nNo message would have fared differently\.\n$/],
  ['replay acme:due --from agent --profile support --text', /\n\n/],
]

/** How often each session of the file was written to. */
async function revisions(): Promise<Readonly<Record<string, number>>> {
  const opened = await openStore(store)
  try {
    const heads = await Promise.all((await opened.list({ limit: 100 })).map(({ key }) => opened.head(key, 0)))
    return Object.fromEntries(heads.map(({ key, revision }) => [`${key.scope}:${key.id}`, revision]))
  } finally {
    await opened.close()
  }
}

describe('the commands that show upkeep', () => {
  for (const name of [
    'facts',
    'summaries',
    'knowledge',
    'knowledge list',
    'knowledge approve',
    'knowledge reject',
    'optimizer',
    'replay',
  ]) {
    verifies('S-02', `explain themselves, with examples and exit codes: ${name}`, async () => {
      const help = await said(...name.split(' '), '--help')
      expect(help).toMatch(new RegExp(`^Usage: threadkeep ${name} `))
      expect(help).toContain(`\nExamples:\n  threadkeep ${name.split(' ')[0]}`)
      expect(help).toContain('Exit codes: 0 fine, 1 failed, 2 wrong usage, 130 interrupted.')
    })
  }

  it('find sessions in the file, and in one of them upkeep that is due', async () => {
    expect(Object.keys(await revisions())).toEqual(['acme:ann', 'acme:bot', 'acme:due', 'shop:eve', 'shop:kim', 'zoo:'])
    copyFileSync(file, join(folder, 'due.db'))
    await using memory = await openMemory({ store: `sqlite:${join(folder, 'due.db')}` })
    await memory.append('acme:due', [{ role: 'user', content: 'Go on.' }])
    await memory.upkeep.settled()
    expect(await memory.upkeep.summaries('acme:due')).toHaveLength(1)
  })

  for (const [command, shown] of looks) {
    it(`write nothing by looking: ${command}`, async () => {
      const before = await revisions()
      expect(await said(...command.split(' '))).toMatch(shown)
      expect(await revisions()).toEqual(before)
    })
  }
})

describe('facts', () => {
  const decided = "key_decisions     m3  2026-03-01 10:00:00 UTC  Let's go with PostgreSQL for the archive"

  it('are shown by field, with where and when they were said', async () =>
    expect(await said('facts', 'acme:ann')).toBe(
      lines(
        'user_preferences  m7  2026-03-01 12:00:00 UTC  theme: light',
        decided,
        'important_facts   m5  2026-03-01 11:00:00 UTC  My cat is called Miso',
        'source_urls       m7  2026-03-01 12:00:00 UTC  https://example.com/report',
        'entities          m3  2026-03-01 10:00:00 UTC  PostgreSQL',
        'entities          m5  2026-03-01 11:00:00 UTC  Miso',
        'custom_fields     m5  2026-03-01 11:00:00 UTC  constraints.deploy_fridays: Never deploy on Fridays',
      ),
    ))

  it('are shown as they held at a time, or with all that was superseded', async () => {
    const dark = 'user_preferences  m1  2026-03-01 09:00:00 UTC  theme: dark (until 2026-03-01 12:00:00 UTC)'
    expect(await said('facts', 'acme:ann', '--as-of', '2026-03-01T10:30:00Z')).toBe(
      lines(dark, decided, 'entities          m3  2026-03-01 10:00:00 UTC  PostgreSQL'),
    )
    expect(await said('facts', 'acme:ann', '--as-of', '2026-03-01')).toBe('No facts.\n')
    const history = (await said('facts', 'acme:ann', '--history')).split('\n')
    expect(history.slice(0, 3)).toEqual([dark, 'user_preferences  m7  2026-03-01 12:00:00 UTC  theme: light', decided])
  })

  it('are whole in JSON', async () => {
    const { key, items } = await json<{ key: string; items: object[] }>('facts', 'acme:ann')
    expect([key, items.length]).toEqual(['acme:ann', 7])
    const theme = { kind: 'fact', field: 'user_preferences', key: 'theme', value: 'light' }
    expect(items[0]).toMatchObject({ ...theme, at: Date.UTC(2026, 2, 1, 12), sources: [{ message: 'm7' }] })
  })

  it('are one record with the summary, as JSON for people too', async () => {
    const record = await json('facts', 'acme:ann', '--record')
    expect(record).toMatchObject({
      important_data: {
        user_preferences: { theme: 'light' },
        key_decisions: ["Let's go with PostgreSQL for the archive"],
        document_structure: {},
        custom_fields: { constraints: ['Never deploy on Fridays'] },
      },
      summary_version: 1,
      messages_summarized_count: 18,
    })
    const people = await said('facts', 'acme:ann', '--record')
    expect(people.startsWith('{\n  "important_data": {\n')).toBe(true)
    expect(JSON.parse(people)).toEqual(record)
    expect(await json('facts', 'acme:ann', '--record', '--as-of', '2026-03-01T09:30:00Z')).toMatchObject({
      important_data: { user_preferences: { theme: 'dark' }, key_decisions: [] },
      conversation_summary: '',
    })
  })

  it('and summaries are cleared when told to, and what was said stays', async () => {
    copyFileSync(file, join(folder, 'copy.db'))
    const clear = ['facts', 'acme:ann', '--clear', '--store', 'sqlite:copy.db']
    expect(await said(...clear)).toBe('8 facts and 1 summary of acme:ann are gone; what was said stays.\n')
    expect(await json(...clear)).toEqual({ key: 'acme:ann', facts: 0, summaries: 0 })
    expect(await json('sessions', 'show', 'acme:ann', '--store', 'sqlite:copy.db')).toMatchObject({
      messages: 20,
      derived: [],
    })
  })
})

type Items<T> = { readonly items: readonly T[] }
type Lost = {
  readonly summary: string
  readonly losses: readonly {
    readonly kind: string
    readonly text: string
    readonly source: { readonly message: string }
  }[]
}

describe('summaries', () => {
  it('are shown with tier, version, maker, messages and words', async () => {
    const [summary] = (await json<Items<{ text: string }>>('summaries', 'acme:ann')).items
    expect(summary).toMatchObject({ tier: 'progressive', version: 1, by: 'builtin', covers: [1, 18] })
    const text = summary?.text ?? ''
    const line = `progressive  version 1  by builtin  m1–m18  ${text.split(/\s+/).length} words  ${text.replaceAll('\n', ' ').slice(0, 99)}…\n`
    expect(await said('summaries', 'acme:ann')).toBe(line)
  })

  it('leave out what their messages still say, and tell what', async () => {
    const [summary] = (await json<Items<{ id: string; text: string }>>('summaries', 'shop:eve')).items
    const [lost] = (await json<Items<Lost>>('summaries', 'shop:eve', '--lost')).items
    expect(lost?.summary).toBe(summary?.id)
    const parcels = lost?.losses.filter(({ kind, text }) => kind === 'number' && /^1\d{4}$/.test(text)) ?? []
    expect(parcels.length).toBeGreaterThan(0)
    const shown = (await said('summaries', 'shop:eve', '--lost')).split('\n')
    for (const { text, source } of parcels) {
      expect(summary?.text).not.toMatch(new RegExp(`\\b${text}\\b`))
      expect(source.message).toBe(`m${Math.floor((Number(text) - 10_000) / 100) + 1}`)
      expect(shown).toContain(`${source.message.padEnd(3)}  number  ${text}`)
    }
  })

  it('that leave nothing out are told so', async () =>
    expect(await said('summaries', 'shop:kim', '--lost')).toBe('Nothing that must survive is missing.\n'))
})

describe('the optimizer', () => {
  type Status = {
    totalOptimizations: number
    totalTokensSaved: number
    snapshots: { tokensBefore: number; tokensAfter: number }[]
  }

  it('tells what it has saved and learnt in a session or in a scope', async () => {
    const status = await json<Status>('optimizer', 'acme:bot')
    expect(status).toEqual({
      totalOptimizations: 2,
      totalTokensSaved: expect.any(Number),
      avgSavingsPerRun: Math.round(status.totalTokensSaved / 2),
      currentParameters: {
        compressionTrigger: 0.75,
        fullMessageWindow: 32,
        minRelevance: 0.25,
        targetUsageRatio: 0.65,
      },
    })
    expect(await json('optimizer', 'shop')).toMatchObject({
      totalOptimizations: 0,
      currentParameters: { compressionTrigger: 0.7 },
    })
    expect(await said('optimizer', 'acme')).toBe(
      lines(
        'runs               2',
        `tokens saved       ${status.totalTokensSaved}, ${Math.round(status.totalTokensSaved / 2)} in a run`,
        'trigger            0.75 of the budget',
        'window             32 messages always whole',
        'minimum relevance  0.25',
        'target             0.65 of the budget',
      ),
    )
  })

  it('shows each run of a session', async () => {
    const { totalTokensSaved, snapshots } = await json<Status>('optimizer', 'acme:bot', '--snapshots')
    expect(snapshots.reduce((sum, { tokensBefore, tokensAfter }) => sum + tokensBefore - tokensAfter, 0)).toBe(
      totalTokensSaved,
    )
    expect(totalTokensSaved).toBeGreaterThan(0)
    const [title, first, second] = (await said('optimizer', 'acme:bot', '--snapshots')).split('\n')
    expect(title).toBe(
      'time                     before  after  compressed  dropped  promoted  trigger  window  relevance',
    )
    expect(first).toMatch(/^2026-03-02 09:03:00 UTC {2,}\d+ {2,}\d+ {11}3 {8}0 {9}0 {4}0\.725 {6}31 {6}0\.275$/)
    expect(second).toMatch(/^2026-03-02 09:06:00 UTC .* {5}0\.75 {6}32 {7}0\.25$/)
  })
})

describe('replay', () => {
  it('compares two profiles, and names the messages that fare differently', async () => {
    const shown = await json<{ budget: number; was: { tokens: number }; is: { tokens: number } }>(
      'replay',
      'acme:ann',
      '--profile',
      'summary',
    )
    expect(shown).toEqual({
      key: 'acme:ann',
      budget: 16_000,
      was: {
        profile: 'thread',
        tokens: expect.any(Number),
        verdicts: { whole: 28, shortened: 0, covered: 0, dropped: 1 },
      },
      is: {
        profile: 'summary',
        tokens: expect.any(Number),
        verdicts: { whole: 10, shortened: 0, covered: 18, dropped: 1 },
      },
      differences: [{ entries: ['m1', 'm18'], count: 18, was: 'whole', is: 'covered' }],
    })
    expect(shown.is.tokens).toBeLessThan(shown.was.tokens)
    expect(await said('replay', 'acme:ann', '--profile', 'summary')).toBe(
      lines(
        'acme:ann in at most 16000 tokens',
        '     profile  tokens  whole  shortened  covered  dropped',
        `was  thread   ${`${shown.was.tokens}`.padStart(6)}     28          0        0        1`,
        `is   summary  ${`${shown.is.tokens}`.padStart(6)}     10          0       18        1`,
        'm1–m18  18 messages  whole → covered',
      ),
    )
  })

  it('takes a profile from a file, a budget, a question, and gives the text', async () => {
    writeFileSync(join(folder, 'mine.json'), JSON.stringify({ ...profiles.ephemeral, name: 'mine' }))
    const asked = [
      'replay',
      'acme:ann',
      '--from',
      'support',
      '--profile',
      'mine.json',
      '--budget',
      '300',
      '--query',
      'What is my cat called?',
    ]
    const { text, ...shown } = await json<{ text: string; is: { tokens: number } }>(...asked, '--text')
    expect(shown).toMatchObject({ budget: 300, was: { profile: 'support' }, is: { profile: 'mine' } })
    expect(shown.is.tokens).toBeLessThanOrEqual(300)
    expect(text).toContain('I prefer dark mode.')
    const people = await said(...asked, '--text')
    expect(people.startsWith('acme:ann in at most 300 tokens\n')).toBe(true)
    expect(people.endsWith(`\n\n${text}\n`)).toBe(true)
    expect(await said(...asked)).not.toContain('I prefer dark mode.')
  })
})

describe('knowledge', () => {
  const used = 'last used 2026-03-04 09:00:00 UTC'

  it('is listed, the surest first, with what waits for approval marked; approved or rejected, it waits no longer', async () => {
    expect(await said('knowledge', 'list', 'zoo')).toBe(
      lines(
        `k3  0.90  user_preference  ${used}  diet: ["fish"] (pending)`,
        `k1  0.50  domain           ${used}  opening hours: nine to five`,
        `k2  0.30  domain           ${used}  walrus: Bruno (pending)`,
      ),
    )
    expect(await said('knowledge', 'approve', 'zoo', 'k2')).toBe('zoo knows walrus (domain, confidence 0.3).\n')
    expect(await said('knowledge', 'reject', 'zoo', 'k3')).toBe('zoo has forgotten diet, for good.\n')
    const { items } = await json<Items<{ id: string; pending?: true }>>('knowledge', 'list', 'zoo')
    expect(items).toHaveLength(2)
    expect(items.filter(({ pending }) => pending === undefined).map(({ id }) => id)).toEqual(['k1', 'k2'])
  })

  it('is what a person says at once, and what a model says once it is approved', async () => {
    expect(await said('remember', 'farm', 'goat', 'Heidi', '--by', 'assistant')).toBe(
      'farm will know goat (domain, confidence 0.5) once it is approved: threadkeep knowledge approve farm k1\n',
    )
    expect(await said('remember', 'farm', 'goat', 'Heidi', '--by', 'user')).toBe(
      'farm knows goat (domain, confidence 0.6).\n',
    )
  })

  it('is believed more when another session says so, not when the same one does', async () => {
    expect(await json('remember', 'farm', 'cows', '12', '--session', 'ann')).toMatchObject({
      confidence: 0.5,
      told: ['ann'],
    })
    expect(await json('remember', 'farm', 'cows', '12', '--session', 'ann')).toMatchObject({
      confidence: 0.5,
      told: ['ann'],
    })
    expect(await json('remember', 'farm', 'cows', '12', '--session', 'bob')).toMatchObject({
      confidence: 0.6,
      told: ['ann', 'bob'],
    })
  })
})

describe('wrong input', () => {
  const unknown = 'There is no session acme:eve. threadkeep sessions list tells which there are.'
  const names = 'ephemeral, support, summary, agent, handoff, thread'
  const wrong: readonly (readonly [args: readonly string[], message: string])[] = [
    [['facts', 'acme:eve'], unknown],
    [['summaries', 'acme:eve'], unknown],
    [['optimizer', 'acme:eve'], unknown],
    [['replay', 'acme:eve', '--profile', 'summary'], unknown],
    [
      ['facts', 'acme:ann', '--as-of', 'soon'],
      'as-of is "soon"; it must be a date such as 2026-03-01 or 2026-03-01T12:00:00Z.',
    ],
    [['facts', 'acme:ann', '--record', '--clear'], '--history, --record and --clear do not go together; choose one.'],
    [
      ['facts', 'acme:ann', '--as-of', '2026-03-01', '--clear'],
      '--as-of does not go with --history or --clear; choose one.',
    ],
    [
      ['facts', 'acme:ann', '--store', 'sqlite:nowhere.db'],
      'There is no store at nowhere.db. Say where it is with --store sqlite:PATH.',
    ],
    [['knowledge', 'approve', 'acme', 'k9'], 'acme knows nothing with the id k9.'],
    [['knowledge', 'reject', 'zoo', 'm1'], 'zoo knows nothing with the id m1.'],
    [['knowledge', 'reject', 'acme:ann', 'm1'], 'Knowledge belongs to a scope: write acme instead of acme:ann.'],
    [['optimizer', 'acme', '--snapshots'], '--snapshots goes with a session: write it as scope:session.'],
    [['replay', 'acme:ann'], "required option '--profile <name>' not specified (threadkeep --help tells more)"],
    [['replay', 'acme:ann', '--profile', 'nope'], `profile is "nope"; it must be one of ${names}, or a JSON file.`],
    [
      ['replay', 'acme:ann', '--profile', 'summary', '--from', 'nope'],
      `from is "nope"; it must be one of ${names}, or a JSON file.`,
    ],
    [
      ['replay', 'acme:ann', '--profile', 'bent.json'],
      'bent.json holds no JSON. Write the profile as one JSON object.',
    ],
    [['replay', 'acme:ann', '--profile', 'old.json'], 'profile.budget is 0; it must be a whole number, 1 or more.'],
    [
      ['replay', 'acme:ann', '--profile', 'summary', '--budget', '0'],
      'budget is "0"; it must be a whole number, 1 or more.',
    ],
    [['remember', 'acme', 'hours', 'nine', '--by', 'robot'], 'by is "robot"; it must be one of user, assistant, tool.'],
    [
      ['remember', 'acme', 'hours', 'nine', '--by', 'tool'],
      "Profile thread does not let a tool add knowledge to acme. Use by: 'user', or change knowledgePolicy.tool.",
    ],
    [
      ['remember', 'acme', 'hours', 'nine', '--session', 'a b'],
      'The session of key "acme:a b" may hold only the letters A-Z and a-z, digits and _ + - . @. Write scope or scope:session, for example acme:+15551234567.',
    ],
  ]
  beforeAll(() => {
    writeFileSync(join(folder, 'bent.json'), '{"name":')
    writeFileSync(join(folder, 'old.json'), JSON.stringify({ ...profiles.thread, budget: 0 }))
  })
  for (const [args, message] of wrong)
    verifies('S-02', `is told in one line: ${args.join(' ')}`, async () =>
      expect(await run(...args)).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` }),
    )

  verifies('S-02', 'is told as JSON with --json', async () => {
    const { code, stdout, stderr } = await run('facts', 'acme:eve', '--json')
    expect([code, stdout, JSON.parse(stderr)]).toEqual([
      2,
      '',
      { error: { code: 'bad-option', message: unknown, param: 'key' } },
    ])
  })

  it('forgets nothing', async () => expect(await json('sessions', 'show', 'acme:ann')).toMatchObject({ messages: 20 }))
})
