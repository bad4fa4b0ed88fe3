import { describe, expect, it } from 'vitest'
import type { Role, ToolCall } from '../../src/domain/entry.ts'
import { runSync } from '../../src/domain/work.ts'
import { openMemory } from '../../src/index.ts'
import { extractFacts } from '../../src/upkeep/extract/extract.ts'
import { summarise, summariseInSteps } from '../../src/upkeep/summarise/summarise.ts'
import type { SummaryMessage, SummaryTarget, SummaryText } from '../../src/upkeep/summarise/summary.ts'
import { verifies } from '../requirements/verifies.ts'

type Turn = readonly [role: Role, content: string, rest?: Partial<SummaryMessage>]

const chat = (turns: readonly Turn[], from = 1): SummaryMessage[] =>
  turns.map(([role, content, rest], at) => ({
    id: `m${from + at}`,
    sequence: from + at,
    at: 0,
    role,
    content,
    ...rest,
  }))
const wide: SummaryTarget = { words: [0, 1_000] }
const summaryOf = (...turns: readonly Turn[]): string => summarise(chat(turns), undefined, wide).text
const call = (id: string, name: string, values: object): { toolCalls: readonly ToolCall[] } => ({
  toolCalls: [{ id, name, arguments: JSON.stringify(values) }],
})

describe('summary › with pleasantries', () => {
  it.each([
    ['Thanks, Mel!', 'I ran 5 km on Monday.'],
    ['Vielen Dank!', 'Wir nehmen den Zug um 9 Uhr.'],
    ['Merci beaucoup !', 'Le budget est de 900 euros.'],
    ['¡Hola!', 'La entrega es el 12 de junio.'],
    ['Obrigado!', 'O prazo é 3 de maio.'],
    ['Dank je wel!', 'We nemen de trein van 9 uur.'],
    ['I hope this helps!', 'The order ships on 3 May.'],
  ])('%s › omits them', (pleasantry, statement) =>
    expect(summaryOf(['user', `${pleasantry} ${statement}`], ['assistant', pleasantry])).toBe(`User: ${statement}`),
  )
  it('before a statement › shows the statement alone', () =>
    expect(summaryOf(['user', 'Hi, the desk was picked up yesterday, haha.'])).toBe(
      'User: The desk was picked up yesterday',
    ))
  it('after a statement › shows the statement alone', () =>
    expect(summaryOf(['user', "We renovate the club house in May and I've been appointed chief painter, ha."])).toBe(
      'User: We renovate the club house in May',
    ))
  it('as the answer to a question › keeps both', () =>
    expect(summaryOf(['assistant', 'Shall I book the train to Bern?'], ['user', 'Yes.'])).toBe(
      'Assistant: Shall I book the train to Bern?\nUser: Yes.',
    ))
})

describe('summary › with sentences that refer to others', () => {
  it('has them with what they refer to, or not at all', () => {
    const story = 'Ana has a blue boat. It must never be sold below 12,500 EUR before 3 May.'
    const filler = 'Then there was this and that to talk about at some length for a while, as so often before.'
    for (let words = 6; words < 40; words++) {
      const { text } = summarise(
        chat([
          ['user', story],
          ['user', filler],
        ]),
        undefined,
        { words: [0, words] },
      )
      if (text.includes('It must never')) expect(text).toContain('Ana has a blue boat.')
    }
  })
})

describe('summary › of several days', () => {
  const may = Date.UTC(2023, 4, 8)
  const messages = chat([
    ['user', 'I ran a race yesterday.', { at: may, name: 'Ana' }],
    ['assistant', 'I painted a lake.', { at: may, name: 'Bo' }],
    ['user', 'We leave tomorrow.', { at: may + 86_400_000, name: 'Ana' }],
  ])
  it('names the day when it changes, and the year once', () =>
    expect(summarise(messages, undefined, wide).text).toBe(
      'Ana, 8 May 2023: I ran a race yesterday.\nBo: I painted a lake.\nAna, 9 May: We leave tomorrow.',
    ))
  it('summarised again keeps days and speakers', () => {
    const first = summarise(messages, undefined, wide)
    expect(summarise([], first, wide)).toEqual(first)
  })
})

