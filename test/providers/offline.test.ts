import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { wordsOf } from '../../src/context/fees.ts'
import type { ChatMessage } from '../../src/domain/ledger.ts'
import { offlineModel } from '../../src/providers/offline.ts'
import { failureOf, piecesOf } from './gather.ts'

const nothing =
  'No language model is configured, so I can only quote what I remember, and I remember nothing about this. I have noted your message. ' +
  'For real answers, name a model server with --upstream or OPENAI_BASE_URL.'

const user = (content: string): ChatMessage => ({ role: 'user', content })
const assistant = (content: string): ChatMessage => ({ role: 'assistant', content })
const system = (content: string): ChatMessage => ({ role: 'system', content })

const answer = async (...messages: ChatMessage[]): Promise<string> =>
  (await piecesOf(offlineModel(), { messages })).join('')

describe('offlineModel', () => {
  it('quotes what the user told it on the question', async () => {
    expect(offlineModel().name).toBe('threadkeep-offline')
    expect(
      await answer(
        user('My cat is called Miso.'),
        assistant('A fine name.'),
        user('I live in Oslo.'),
        user('What is my cat called?'),
      ),
    ).toBe('From what you told me: "My cat is called Miso."')
  })

  it('streams word by word', async () => {
    const messages = [user('My cat is called Miso.'), user('What is my cat called?')]
    expect(await piecesOf(offlineModel(), { messages })).toEqual([
      'From ',
      'what ',
      'you ',
      'told ',
      'me: ',
      '"My ',
      'cat ',
      'is ',
      'called ',
      'Miso."',
    ])
  })

  it('says plainly that no model is there when it remembers nothing, and how to have one', async () => {
    expect(await answer(user('What is my cat called?'))).toBe(nothing)
    expect(await answer(user('I live in Oslo.'), user('What is my cat called?'))).toBe(nothing)
    expect(await answer(user('Hello'))).toBe(nothing)
    expect(await answer(user(''))).toBe(nothing)
    expect(await answer()).toBe(nothing)
  })

  it('quotes only the sentence that matters, with the one that refers to it', async () => {
    const told = user(
      'Good news today! We adopted a cat at the shelter. Her name is Miso. The weather was awful, by the way.',
    )
    expect(await answer(told, user('Did we get a cat?'))).toBe(
      'From what you told me: "We adopted a cat at the shelter. Her name is Miso."',
    )
  })

  it('quotes at most three statements, in the order in which they were made', async () => {
    const told = ['red', 'green', 'blue', 'grey'].map((colour) => user(`My bicycle is ${colour}.`))
    expect(await answer(...told, user('Which bicycle?'))).toBe(
      'From what you told me: "My bicycle is green." "My bicycle is blue." "My bicycle is grey."',
    )
  })

  it('weighs rare words more than common ones', async () => {
    const told = [user('I like my bicycle.'), user('I like my piano.'), user('I like my garden.')]
    expect(await answer(...told, user('Do I like the piano?'))).toBe('From what you told me: "I like my piano."')
  })

  it("prefers the user's statements over questions and over the model's own words", async () => {
    const told = [
      user('Does my cat like tuna?'),
      assistant('Cats like tuna, and your cat surely does.'),
      user('My cat hates tuna.'),
    ]
    expect(await answer(...told, user('What about my cat and tuna?'))).toBe(
      'From what you told me: "My cat hates tuna."',
    )
    expect(await answer(...told.slice(0, 2), user('What about my cat and tuna?'))).toBe(
      'From this conversation: "Cats like tuna, and your cat surely does."',
    )
  })

  it('never takes the question itself for memory, however often it was asked', async () => {
    const question = 'What is my cat called?'
    expect(await answer(user(question), assistant(nothing), system(`User: ${question}`), user(question))).toBe(nothing)
    const both = 'My dog is Rex. What is my dog called?'
    expect(await answer(user(both), user(both))).toBe(nothing)
  })

  it('never quotes its own answers', async () => {
    const told = user('My cat is called Miso. My cat is grey.')
    const first = await answer(told, user('Tell me about my cat'))
    expect(first).toBe('From what you told me: "My cat is called Miso." "My cat is grey."')
    const recalled = system(`## Recalled\nAssistant: ${first}\nAssistant: ${nothing}`)
    expect(
      await answer(
        assistant(first),
        assistant(nothing),
        recalled,
        user('Which cat do I remember? Which model server is configured?'),
      ),
    ).toBe(nothing)
  })

  it('quotes a statement once, though it is shown twice', async () => {
    expect(await answer(system('User: My cat is called Miso.'), user('My cat is called Miso.'), user('My cat?'))).toBe(
      'From what you told me: "My cat is called Miso."',
    )
  })

  it('finds who said what in a block of memory', async () => {
    const block = system(
      '## Recalled\n7 May 2023:\nCaroline: I adopted a puppy named Oscar.\nMelanie: I painted a sunrise.\n(Past) User: My sister plays the violin.',
    )
    expect(await answer(block, user('Who adopted a puppy?'))).toBe(
      'From this conversation: "Caroline: I adopted a puppy named Oscar."',
    )
    expect(await answer(block, user('What did Melanie paint?'))).toBe(
      'From this conversation: "Melanie: I painted a sunrise."',
    )
    expect(await answer(block, user('Who plays the violin?'))).toBe(
      'From what you told me: "My sister plays the violin."',
    )
  })

  it('finds lines that go on with what somebody said, up to the next date or heading', async () => {
    const block = system(
      'User: Two things.\nThe garage code is 4711.\n8 May 2023:\nThe garage opens at nine.\nUser: Bye.\n\nThe garage is blue.',
    )
    expect(await answer(block, user('The garage?'))).toBe('From what you told me: "The garage code is 4711."')
  })

  it.each(['silent', 'open', 'sections'] as const)(
    'finds what stands in the %s frame and never quotes the frame',
    async (framing) => {
      const { before, after, recalled } = wordsOf[framing]
      const stable = system(`${before}User: My cat is called Miso.\n${after}`)
      const volatile = user(`${recalled}7 May 2023:\nUser: The vet is Dr. Wu.`)
      expect(await answer(stable, volatile, user('What is my cat called?'))).toBe(
        'From what you told me: "My cat is called Miso."',
      )
      expect(await answer(stable, volatile, user('Who is the vet?'))).toBe(
        'From what you told me: "The vet is Dr. Wu."',
      )
      for (const line of `${before}${after}\n${recalled}`.split('\n'))
        expect(await answer(stable, volatile, user(`What about ${line}, that is, ${line}?`))).toBe(nothing)
    },
  )

  it('never quotes headings and instructions of a system message', async () => {
    const block = system(
      'You are a cat expert.\n# Cat facts\n[CAT NOTES]\n- Mention the cat: always.\nIMPORTANT: be kind to the cat.',
    )
    expect(await answer(block, user('What about the cat?'))).toBe(nothing)
  })

  it('quotes at most three hundred characters, from where the words are', async () => {
    const long = `${'many words '.repeat(60)}and the code of the garage is 4711`
    const quote =
      /^From what you told me: "(.*)"$/s.exec(await answer(user(long), user('What is the garage code?')))?.[1] ?? ''
    expect(quote).toContain('the code of the garage is 4711')
    expect(quote.length).toBeLessThanOrEqual(300)
    expect(await answer(user(`garage-${'🐈'.repeat(400)}`), user('garage?'))).toBe(
      `From what you told me: "garage-${'🐈'.repeat(146)}…"`,
    )
  })

  it('stops when the caller does', async () => {
    const { error } = await failureOf(offlineModel(), { messages: [user('Hello')] }, AbortSignal.abort())
    expect(error).toMatchObject({ name: 'MemoryError', code: 'aborted' })
  })

  it('gives the same answer each time, for anything', async () => {
    const role = fc.constantFrom('system' as const, 'user' as const, 'assistant' as const)
    const content = fc.oneof(fc.string({ unit: 'grapheme' }), fc.stringMatching(/^(User: |# |)(cat|dog|[.?!]|\n| )*$/))
    await fc.assert(
      fc.asyncProperty(fc.array(fc.record({ role, content })), async (messages) => {
        const first = await answer(...messages)
        expect(first).not.toBe('')
        expect(await answer(...messages)).toBe(first)
      }),
    )
  })

  it('answers two hundred thousand dots or colons as readily as anything else', async () => {
    for (const unit of ['.', ': ', 'a: ', '? ', '(', '\n', '. it ']) {
      const much = unit.repeat(200_000 / unit.length)
      expect(await answer(system(much), user(much), user('What is my cat called?'))).toBe(nothing)
    }
  })
})
