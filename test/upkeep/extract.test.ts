import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { wordsOf } from '../../src/context/fees.ts'
import type { Role } from '../../src/domain/entry.ts'
import { extractFacts, type Found, fields, type Told } from '../../src/upkeep/extract.ts'
import { mergeFacts } from '../../src/upkeep/merge.ts'
import { recordOf } from '../../src/upkeep/record.ts'
import { verifies } from '../requirements/verifies.ts'

const says = (content: string, role: Role = 'user', id = 'm1'): Told => ({ id, role, content, at: 1_000 })
const found = (content: string): readonly Found[] => extractFacts([says(content)])
/** What is found besides names, as `field.key: value`. */
const told = (content: string): string[] =>
  found(content)
    .filter(({ field }) => field !== 'entities')
    .map(
      ({ field, key, value }) =>
        `${field}${key === '' ? '' : `.${key}`}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
    )
const names = (content: string): unknown[] =>
  found(content).flatMap(({ field, value }) => (field === 'entities' ? [value] : []))
const dataOf = (messages: readonly Told[]) =>
  recordOf(mergeFacts([], extractFacts(messages), { at: 0, id: String }).put).important_data

describe('important data', () => {
  verifies('C-05', 'the document’s conversation gives the data the document expects', () => {
    const data = dataOf([
      says('I prefer dark mode. My document should have sections for Introduction, Methods, Results.', 'user', 'm1'),
      says("Noted. I'll structure your document accordingly.", 'assistant', 'm2'),
      says('Important sources: https://example.com/paper1, https://example.com/paper2', 'user', 'm3'),
      says('The key finding is that X causes Y. This is critical for the paper.', 'user', 'm4'),
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
  verifies('C-05', 'no messages, and messages without important data, give the empty structure', () => {
    const empty = dataOf([])
    expect(Object.keys(empty)).toEqual([...fields])
    expect(Object.values(empty).every((value) => Object.keys(value).length === 0)).toBe(true)
    expect(dataOf([says(''), says('ok thanks!'), says('What is the weather like?')])).toEqual(empty)
  })
  verifies('C-05', 'the document’s preferences, structure and sources are found in the words of its last test', () => {
    expect(told('I prefer dark mode')).toEqual(['user_preferences.theme: dark'])
    expect(told('Document structure: Intro, Methods, Results, Conclusion')).toEqual([
      'document_structure.sections: ["Intro","Methods","Results","Conclusion"]',
    ])
    expect(told('Key sources: url1, url2')).toEqual(['source_urls: url1', 'source_urls: url2'])
  })
})

describe('a preference', () => {
  it.each([
    ['Actually I prefer light mode now.', 'theme: light'],
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
  ])('is told by %j', (content, expected) => expect(told(content)).toEqual([`user_preferences.${expected}`]))

  it('has the same key when it is changed', () => {
    const key = (content: string): unknown => found(content)[0]?.key
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
  ])('is not told by %j', (content) => expect(told(content)).toEqual([]))
  it('is told beside a quotation, and beside inches', () => {
    expect(told('"Use what you like," she said. I prefer dark mode.')).toEqual(['user_preferences.theme: dark'])
    expect(told('My screen has 27". I prefer dark mode.')).toEqual(['user_preferences.theme: dark'])
  })
  it('is told after a number, but not after somebody else’s name', () => {
    expect(told('Message 3: I prefer dark mode.')).toEqual(['user_preferences.theme: dark'])
    expect(told('Bob: I prefer dark mode.')).toEqual([])
  })
  it('is told before a question in the same sentence', () =>
    expect(told('I prefer dark mode, can you set it up?')).toEqual(['user_preferences.theme: dark']))
})

describe('decisions, rules and facts', () => {
  it.each([
    ["let's go with PostgreSQL", "key_decisions: let's go with PostgreSQL"],
    ['We decided to ship on Monday, because it is quiet.', 'key_decisions: We decided to ship on Monday'],
    ["OK, we'll use Redis for the queue.", "key_decisions: we'll use Redis for the queue"],
    ['I chose the blue template', 'key_decisions: I chose the blue template'],
    ['Never deploy on Fridays!', 'custom_fields.constraints.deploy_fridays: Never deploy on Fridays'],
    ["please don't use jQuery", "custom_fields.constraints.jquery: don't use jQuery"],
    ['Always run the tests first.', 'custom_fields.constraints.run_tests_first: Always run the tests first'],
    ['Important: the server moves to Frankfurt', 'important_facts: the server moves to Frankfurt'],
    ['Note that port 8443 is closed', 'important_facts: port 8443 is closed'],
    ['My cat is called Miso', 'important_facts: My cat is called Miso'],
    ['I live in Oslo', 'important_facts: I live in Oslo'],
    ['I work at Acme Corp.', 'important_facts: I work at Acme Corp'],
    ["I'm allergic to peanuts", "important_facts: I'm allergic to peanuts"],
    ['my birthday is 3 May', 'important_facts: my birthday is 3 May'],
    ['The deadline is Friday 12 June', 'important_facts: The deadline is Friday 12 June'],
    ['Our budget is 5,000 EUR.', 'important_facts: Our budget is 5,000 EUR'],
    ['I met Ana on 15 January 2024', 'important_facts: I met Ana on 15 January 2024'],
    ['Wichtig: das Budget ist 5000 Euro', 'important_facts: das Budget ist 5000 Euro'],
  ])('are told by %j', (content, expected) => expect(told(content)).toEqual([expected]))

  it.each([
    "Don't worry about it.",
    'Never mind.',
    "Let's see.",
    'My code is not working',
    "I'm a bit tired",
    'Remember me?',
    'Always good to hear!',
  ])('are not told by %j', (content) => expect(told(content)).toEqual([]))
  it('matter more when they are said to be critical', () => {
    expect(found('The key finding is that X causes Y.')[0]?.importance).toBe(7)
    expect(found('The key finding is that X causes Y. This is critical for the paper.')[0]?.importance).toBe(9)
  })
  it('leave the mark of a secret whole', () => {
    const mark = '⟨secret:123456⟩'
    expect(told(`Important: the key is ${mark}`)).toEqual([`important_facts: the key is ${mark}`])
    const long = `Important: ${'words and '.repeat(28)}${mark}${' and more'.repeat(10)}`
    const [fact] = found(long)
    expect(String(fact?.value).length).toBeLessThanOrEqual(300)
    expect(String(fact?.value).replaceAll(mark, '')).not.toContain('⟨')
  })
})

describe('structure, sources and names', () => {
  it.each([
    ['Here is the outline:\n- Intro\n- Methods\n- Results\n\nThanks', 'sections: ["Intro","Methods","Results"]'],
    ['Outline\n# One\n## Two\n# Three', 'sections: ["One","Two","Three"]'],
    ['The book should have chapters called Dawn, Noon and Dusk', 'chapters: ["Dawn","Noon","Dusk"]'],
  ])('a document is to be built as %j says', (content, expected) =>
    expect(told(content)).toEqual([`document_structure.${expected}`]),
  )
  it('a source is a URL without the punctuation around it', () =>
    expect(told('See (https://a.example/x_(y)), and https://b.example/?q=1.')).toEqual([
      'source_urls: https://a.example/x_(y)',
      'source_urls: https://b.example/?q=1',
    ]))
  it('a name has capitals inside a sentence', () => {
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

describe('the echo guard', () => {
  verifies('X-09', 'what a system, an assistant or a tool says is never a user’s fact', () =>
    expect(extractFacts((['system', 'assistant', 'tool'] as const).map((role) => says(secret, role)))).toEqual([]),
  )
  verifies('X-09', 'recalled memory in a user’s message is never a user’s fact', () => {
    expect(found(`<memory id="1">\n${secret}\n</memory>`)).toEqual([])
    expect(found(`before <memory>${secret}`)).toEqual([])
    for (const { recalled, before } of Object.values(wordsOf)) {
      expect(found(`${recalled}User: hello\n\n${secret}`)).toEqual([])
      if (before !== '') expect(found(`${before}${secret}`)).toEqual([])
    }
  })
  verifies('X-09', 'what a user quotes or pastes is not what the user says', () => {
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
    for (const content of pasted) expect(told(content)).toEqual([])
  })
  verifies('X-09', 'what stands beside a quotation is still found, with its place', () => {
    const content = `> I prefer light mode\n<memory>I live in Rome</memory>\nNo, I prefer dark mode.`
    expect(found(content)).toEqual([
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

describe('whatever is said', () => {
  verifies('X-09', 'each fact cites the words it was taken from', () =>
    fc.assert(
      fc.property(anything, (content) => {
        for (const { value, source } of found(content)) {
          const cited = content.slice(...(source.span as [number, number]))
          for (const text of [value].flat()) expect(cited).toContain(text)
        }
      }),
    ),
  )
  it('at most 40 things are found, none of more than 300 characters', () => {
    const many = found(Array.from({ length: 90 }, (_, place) => `My friend is called Zed${place}. `).join(''))
    expect(many).toHaveLength(40)
    expect(many.every(({ field }) => field === 'important_facts')).toBe(true)
    expect(String(found(`Important: ${'a word '.repeat(80)}`)[0]?.value).length).toBeLessThanOrEqual(300)
  })
})
