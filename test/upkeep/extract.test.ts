import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { framingTexts } from '../../src/context/composeContext.ts'
import type { Role } from '../../src/domain/entry.ts'
import { extractFacts } from '../../src/upkeep/extract/extract.ts'
import { type FactCandidate, type FactMessage, factFields } from '../../src/upkeep/extract/fields.ts'
import { mergeFacts } from '../../src/upkeep/extract/merge.ts'
import { buildRecord } from '../../src/upkeep/record.ts'
import { verifies } from '../requirements/verifies.ts'

const message = (content: string, role: Role = 'user', id = 'm1'): FactMessage => ({ id, role, content, at: 1_000 })
const extracted = (content: string): readonly FactCandidate[] => extractFacts([message(content)])
/** Extracted facts except names, as `field.key: value`. */
const facts = (content: string): string[] =>
  extracted(content)
    .filter(({ field }) => field !== 'entities')
    .map(
      ({ field, key, value }) =>
        `${field}${key === '' ? '' : `.${key}`}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
    )
const names = (content: string): unknown[] =>
  extracted(content).flatMap(({ field, value }) => (field === 'entities' ? [value] : []))
const dataOf = (messages: readonly FactMessage[]) =>
  buildRecord(mergeFacts([], extractFacts(messages), { at: 0, createId: String }).put).important_data

describe('extractFacts', () => {
  verifies('C-05', 'with the conversation of the source document returns the expected data', () => {
    const data = dataOf([
      message('I prefer dark mode. My document should have sections for Introduction, Methods, Results.', 'user', 'm1'),
      message("Noted. I'll structure your document accordingly.", 'assistant', 'm2'),
      message('Important sources: https://example.com/paper1, https://example.com/paper2', 'user', 'm3'),
      message('The key finding is that X causes Y. This is critical for the paper.', 'user', 'm4'),
    ])
    expect(data).toEqual({
      user_preferences: { theme: 'dark' },
      key_decisions: [],
      important_facts: ['X causes Y'],
      source_urls: ['https://example.com/paper1', 'https://example.com/paper2'],
      document_structure: { sections: ['Introduction', 'Methods', 'Results'] },
      entities: [],
      custom_fields: {},
    })
  })
  verifies('C-05', 'without messages or without important data returns the empty structure', () => {
    const empty = dataOf([])
    expect(Object.keys(empty)).toEqual([...factFields])
    expect(Object.values(empty).every((value) => Object.keys(value).length === 0)).toBe(true)
    expect(dataOf([message(''), message('ok thanks!'), message('What is the weather like?')])).toEqual(empty)
  })
  verifies('C-05', 'finds the preferences, structure and sources of the last test of the source document', () => {
    expect(facts('I prefer dark mode')).toEqual(['user_preferences.theme: dark'])
    expect(facts('Document structure: Intro, Methods, Results, Conclusion')).toEqual([
      'document_structure.sections: ["Intro","Methods","Results","Conclusion"]',
    ])
    expect(facts('Key sources: url1, url2')).toEqual(['source_urls: url1', 'source_urls: url2'])
  })
})

describe('extractFacts: preferences', () => {
  it.each([
    ['Actually I prefer light mode now.', 'theme: light'],
    ['I prefer window seats right  now, please.', 'seats: window seats'],
    ['use Arial', 'font: Arial'],
    ['Please use the Georgia font', 'font: Georgia'],
    ['Answer in German, please.', 'language: German'],
    ['Use metric units', 'units: metric'],
    ['I prefer a formal tone', 'tone: formal'],
    ['keep your answers short', 'length: short'],
    ['Be concise.', 'length: concise'],
    ['I like bullet points', 'format: bullet points'],
    ['Call me Sam', 'name: Sam'],
    ["I'm Nora, a nurse in training", 'name: Nora'],
    ['My timezone is CET', 'timezone: CET'],
    ["I'd rather use Neovim", 'editor: Neovim'],
    ['use tabs, not spaces', 'indentation: tabs'],
    ['always use single quotes', 'quotes: single'],
    ["By the way, I'm vegetarian", 'diet: vegetarian'],
    ['remember that I prefer tabs', 'indentation: tabs'],
    ['Note: I prefer tabs', 'indentation: tabs'],
    ['My favourite colour is teal.', 'favorite_colour: teal'],
    ['I prefer window seats', 'seats: window seats'],
    ['I prefer tea over coffee', 'coffee_or_tea: tea over coffee'],
    ['I love trail running with my dog', 'trail_running: love trail running with my dog'],
    ["I don't like mushrooms", "mushrooms: don't like mushrooms"],
  ])('finds one in %j', (content, expected) => expect(facts(content)).toEqual([`user_preferences.${expected}`]))

  it('keeps the key when the value changes', () => {
    const key = (content: string): unknown => extracted(content)[0]?.key
    expect(key('I prefer aisle seats now')).toBe(key('I prefer window seats'))
    expect(key('I prefer coffee to tea')).toBe(key('I prefer tea over coffee'))
    expect(key('I hate olives')).toBe(key('I like olives'))
  })
  it.each([
    'Do I prefer dark mode?',
    'Should we use Arial?',
    'If I preferred dark mode, I would say so.',
    "I don't prefer dark mode.",
    'He prefers dark mode.',
    'My boss says I prefer dark mode.',
    'She told me, I prefer dark mode.',
    'She said "I prefer dark mode" and left.',
    'She said "no, I prefer dark mode" and left.',
    'I like that.',
    'I love how you put it!',
    'I like the idea.',
    "I'd like to see the report.",
    'Call me later.',
  ])('finds none in %j', (content) => expect(facts(content)).toEqual([]))
  it('next to a quotation or an inch mark finds it', () => {
    expect(facts('"Use what you like," she said. I prefer dark mode.')).toEqual(['user_preferences.theme: dark'])
    expect(facts('My screen has 27". I prefer dark mode.')).toEqual(['user_preferences.theme: dark'])
  })
  it('after a list number finds it, after a speaker name does not', () => {
    expect(facts('Message 3: I prefer dark mode.')).toEqual(['user_preferences.theme: dark'])
    expect(facts('Bob: I prefer dark mode.')).toEqual([])
  })
  it('before a question in the same sentence finds it', () =>
    expect(facts('I prefer dark mode, can you set it up?')).toEqual(['user_preferences.theme: dark']))
})

describe('extractFacts: decisions, constraints and important facts', () => {
  it.each([
    ["let's go with PostgreSQL", "key_decisions.database: let's go with PostgreSQL"],
    ['We decided to ship on Monday, because it is quiet.', 'key_decisions.ship: We decided to ship on Monday'],
    ["OK, we'll use Redis for the queue.", "key_decisions.cache.queue: we'll use Redis for the queue"],
    ['I chose the blue template', 'key_decisions.template: I chose the blue template'],
    ['Never deploy on Fridays!', 'custom_fields.constraints.deploy_fridays: Never deploy on Fridays'],
    ["please don't use jQuery", "custom_fields.constraints.jquery: don't use jQuery"],
    ['Always run the tests first.', 'custom_fields.constraints.run_tests_first: Always run the tests first'],
    ['Important: the server moves to Frankfurt', 'important_facts: the server moves to Frankfurt'],
    ['Note that port 8443 is closed', 'important_facts.port: port 8443 is closed'],
    ['My cat is called Miso', 'important_facts.cat.miso: My cat is called Miso'],
    ['I live in Oslo', 'important_facts.home: I live in Oslo'],
    ['I work at Acme Corp.', 'important_facts.employer: I work at Acme Corp'],
    ["I'm allergic to peanuts", "important_facts.allergy.peanuts: I'm allergic to peanuts"],
    ['my birthday is 3 May', 'important_facts.birthday: my birthday is 3 May'],
    ['The deadline is Friday 12 June', 'important_facts.deadline: The deadline is Friday 12 June'],
    ['Our budget is 5,000 EUR.', 'important_facts.budget: Our budget is 5,000 EUR'],
    ['I met Ana on 15 January 2024', 'important_facts: I met Ana on 15 January 2024'],
    ['Wichtig: das Budget ist 5000 Euro', 'important_facts.budget: das Budget ist 5000 Euro'],
  ])('finds one in %j', (content, expected) => expect(facts(content)).toEqual([expected]))

  it.each([
    "Don't worry about it.",
    'Never mind.',
    "Let's see.",
    'My code is not working',
    "I'm a bit tired",
    'Remember me?',
    'Always good to hear!',
  ])('finds none in %j', (content) => expect(facts(content)).toEqual([]))
  it('marked as critical get a higher importance', () => {
    expect(extracted('The key finding is that X causes Y.')[0]?.importance).toBe(7)
    expect(extracted('The key finding is that X causes Y. This is critical for the paper.')[0]?.importance).toBe(9)
  })
  it('keep the placeholder of a secret intact', () => {
    const mark = '⟨secret:123456⟩'
    expect(facts(`Important: the key is ${mark}`)).toEqual([`important_facts: the key is ${mark}`])
    const long = `Important: ${'words and '.repeat(28)}${mark}${' and more'.repeat(10)}`
    const [fact] = extracted(long)
    expect(String(fact?.value).length).toBeLessThanOrEqual(300)
    expect(String(fact?.value).replaceAll(mark, '')).not.toContain('⟨')
  })
})

describe('extractFacts: structure, sources and names', () => {
  it.each([
    ['Here is the outline:\n- Intro\n- Methods\n- Results\n\nThanks', 'sections: ["Intro","Methods","Results"]'],
    ['Here is the outline:\n- **Intro:**\n- Methods\n- **:**\n- Results', 'sections: ["Intro","Methods"]'],
    ['Outline\n# One\n## Two\n# Three', 'sections: ["One","Two","Three"]'],
    ['The book should have chapters called Dawn, Noon and Dusk', 'chapters: ["Dawn","Noon","Dusk"]'],
  ])('finds a document structure in %j', (content, expected) =>
    expect(facts(content)).toEqual([`document_structure.${expected}`]),
  )
  it('returns a URL without surrounding punctuation', () =>
    expect(facts('See (https://a.example/x_(y)), and https://b.example/?q=1.')).toEqual([
      'source_urls: https://a.example/x_(y)',
      'source_urls: https://b.example/?q=1',
    ]))
  it('finds capitalised names inside sentences', () => {
    expect(names('Yesterday I met Ana Lopez from Acme in Oslo. We use PostgreSQL on Mondays.')).toEqual([
      'Ana Lopez',
      'Acme',
      'Oslo',
      'PostgreSQL',
    ])
    expect(names('Quarterly Report for Northern Europe')).toEqual([])
    expect(names('Really? Great. Thanks! OK, I see the API.')).toEqual([])
    expect(names('Die Katze sitzt auf der Matte und der Hund liegt neben dem Ofen.')).toEqual([])
  })
})

const secret = 'I prefer dark mode. My cat is called Miso. https://a.example/x'

describe('extractFacts: text that is not the user’s own', () => {
  verifies('X-09', 'from system, assistant and tool messages is ignored', () =>
    expect(extractFacts((['system', 'assistant', 'tool'] as const).map((role) => message(secret, role)))).toEqual([]),
  )
  verifies('X-09', 'recalled memory in a user message is ignored', () => {
    expect(extracted(`<memory id="1">\n${secret}\n</memory>`)).toEqual([])
    expect(extracted(`before <memory>${secret}`)).toEqual([])
    for (const { recalled, before } of Object.values(framingTexts)) {
      expect(extracted(`${recalled}User: hello\n\n${secret}`)).toEqual([])
      if (before !== '') expect(extracted(`${before}${secret}`)).toEqual([])
    }
  })
  verifies('X-09', 'quoted and pasted text is ignored', () => {
    const pasted = [
      `> ${secret}`,
      `\`\`\`\n${secret}\n\`\`\``,
      `<div>\n${secret}\n</div>`,
      '{"note": "I prefer dark mode", "see": "https://a.example/x"}',
      '{\n  "note": "I prefer dark mode"\n}',
      '2024-05-01T10:00:00Z INFO I prefer dark mode',
      'Assistant: I prefer dark mode',
      'Ana: I see. I prefer dark mode',
      'He said: "Fine. I prefer dark mode. Call me Bo."',
      `On Monday Ana wrote:\n${secret}`,
      `From: ana@a.example\nSubject: modes\n\n${secret}`,
    ]
    for (const content of pasted) expect(facts(content)).toEqual([])
  })
  verifies('X-09', 'own text next to a quotation is extracted with its span', () => {
    const content = `> I prefer light mode\n<memory>I live in Rome</memory>\nNo, I prefer dark mode.`
    expect(extracted(content)).toEqual([
      {
        field: 'user_preferences',
        key: 'theme',
        value: 'dark',
        importance: 9,
        at: 1_000,
        source: { message: 'm1', span: [58, 76] },
      },
    ])
    expect(content.slice(58, 76)).toBe('I prefer dark mode')
  })
})

