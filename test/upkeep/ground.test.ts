import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Role } from '../../src/domain/entry.ts'
import { repairJson } from '../../src/text/json.ts'
import type { FactMessage } from '../../src/upkeep/extract/fields.ts'
import { groundFacts } from '../../src/upkeep/extract/ground.ts'
import { verifies } from '../requirements/verifies.ts'
import { measureCpu } from '../text/hostileTexts.ts'

const message = (content: string, id = 'm1', role: Role = 'user'): FactMessage => ({
  id,
  role,
  content,
  at: Number(id.slice(1)),
})
/** Grounded facts as `field.key: value`, and the number of rejected claims. */
function ground(
  answer: unknown,
  ...messages: readonly (string | FactMessage)[]
): { facts: string[]; rejected: number } {
  const { facts, rejected } = groundFacts(
    answer,
    messages.map((given, index) => (typeof given === 'string' ? message(given, `m${index + 1}`) : given)),
  )
  return {
    facts: facts.map(
      ({ field, key, value }) =>
        `${field}${key === '' ? '' : `.${key}`}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
    ),
    rejected,
  }
}
const noFacts = (rejected: number) => ({ facts: [], rejected })

describe('groundFacts', () => {
  verifies(['C-05', 'X-09'], 'with a claim that a user stated returns it with message and span', () => {
    const content = 'Hello there. I prefer dark mode, thanks.'
    const { facts, rejected } = groundFacts({ user_preferences: { theme: 'dark' } }, [
      message('hi', 'm1'),
      message(content, 'm2'),
    ])
    expect(facts).toEqual([
      {
        field: 'user_preferences',
        key: 'theme',
        value: 'dark',
        importance: 8,
        at: 2,
        source: { message: 'm2', span: [13, 31] },
      },
    ])
    expect(content.slice(13, 31)).toBe('I prefer dark mode')
    expect(rejected).toBe(0)
  })
  verifies(['C-05', 'X-09'], 'with an invented claim or the example of a prompt rejects it', () => {
    const example = {
      user_preferences: { theme: 'dark' },
      key_decisions: ['Use PostgreSQL'],
      important_facts: ['X causes Y'],
      source_urls: ['https://example.com/paper1'],
    }
    expect(ground(example, 'What is the capital of Norway?', 'I live in Oslo.')).toEqual(noFacts(4))
    expect(ground({ important_facts: ['lives in Oslo since 1999'] }, 'I live in Oslo.')).toEqual(noFacts(1))
  })
  verifies('X-09', 'with a claim stated only by a tool, system or assistant, or quoted by a user, rejects it', () => {
    const answer = { important_facts: ['The cat is called Miso'] }
    for (const role of ['tool', 'system', 'assistant'] as const)
      expect(ground(answer, message('The cat is called Miso.', 'm1', role))).toEqual(noFacts(1))
    expect(ground(answer, '> The cat is called Miso.')).toEqual(noFacts(1))
    expect(ground(answer, '<memory>The cat is called Miso.</memory> Is that so?')).toEqual(noFacts(1))
    expect(ground(answer, 'The cat is called Miso.').facts).toEqual(['important_facts: The cat is called Miso'])
  })
  it('with `the user` for `I` and another word form accepts the claim', () =>
    expect(ground({ important_facts: ['User lives in Oslo'] }, 'I live in Oslo.').facts).toEqual([
      'important_facts.home: User lives in Oslo',
    ]))
  it('with a claim that the user asks, supposes, negates or message of others rejects it', () => {
    const answer = { user_preferences: { theme: 'dark' } }
    for (const content of [
      'Should I use dark mode?',
      'If I liked dark mode, fine.',
      "I don't like dark mode.",
      'I hate dark mode',
      'She prefers dark mode.',
      'They want dark mode',
    ])
      expect([content, ground(answer, content)]).toEqual([content, noFacts(1)])
    expect(ground({ user_preferences: { dislikes: 'dark mode' } }, 'I hate dark mode').rejected).toBe(0)
    expect(ground({ user_preferences: { indentation: 'spaces' } }, 'I use tabs, not spaces')).toEqual(noFacts(1))
    expect(ground({ custom_fields: { constraints: ['deploy on Fridays'] } }, 'Never deploy on Fridays.')).toEqual(
      noFacts(1),
    )
    expect(ground({ important_facts: ['never deployed on Fridays'] }, 'We deployed on Fridays.')).toEqual(noFacts(1))
  })
  it('with terms far apart or in different messages rejects the claim', () => {
    const answer = { important_facts: ['the cat Miso lives in Oslo'] }
    expect(ground(answer, 'My cat is Miso.', 'It lives in Oslo.')).toEqual(noFacts(1))
    expect(ground(answer, `My cat is Miso. ${'Something else. '.repeat(4)}It lives in Oslo.`)).toEqual(noFacts(1))
    expect(ground(answer, 'My cat is Miso. It lives in Oslo.').rejected).toBe(0)
  })
  it('requires numbers, URLs and identifiers literally', () => {
    expect(
      ground(
        { important_facts: ['budget is 5000 EUR', 'budget is 500 EUR', 'budget is 50,000 EUR'] },
        'Our budget is 5,000 EUR.',
      ),
    ).toEqual({
      facts: ['important_facts.budget: budget is 5000 EUR'],
      rejected: 2,
    })
    expect(
      ground(
        { source_urls: ['https://a.example/x?q=1', 'https://a.example/x?q=1&p=2', 'https://a.example'] },
        'See https://a.example/x?q=1&p=2.',
      ),
    ).toEqual({
      facts: ['source_urls: https://a.example/x?q=1&p=2'],
      rejected: 2,
    })
    expect(ground({ important_facts: ['the bug is in src/user.ts'] }, 'The bug is in src/userName.ts')).toEqual(
      noFacts(1),
    )
  })
  it('with only a small number or a common word rejects the claim', () => {
    expect(
      ground(
        { custom_fields: { team_size: 5, floors: 5 }, important_facts: [7, 'yes'] },
        'Our team has a size of 5. Yes, 7.',
      ),
    ).toEqual({
      facts: ['custom_fields.team_size: 5'],
      rejected: 3,
    })
  })
  it('cites the last statement of a key and the first of a list value', () => {
    const messages = [
      message('I prefer dark mode and met Ana', 'm1'),
      message('Still, I prefer dark mode. Ana agrees', 'm2'),
    ]
    const { facts } = groundFacts({ user_preferences: { theme: 'dark' }, entities: ['Ana'] }, messages)
    expect(facts.map(({ source }) => source.message)).toEqual(['m2', 'm1'])
  })
})

describe('groundFacts: of many short messages', () => {
  it('reads each claim once', () => {
    const messages = Array.from({ length: 3_000 }, (_, at) => message(`Room ${at} is warm.`, `m${at + 1}`))
    const claims = Array.from({ length: 400 }, (_, at) => `The lamp in garage ${at} needs a new cable before winter`)
    expect(measureCpu(() => groundFacts({ important_facts: claims }, messages))).toBeLessThan(2_000)
  })
})

describe('groundFacts: of a message with thousands of commas', () => {
  it('finds the shortest passage of each claim in seconds', () => {
    const claims = Array.from({ length: 100 }, () => 'cat dog zebra')
    const content = `I have a ${'cat, '.repeat(13_000)}dog, zebra.`
    let spans: unknown[] = []
    const cpu = measureCpu(() => {
      spans = groundFacts({ important_facts: claims }, [message(content)]).facts.map(({ source }) => source.span)
    })
    expect(new Set(spans.map(String))).toEqual(new Set([`${content.lastIndexOf(' cat')},${content.length}`]))
    expect(cpu).toBeLessThan(2_000)
  })
})

describe('groundFacts: in other languages', () => {
  it.each([
    ['Ich wohne seit 2019 in Bern.', { important_facts: ['wohnt seit 2019 in Bern'] }],
    ['Ich mag am liebsten dunkle Themen.', { user_preferences: { thema: 'dunkle Themen' } }],
    ['Ich esse kein Fleisch.', { important_facts: ['isst kein Fleisch'] }, 'rejected'],
    ['Je préfère le mode sombre.', { user_preferences: { theme: 'mode sombre' } }],
    ['Mon budget est de 500 euros.', { important_facts: ['budget de 500 euros'] }],
    ['Prefiero respuestas cortas.', { user_preferences: { length: 'respuestas cortas' } }],
    ['Vivo en Sevilla desde enero.', { important_facts: ['vive en Sevilla desde enero'] }],
    ['O meu filho chama-se Tomás.', { important_facts: ['o filho chama-se Tomás'] }],
    ['Ik hou van wandelen in Drenthe.', { user_preferences: { hobby: 'wandelen in Drenthe' } }],
    ['Abito a Torino dal 2015.', { important_facts: ['abito a Torino dal 2015'] }],
    ['Mieszkam w Krakowie od 2015.', { important_facts: ['Mieszkam w Krakowie od 2015'] }],
    ['私は東京に住んでいます。', { important_facts: ['東京に住んでいます'] }],
    ['Я предпочитаю тёмную тему.', { user_preferences: { theme: 'тёмную тему' } }],
  ])('with %j and the claim %j › accepts what the message says', (content, answer, outcome = 'accepted') =>
    expect(ground(answer, content).rejected).toBe(outcome === 'accepted' ? 0 : 1),
  )
  it.each([
    ['Ich esse kein Fleisch.', { important_facts: ['Ich esse Fleisch'] }],
    ["Je n'aime pas le mode sombre.", { user_preferences: { theme: 'mode sombre' } }],
    ['No vivo en Sevilla.', { important_facts: ['vivo en Sevilla'] }],
    ['Als ik in Drenthe woonde, zou ik wandelen.', { important_facts: ['in Drenthe woonde'] }],
    ['Wohnt Ana in Bern?', { important_facts: ['Ana wohnt in Bern'] }],
    ['私は大阪に住んでいます。', { important_facts: ['東京に住んでいます'] }],
    ['Я не живу в Туле.', { important_facts: ['живу в Туле'] }],
  ])('with %j and the contrary claim %j › rejects it', (content, answer) =>
    expect(ground(answer, content)).toEqual(noFacts(1)),
  )
})

describe('groundFacts: slots', () => {
  it('with a statement that fills a slot › uses the slot of the rules', () => {
    expect(ground({ important_facts: ['lives in Oslo'] }, 'I live in Oslo.').facts).toEqual([
      'important_facts.home: lives in Oslo',
    ])
    expect(ground({ key_decisions: ['use MySQL'] }, 'I changed my mind: use MySQL').facts).toEqual([
      'key_decisions.database: use MySQL',
    ])
  })
})

describe('groundFacts: deviating answer shapes', () => {
  const content =
    'I prefer dark mode. We chose Redis. I met Ana in Oslo. Never deploy on Fridays. Sections: Intro, Methods.'
  it.each([
    ['a text for a list', { key_decisions: 'chose Redis' }, ['key_decisions.cache: chose Redis']],
    ['an object for a list', { entities: { person: 'Ana', places: ['Oslo'] } }, ['entities: Ana', 'entities: Oslo']],
    ['objects in a list', { entities: [{ type: 'person', name: 'Ana' }] }, ['entities: Ana']],
    ['one level more', { user_preferences: { ui: { theme: 'dark' } } }, ['user_preferences.ui.theme: dark']],
    ['a list for an object', { user_preferences: ['prefers dark mode'] }, ['user_preferences.theme: dark']],
    [
      'a list of sections',
      { document_structure: ['Intro', 'Methods'] },
      ['document_structure.sections: ["Intro","Methods"]'],
    ],
    ['everything wrapped', { important_data: { entities: ['Ana'] } }, ['entities: Ana']],
    ['names of another style', { user_preferences: { 'Color Scheme': 'dark' } }, ['user_preferences.theme: dark']],
    [
      'rules',
      { custom_fields: { constraints: ['Never deploy on Fridays'] } },
      ['custom_fields.constraints.deploy_fridays: Never deploy on Fridays'],
    ],
  ])('accepts %s', (_, answer, expected) => expect(ground(answer, content)).toEqual({ facts: expected, rejected: 0 }))
  it('drops only the unusable parts', () =>
    expect(
      ground(
        {
          user_preferences: { theme: 'dark', a: true, b: null, c: { d: { e: 'dark' } } },
          entities: [[], {}, 'Ana', null],
        },
        content,
      ),
    ).toEqual({
      facts: ['user_preferences.theme: dark', 'entities: Ana'],
      rejected: 6,
    }))
  it.each([undefined, null, 'text', 42, [], [1], {}, { user_preferences: null }])(
    'with the empty answer %j returns nothing',
    (answer) => expect(ground(answer, content)).toEqual(noFacts(0)),
  )
})

const word = fc.constantFrom(
  'I',
  'prefer',
  'dark',
  'mode',
  'Ana',
  '5,000',
  'not',
  'Oslo',
  'https://a.example/x',
  ',',
  '.',
  '?',
  'the',
  'if',
  '>',
  '\n',
  '<memory>',
  '"',
)
const sentence = fc.array(word, { maxLength: 25 }).map((words) => words.join(' '))

describe('groundFacts: with arbitrary answers', () => {
  verifies('X-09', 'cites a user passage that contains the value', () =>
    fc.assert(
      fc.property(
        fc.array(fc.tuple(sentence, fc.constantFrom<Role>('user', 'tool', 'assistant')), { maxLength: 4 }),
        fc.array(sentence, { maxLength: 6 }),
        (turns, claimed) => {
          const messages = turns.map(([content, role], index) => message(content, `m${index + 1}`, role))
          const { facts, rejected } = groundFacts(
            { important_facts: claimed, user_preferences: { theme: 'dark' } },
            messages,
          )
          expect(facts.length + rejected).toBe(claimed.length + 1)
          for (const { value, source } of facts) {
            const cited = messages.find(({ id }) => id === source.message)
            const passage = cited?.content.slice(...(source.span as [number, number])) ?? ''
            expect(cited?.role).toBe('user')
            for (const name of String(value).match(/dark|Ana|5,000|Oslo|prefer|https\S+/g) ?? [])
              expect(passage).toContain(name)
          }
        },
      ),
    ),
  )
  it('never throws', () =>
    fc.assert(
      fc.property(fc.anything(), (answer) => {
        const { facts, rejected } = groundFacts({ user_preferences: answer, entities: answer }, [message('Ana')])
        expect(facts.length + rejected).toBeGreaterThanOrEqual(0)
      }),
    ))
  it('never throws on repaired JSON', () =>
    expect(
      ground(
        repairJson("```json\n{user_preferences: {'theme': 'dark',}, entities: ['Ana', 'Bo"),
        'I prefer dark mode, says Ana',
      ),
    ).toEqual({
      facts: ['user_preferences.theme: dark', 'entities: Ana'],
      rejected: 0,
    }))
})