describe('summary › of work with tools', () => {
  const work: readonly Turn[] = [
    ['user', 'Fix the rounding of invoices, please.'],
    ['assistant', '', call('c1', 'run_command', { command: 'npm test' })],
    [
      'tool',
      'FAIL test/a.test.ts\nAssertionError: expected 3 to be 2\nTests 3 failed | 30 passed',
      { toolCallId: 'c1' },
    ],
    ['assistant', 'Three tests fail.', call('c2', 'write_file', { path: 'src/round.ts', content: 'const a = 1;' })],
    ['tool', 'Wrote 1 line.', { toolCallId: 'c2' }],
    ['assistant', '', call('c3', 'create_file', { path: 'src/old.ts' })],
    ['tool', 'Created.', { toolCallId: 'c3' }],
    ['assistant', '', call('c4', 'run_command', { command: 'git rm src/old.ts && npm test -- --run' })],
    ['tool', ' 33 pass\n 0 fail', { toolCallId: 'c4' }],
    ['assistant', 'All 33 tests pass.\n```ts\nlastTaskIndex = matchLine;\n```'],
  ]
  it('shows the goal, the last results and the last state of files, and no code', () =>
    expect(summaryOf(...work)).toBe(
      [
        'User: Fix the rounding of invoices, please.',
        'Assistant: All 33 tests pass.',
        'Commands: npm test -- --run (33 pass, 0 fail)',
        'Files: src/round.ts (written); src/old.ts (deleted)',
      ].join('\n'),
    ))
  it('summarised in steps › shows the same', () => {
    const messages = chat(work)
    const first = summarise(messages.slice(0, 7), undefined, wide)
    expect(first.text).toContain('Commands: npm test (3 failed, 30 passed)')
    expect(summarise(messages.slice(7), first, wide).text).toBe(summaryOf(...work))
  })
  it('in a transcript takes commands with their output', () =>
    expect(
      summaryOf(
        ['user', 'It fails:\n\n❯ bun test\n16 pass\n2 fail'],
        ['assistant', 'I updated src/tasks.ts.\n```bash\nbun test\n```\n\n```\n18 pass\n0 fail\n```'],
      ),
    ).toContain('Commands: bun test (18 pass, 0 fail)\nFiles: src/tasks.ts (edited)'))
  it('omits lines of code and tables without a fence', () =>
    expect(summaryOf(['assistant', 'It is done.\nconst a = items[0];\nreturn a;\n| a | b |\nfoo(bar);'])).toBe(
      'Assistant: It is done.',
    ))
})

describe('summary › with a later value', () => {
  it.each([
    ['The deadline is 14 March.', 'The deadline was moved to 21 March.'],
    ['My budget is 12,500 EUR.', 'My budget is 14,000 EUR.'],
    ['Let us go with Postgres for storage.', 'We use MySQL instead of Postgres.'],
    ['My phone number is 0151 2299 4410.', 'My new number is 0160 771 0032.'],
    ['Please send it to 14 Elm Street.', 'We moved, our new address is 9 Quarry Road.'],
    ['Der Umzug ist am 27. Juni.', 'Der Umzug wird auf den 25. Juni verschoben.'],
    ['The restore failed yesterday.', 'The restore works now.'],
    ['We want to release on 1 June.', "We're moving the release forward to 8 May."],
    ["J'aimerais ouvrir le 1er juin.", "On repousse l'ouverture au jeudi 2 juillet."],
    ['I take 100 mg of aspirin every morning.', 'My cardiologist stopped the aspirin.'],
    ['Tom said yes, he plays the organ for 120 pounds at the ceremony.', "But Tom can't, he has to work that day."],
  ])('%s %s › has the later one only', (old, current) =>
    expect(summaryOf(['user', old], ['user', 'Ana likes cheese.'], ['user', current])).toBe(
      `User: Ana likes cheese.\n${current.replace('But ', '')}`,
    ),
  )
  it.each([
    ['That makes 40 euros, so 310 euros remain.', 'Then 280 euros of the budget remain.'],
    ['Mit den Kartons bleiben 1.240 Euro.', 'Vom Budget bleiben 990 Euro.'],
    ['Il reste 350 euros.', 'Il reste 270 euros pour les fleurs.'],
  ])('of a balance: %s %s › has the later one only', (old, current) =>
    expect(summaryOf(['assistant', old], ['user', 'Ana likes cheese.'], ['assistant', current])).toBe(
      `User: Ana likes cheese.\nAssistant: ${current}`,
    ),
  )
  it.each([
    ['Let us shift everything by a week.', 'The train leaves on 4 May at 9:10.'],
    ['Wir müssen alles um eine Woche verschieben.', 'Der Zug fährt am 4. Juni um 9:10 Uhr.'],
  ])('of all dates: %s › drops the earlier dates of an assistant', (shift, schedule) =>
    expect(summaryOf(['user', 'We meet Ana on 3 May.'], ['assistant', schedule], ['user', shift])).toBe(
      `User: We meet Ana on 3 May.\n${shift}`,
    ),
  )
  it('of a balance of another unit › has both', () => {
    const turns = ['Now 310 euros remain.', 'After this week 12 days remain.']
    expect(summaryOf(...turns.map((content): Turn => ['assistant', content]))).toBe(`Assistant: ${turns.join('\n')}`)
  })
  it.each([
    ['The club gives us a room from 1 September.', 'Until then we meet in the library.'],
    ['Der Verein gibt uns einen Raum ab 1. September.', 'Bis dahin treffen wir uns in der Bibliothek.'],
  ])('%s %s › drops what refers to the old one', (old, reference) => {
    const later = old.startsWith('The')
      ? 'The room from the club has been moved to 8 October.'
      : 'Der Raum vom Verein wird auf den 8. Oktober verschoben.'
    expect(summaryOf(['user', `${old} ${reference}`], ['user', later])).toBe(`User: ${later}`)
  })
  it.each([
    ['I stopped the server.', 'The server must never run as root.'],
    ["The printer can't, it is too old.", 'Always use the printer on the second floor.'],
  ])('%s › keeps other statements with its words: %s', (current, rule) =>
    expect(summaryOf(['user', rule], ['user', current])).toContain(rule),
  )
  it('summarised again › has the later one only', () => {
    const first = summarise(chat([['user', 'The deadline is 14 March.']]), undefined, wide)
    expect(summarise(chat([['user', 'The deadline was moved to 21 March.']], 2), first, wide).text).toBe(
      'User: The deadline was moved to 21 March.',
    )
  })
  it('of something else › has both', () => {
    const turns = [
      'I went to Rome on 3 May.',
      'The order of Ana is 4711.',
      'I now live in Bern since 8 June.',
      'The order of Bo is now 4712.',
    ]
    expect(summaryOf(...turns.map((content): Turn => ['user', content]))).toBe(`User: ${turns.join('\n')}`)
  })
})