const bit = fc.constantFrom(
  ...[
    'I prefer',
    ' dark mode',
    '. ',
    ', ',
    'My cat is called Miso',
    "don't use ",
    'jQuery',
    '\n',
    '> ',
    '```\n',
    '<memory>',
    '</memory>',
    '"',
    'if ',
    '?',
    ' and ',
  ],
  ...[
    'https://a.example/b',
    'sections: A, B, C',
    '- One\n',
    '⟨secret:1⟩',
    "let's go with ",
    'Ana Lopez',
    ' on 3 May',
    'é',
    '🇩🇪',
    '重要：',
    '5',
  ],
)
const anything = fc.array(fc.oneof(bit, fc.string({ maxLength: 4 })), { maxLength: 60 }).map((bits) => bits.join(''))

describe('extractFacts: with arbitrary text', () => {
  verifies('X-09', 'cites the passage each fact was taken from', () =>
    fc.assert(
      fc.property(anything, (content) => {
        for (const { value, source } of extracted(content)) {
          const cited = content.slice(...(source.span as [number, number]))
          for (const text of [value].flat()) expect(cited).toContain(text)
        }
      }),
    ),
  )
  it('returns at most 40 facts of at most 300 characters', () => {
    const facts = extracted(Array.from({ length: 90 }, (_, index) => `My friend is called Zed${index}. `).join(''))
    expect(facts).toHaveLength(40)
    expect(facts.every(({ field }) => field === 'important_facts')).toBe(true)
    expect(String(extracted(`Important: ${'a word '.repeat(80)}`)[0]?.value).length).toBeLessThanOrEqual(300)
  })
})
