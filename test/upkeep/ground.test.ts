import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Role } from '../../src/domain/entry.ts'
import { repairJson } from '../../src/text/repair.ts'
import type { Told } from '../../src/upkeep/extract.ts'
import { groundFacts } from '../../src/upkeep/ground.ts'
import { verifies } from '../requirements/verifies.ts'

const says = (content: string, id = 'm1', role: Role = 'user'): Told => ({ id, role, content, at: Number(id.slice(1)) })
/** What is left of an answer, as `field.key: value`, and how much was refused. */
function ground(answer: unknown, ...messages: readonly (string | Told)[]): { left: string[]; refused: number } {
  const { found, refused } = groundFacts(
    answer,
    messages.map((message, place) => (typeof message === 'string' ? says(message, `m${place + 1}`) : message)),
  )
  return {
    left: found.map(
      ({ field, key, value }) =>
        `${field}${key === '' ? '' : `.${key}`}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
    ),
    refused,
  }
}
const none = (refused: number) => ({ left: [], refused })

describe('what a model has extracted', () => {
  verifies(['C-05', 'X-09'], 'stands if a user has said it, with message and span', () => {
    const content = 'Hello there. I prefer dark mode, thanks.'
    const { found, refused } = groundFacts({ user_preferences: { theme: 'dark' } }, [
      says('hi', 'm1'),
      says(content, 'm2'),
    ])
    expect(found).toEqual([
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
    expect(refused).toBe(0)
  })
  verifies(['C-05', 'X-09'], 'is refused if it is invented, or the example of a prompt', () => {
    const example = {
      user_preferences: { theme: 'dark' },
      key_decisions: ['Use PostgreSQL'],
      important_facts: ['X causes Y'],
      source_urls: ['https://example.com/paper1'],
    }
    expect(ground(example, 'What is the capital of Norway?', 'I live in Oslo.')).toEqual(none(4))
    expect(ground({ important_facts: ['lives in Oslo since 1999'] }, 'I live in Oslo.')).toEqual(none(1))
  })
  verifies('X-09', 'is refused if only a tool, a system or an assistant has said it, or a user has quoted it', () => {
    const answer = { important_facts: ['The cat is called Miso'] }
    for (const role of ['tool', 'system', 'assistant'] as const)
      expect(ground(answer, says('The cat is called Miso.', 'm1', role))).toEqual(none(1))
    expect(ground(answer, '> The cat is called Miso.')).toEqual(none(1))
    expect(ground(answer, '<memory>The cat is called Miso.</memory> Is that so?')).toEqual(none(1))
    expect(ground(answer, 'The cat is called Miso.').left).toEqual(['important_facts: The cat is called Miso'])
  })
  it('may say `the user` where the user says `I`, in another form of the word', () =>
    expect(ground({ important_facts: ['User lives in Oslo'] }, 'I live in Oslo.').left).toEqual([
      'important_facts: User lives in Oslo',
    ]))
  it('is refused if the user asks, supposes or denies it, or says it of others', () => {
    const answer = { user_preferences: { theme: 'dark' } }
    for (const content of [
      'Should I use dark mode?',
      'If I liked dark mode, fine.',
      "I don't like dark mode.",
      'I hate dark mode',
      'She prefers dark mode.',
      'They want dark mode',
    ])
      expect([content, ground(answer, content)]).toEqual([content, none(1)])
    expect(ground({ user_preferences: { dislikes: 'dark mode' } }, 'I hate dark mode').refused).toBe(0)
    expect(ground({ user_preferences: { indentation: 'spaces' } }, 'I use tabs, not spaces')).toEqual(none(1))
    expect(ground({ custom_fields: { constraints: ['deploy on Fridays'] } }, 'Never deploy on Fridays.')).toEqual(
      none(1),
    )
    expect(ground({ important_facts: ['never deployed on Fridays'] }, 'We deployed on Fridays.')).toEqual(none(1))
  })
  it('needs its words close together, in one message', () => {
    const answer = { important_facts: ['the cat Miso lives in Oslo'] }
    expect(ground(answer, 'My cat is Miso.', 'It lives in Oslo.')).toEqual(none(1))
    expect(ground(answer, `My cat is Miso. ${'Something else. '.repeat(4)}It lives in Oslo.`)).toEqual(none(1))
    expect(ground(answer, 'My cat is Miso. It lives in Oslo.').refused).toBe(0)
  })
  it('needs every number, URL and identifier to the letter', () => {
    expect(
      ground(
        { important_facts: ['budget is 5000 EUR', 'budget is 500 EUR', 'budget is 50,000 EUR'] },
        'Our budget is 5,000 EUR.',
      ),
    ).toEqual({
      left: ['important_facts: budget is 5000 EUR'],
      refused: 2,
    })
    expect(
      ground(
        { source_urls: ['https://a.example/x?q=1', 'https://a.example/x?q=1&p=2', 'https://a.example'] },
        'See https://a.example/x?q=1&p=2.',
      ),
    ).toEqual({
      left: ['source_urls: https://a.example/x?q=1&p=2'],
      refused: 2,
    })
    expect(ground({ important_facts: ['the bug is in src/user.ts'] }, 'The bug is in src/userName.ts')).toEqual(none(1))
  })
  it('needs more than a small number, or a word that everybody says', () => {
    expect(
      ground(
        { custom_fields: { team_size: 5, floors: 5 }, important_facts: [7, 'yes'] },
        'Our team has a size of 5. Yes, 7.',
      ),
    ).toEqual({
      left: ['custom_fields.team_size: 5'],
      refused: 3,
    })
  })
  it('cites the last time a key was given its value, and the first time a list was', () => {
    const messages = [says('I prefer dark mode and met Ana', 'm1'), says('Still, I prefer dark mode. Ana agrees', 'm2')]
    const { found } = groundFacts({ user_preferences: { theme: 'dark' }, entities: ['Ana'] }, messages)
    expect(found.map(({ source }) => source.message)).toEqual(['m2', 'm1'])
  })
})

describe('an answer of another shape', () => {
  const content =
    'I prefer dark mode. We chose Redis. I met Ana in Oslo. Never deploy on Fridays. Sections: Intro, Methods.'
  it.each([
    ['a text for a list', { key_decisions: 'chose Redis' }, ['key_decisions: chose Redis']],
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
  ])('is understood: %s', (_, answer, expected) =>
    expect(ground(answer, content)).toEqual({ left: expected, refused: 0 }),
  )
  it('loses only the pieces that say nothing', () =>
    expect(
      ground(
        {
          user_preferences: { theme: 'dark', a: true, b: null, c: { d: { e: 'dark' } } },
          entities: [[], {}, 'Ana', null],
        },
        content,
      ),
    ).toEqual({
      left: ['user_preferences.theme: dark', 'entities: Ana'],
      refused: 6,
    }))
  it.each([undefined, null, 'text', 42, [], [1], {}, { user_preferences: null }])(
    'that holds nothing, %j, gives nothing',
    (answer) => expect(ground(answer, content)).toEqual(none(0)),
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

describe('whatever a model answers', () => {
  verifies('X-09', 'what stands is cited from a user, in words that hold it', () =>
    fc.assert(
      fc.property(
        fc.array(fc.tuple(sentence, fc.constantFrom<Role>('user', 'tool', 'assistant')), { maxLength: 4 }),
        fc.array(sentence, { maxLength: 6 }),
        (said, facts) => {
          const messages = said.map(([content, role], place) => says(content, `m${place + 1}`, role))
          const { found, refused } = groundFacts(
            { important_facts: facts, user_preferences: { theme: 'dark' } },
            messages,
          )
          expect(found.length + refused).toBe(facts.length + 1)
          for (const { value, source } of found) {
            const message = messages.find(({ id }) => id === source.message)
            const cited = message?.content.slice(...(source.span as [number, number])) ?? ''
            expect(message?.role).toBe('user')
            for (const name of String(value).match(/dark|Ana|5,000|Oslo|prefer|https\S+/g) ?? [])
              expect(cited).toContain(name)
          }
        },
      ),
    ),
  )
  it('is dealt with', () =>
    fc.assert(
      fc.property(fc.anything(), (answer) => {
        const { found, refused } = groundFacts({ user_preferences: answer, entities: answer }, [says('Ana')])
        expect(found.length + refused).toBeGreaterThanOrEqual(0)
      }),
    ))
  it('is dealt with when it had to be repaired', () =>
    expect(
      ground(
        repairJson("```json\n{user_preferences: {'theme': 'dark',}, entities: ['Ana', 'Bo"),
        'I prefer dark mode, says Ana',
      ),
    ).toEqual({
      left: ['user_preferences.theme: dark', 'entities: Ana'],
      refused: 0,
    }))
})