describe('summary › with room for one sentence', () => {
  const turns: readonly Turn[] = [
    ['user', 'We decided on the blue tiles for the kitchen.', { name: 'Ann' }],
    ['user', 'The painter found mould behind the boiler on Monday.', { name: 'Ann' }],
  ]
  const target = { words: [0, 11] as const }

  it('and a sentence that is stored as a fact › takes another one', () => {
    const messages = chat(turns)
    const facts = extractFacts(messages)
    expect(summarise(messages, undefined, target).text).toContain('blue tiles')
    expect(runSync(summariseInSteps(messages, undefined, target, facts)).text).toBe(
      'Ann: The painter found mould behind the boiler on Monday.',
    )
    expect(runSync(summariseInSteps(messages, undefined, wide, facts)).text).toContain('blue tiles')
  })
  it('and an offer › takes the event', () =>
    expect(
      summarise(
        chat([
          ['user', 'The Ritz offers us 4 May at 120 euros instead.', { name: 'Ann' }],
          ['user', 'Ana paid the deposit for the Savoy on 3 May.', { name: 'Ann' }],
        ]),
        undefined,
        target,
      ).text,
    ).toBe('Ann: Ana paid the deposit for the Savoy on 3 May.'))
})

describe('summary › with pasted or quoted text', () => {
  it.each([
    ['"""\nMy name is Quentin and I live in Oslo.\n"""'],
    ['---\nMy name is Quentin and I live in Oslo.\n---'],
    ['> My name is Quentin and I live in Oslo.'],
    ['The page says "My name is Quentin and I live in Oslo".'],
  ])('%s › omits it', (pasted) =>
    expect(summaryOf(['user', `I found this leaflet.\n${pasted}\nWe stay in Bern.`])).toBe(
      'User: I found this leaflet. We stay in Bern.',
    ),
  )
})

describe('summary › with many numbers', () => {
  it('merges sentences that differ in figures only', () => {
    const { text, sources } = summarise(
      chat([5004, 5006, 5010, 5013].map((value, at): Turn => ['user', `The meter shows ${value} kWh in week ${at}.`])),
      undefined,
      wide,
    )
    expect(text).toBe(
      'Series: The meter shows 5004 kWh in week 0; 5006 kWh in week 1; 5010 kWh in week 2; 5013 kWh in week 3',
    )
    expect(sources.map(({ message }) => message)).toEqual(['m1', 'm2', 'm3', 'm4'])
  })
  it('after many rounds on top of a text with one source for all lines › names each source once', () => {
    let summary: SummaryText = { text: 'Series: The meter shows 7 kWh; 8', sources: [{ message: 'm1' }] }
    for (let round = 0; round < 8; round++) {
      const values = Array.from({ length: 40 }, (_, at): Turn => ['user', `The meter shows ${100 * round + at} kWh.`])
      summary = summarise(chat(values, 2 + 40 * round), summary, wide)
    }
    const messages = summary.sources.map(({ message }) => message)
    expect(summary.text.match(/^Series: /gm)).toHaveLength(9)
    expect(messages.toSorted()).toEqual([...new Set(messages)].toSorted())
  })
  it('shows a number that has no room for its sentence with the words around it', () => {
    const long = `I would like to talk ${'about this and that '.repeat(12)}and about order BK-20418 at some time.`
    expect(
      summarise(
        chat([
          ['user', 'I need help.'],
          ['user', long],
        ]),
        undefined,
        { words: [0, 9] },
      ).text,
    ).toMatch(/Details: .*order BK-20418/)
  })
  it('drops the bare names of a summary in the old format', () => {
    const old = {
      text: 'User: I moved to Oslo.\nAlso named: toBe, y.md',
      sources: [
        { message: 'm1', span: [0, 16] as const },
        { message: 'm2', span: [0, 4] as const },
        { message: 'm2', span: [5, 9] as const },
      ],
    }
    expect(summarise([], old, wide)).toEqual({ text: 'User: I moved to Oslo.', sources: old.sources.slice(0, 1) })
  })
})

describe('summary › with little room', () => {
  it.each([
    ['We decided to use SQLite for the archive.', 'The weather in the valley was rather nice.'],
    ['Nie an Freitagen liefern, bitte.', 'Das Wetter im Tal war recht schön.'],
    ['Le paiement doit passer par virement.', 'Le temps dans la vallée était assez beau.'],
    ['Nunca me llames por la mañana.', 'El tiempo en el valle era bastante bueno.'],
    ['Prefiro receber tudo por e-mail.', 'O tempo no vale estava bastante bom.'],
    ['We kiezen voor de blauwe versie.', 'Het weer in het dal was vrij mooi.'],
  ])('%s › prefers it to small talk', (important, other) => {
    const turns: Turn[] = [1, 2, 3].map(() => ['assistant', other, { name: 'Bo' }])
    const { text } = summarise(chat([...turns, ['user', important, { name: 'Ana' }]]), undefined, { words: [0, 9] })
    expect(text).toBe(`Ana: ${important}`)
  })
  verifies('C-07', 'after ten rounds still has a decision of the first one', () => {
    let summary: SummaryText | undefined
    const decision = 'We decided to use SQLite for the archive.'
    for (let round = 0; round < 10; round++) {
      const said = Array.from(
        { length: 12 },
        (_, at): Turn => [
          at % 2 === 0 ? 'user' : 'assistant',
          `On ${at + 1} May I saw film${round}x${at} with friend${at} in hall${round} and had tea${at} after it.`,
        ],
      )
      const turns: readonly Turn[] = round === 0 ? [...said, ['user', decision], ...said] : said
      summary = summarise(chat(turns, 1 + 100 * round), summary, { words: [60, 80] })
      expect(summary.text).toContain(decision)
    }
  })
})

describe('session summary of support › of many hours', () => {
  it('keeps the decision, the constraint and the preference', async () => {
    let now = Date.UTC(2026, 1, 3, 9)
    await using memory = await openMemory({ profile: 'support', clock: () => now })
    const important: Readonly<Record<number, string>> = {
      5: 'I decided to take the full refund.',
      31: 'Never deliver on Fridays.',
      57: 'I prefer contact by e-mail.',
    }
    for (let at = 0; at < 120; at++) {
      now += 30 * 60_000
      const talk = `On ${1 + (at % 28)} May I met friend${at} in Bergen. Yesterday we saw Ana${at} and paid ${at}.50 EUR for the tram to the harbour, where the old boat of my uncle lies next to the museum.`
      await memory.append('acme:ann', [{ role: at % 2 === 0 ? 'assistant' : 'user', content: important[at] ?? talk }])
      await memory.upkeep.whenIdle()
    }
    await memory.sweep()
    await memory.upkeep.whenIdle()
    const session = (await memory.upkeep.summaries('acme:ann')).find(({ tier }) => tier === 'session')
    for (const statement of Object.values(important)) expect(session?.text).toContain(statement)
  })
})

describe('summary › of events that differ in their figures', () => {
  it('keeps each of them: none replaces another', () => {
    const text = summaryOf(
      ...Array.from(
        { length: 6 },
        (_, at): Turn => ['user', `We moved module${at} to service-${at}, request ${70 + at}.`],
      ),
    )
    for (let at = 0; at < 6; at++) expect(text).toContain(`module${at}`)
  })
})
