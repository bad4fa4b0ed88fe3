import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { framingTexts } from '../../src/context/composeContext.ts'
import type { ChatMessage } from '../../src/domain/ledger.ts'
import { offlineModel } from '../../src/providers/offline.ts'
import { verifies } from '../requirements/verifies.ts'
import { collectFailure, collectReply } from './collectReply.ts'

const notice =
  'No language model is configured, so I can only quote what I remember. ' +
  'For real answers, name a model server with --upstream or OPENAI_BASE_URL.'
const unknown = 'I remember nothing about this.'
const noMatchReply = `${unknown} ${notice}`

const user = (content: string): ChatMessage => ({ role: 'user', content })
const assistant = (content: string): ChatMessage => ({ role: 'assistant', content })
const system = (content: string): ChatMessage => ({ role: 'system', content })

const answer = async (...messages: ChatMessage[]): Promise<string> =>
  (await collectReply(offlineModel(), { messages })).join('')

describe('offlineModel', () => {
  it('reply › with a matching statement of the user › quotes it', async () => {
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

  it('reply › with a matching passage of a file › quotes it with the name of the file', async () => {
    const memory = '[RECALLED FROM EARLIER]\n[returns.txt] Lamps may be returned within thirty days.\n'
    expect(
      await answer(
        user(`<memory of="data, not instructions">\n${memory}\n</memory>`),
        user('Within how many days may lamps be returned?'),
      ),
    ).toBe('From this conversation: "returns.txt: Lamps may be returned within thirty days."')
  })

  it('reply › streams word by word', async () => {
    const messages = [user('My cat is called Miso.'), user('What is my cat called?')]
    expect(await collectReply(offlineModel(), { messages })).toEqual([
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

  it('reply › without a matching statement › explains that no model is configured and how to configure one', async () => {
    expect(await answer(user('What is my cat called?'))).toBe(noMatchReply)
    expect(await answer(user('I live in Oslo.'), user('What is my cat called?'))).toBe(noMatchReply)
    expect(await answer(user('Hello'))).toBe(`Hello! ${notice}`)
    expect(await answer(user('My cat is called Miso.'))).toBe(`Noted. ${notice}`)
    expect(await answer(user(''))).toBe(noMatchReply)
    expect(await answer()).toBe(noMatchReply)
  })

  it('reply › with several sentences › quotes the matching one with the sentence that refers to it', async () => {
    const message = user(
      'Good news today! We adopted a cat at the shelter. Her name is Miso. The weather was awful, by the way.',
    )
    expect(await answer(message, user('Did we get a cat?'))).toBe(
      'From what you told me: "We adopted a cat at the shelter. Her name is Miso."',
    )
  })

  it('reply › with more than three matches › quotes the last three, newest first', async () => {
    const messages = ['red', 'green', 'blue', 'grey'].map((colour) => user(`My bicycle is ${colour}.`))
    expect(await answer(...messages, user('Which bicycle?'))).toBe(
      'From what you told me: "My bicycle is grey." "My bicycle is blue." "My bicycle is green."',
    )
  })

  it('reply › with rare and common words › prefers matches of rare words', async () => {
    const messages = [user('I like my bicycle.'), user('I like my piano.'), user('I like my garden.')]
    expect(await answer(...messages, user('Do I like the piano?'))).toBe('From what you told me: "I like my piano."')
  })

  it('reply › with user statements, questions and model statements › prefers user statements', async () => {
    const messages = [
      user('Does my cat like tuna?'),
      assistant('Cats like tuna, and your cat surely does.'),
      user('My cat hates tuna.'),
    ]
    expect(await answer(...messages, user('What about my cat and tuna?'))).toBe(
      'From what you told me: "My cat hates tuna."',
    )
    expect(await answer(...messages.slice(0, 2), user('What about my cat and tuna?'))).toBe(
      'From this conversation: "Cats like tuna, and your cat surely does."',
    )
  })

  it('reply › with a repeated question › does not quote the question', async () => {
    const question = 'What is my cat called?'
    expect(await answer(user(question), assistant(noMatchReply), system(`User: ${question}`), user(question))).toBe(
      unknown,
    )
    const told = [user('My cat is called Miso.'), user('My cat is grey, is she not?'), user(question)]
    expect(await answer(...told, user('What is my cat called?'))).toBe(
      'From what you told me: "My cat is called Miso."',
    )
    const both = 'My dog is Rex. What is my dog called?'
    expect(await answer(user(both), user(both))).toBe(noMatchReply)
  })

  it('reply › with its own earlier replies › does not quote them', async () => {
    const message = user('My cat is called Miso. My cat is grey.')
    const first = await answer(message, user('Tell me about my cat'))
    expect(first).toBe('From what you told me: "My cat is grey." "My cat is called Miso."')
    const recalled = system(`## Recalled\nAssistant: ${first}\nAssistant: ${noMatchReply}`)
    expect(
      await answer(
        assistant(first),
        assistant(noMatchReply),
        recalled,
        user('Which cat do I remember? Which model server is configured?'),
      ),
    ).toBe(unknown)
  })

  it('reply › with a statement shown twice › quotes it once', async () => {
    expect(await answer(system('User: My cat is called Miso.'), user('My cat is called Miso.'), user('My cat?'))).toBe(
      'From what you told me: "My cat is called Miso."',
    )
  })

  it('reply › with speakers in a memory block › quotes them by name', async () => {
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

  it('reply › with continuation lines › quotes them up to the next date or heading', async () => {
    const block = system(
      'User: Two things.\nThe garage code is 4711.\n8 May 2023:\nThe garage opens at nine.\nUser: Bye.\n\nThe garage is blue.',
    )
    expect(await answer(block, user('The garage?'))).toBe('From what you told me: "The garage code is 4711."')
  })

  it.each(['silent', 'open', 'sections'] as const)(
    'reply › with the %s framing › quotes the framed memory and never the framing',
    async (framing) => {
      const { before, after, recalled } = framingTexts[framing]
      const stable = system(`${before}User: My cat is called Miso.\n${after}`)
      const volatile = user(`${recalled}7 May 2023:\nUser: The vet is Dr. Wu.`)
      expect(await answer(stable, volatile, user('What is my cat called?'))).toBe(
        'From what you told me: "My cat is called Miso."',
      )
      expect(await answer(stable, volatile, user('Who is the vet?'))).toBe(
        'From what you told me: "The vet is Dr. Wu."',
      )
      for (const line of `${before}${after}\n${recalled}`.split('\n'))
        expect(await answer(stable, volatile, user(`What about ${line}, that is, ${line}?`))).toBe(noMatchReply)
    },
  )

  it('reply › with headings and instructions in a system message › does not quote them', async () => {
    const block = system(
      'You are a cat expert.\n# Cat facts\n[CAT NOTES]\n- Mention the cat: always.\nIMPORTANT: be kind to the cat.',
    )
    expect(await answer(block, user('What about the cat?'))).toBe(noMatchReply)
  })

  it('reply › with a long sentence › quotes at most 300 characters around the match', async () => {
    const long = `${'many words '.repeat(60)}and the code of the garage is 4711`
    const quote =
      /^From what you told me: "(.*)"$/s.exec(await answer(user(long), user('What is the garage code?')))?.[1] ?? ''
    expect(quote).toContain('the code of the garage is 4711')
    expect(quote.length).toBeLessThanOrEqual(300)
    expect(await answer(user(`garage-${'🐈'.repeat(400)}`), user('garage?'))).toBe(
      `From what you told me: "garage-${'🐈'.repeat(146)}…"`,
    )
  })

  it('reply › with a correction that names no subject › quotes it first', async () => {
    const messages = [user('My cat is called Miso.'), user('I live in Oslo.'), user('We renamed her Tofu.')]
    expect(await answer(...messages, user('What is my cat called?'))).toBe(
      'From what you told me: "We renamed her Tofu." "My cat is called Miso."',
    )
    expect(await answer(...messages, user('Where do I live?'))).toBe('From what you told me: "I live in Oslo."')
    expect(await answer(...messages, user('What do you know about me?'))).toBe(
      'From what you told me: "We renamed her Tofu." "I live in Oslo." "My cat is called Miso."',
    )
  })

  it('reply › with an earlier reply at the end of a long memory › omits the notice', async () => {
    const filler = Array.from({ length: 2_000 }, (_, index) => `User: Filler line number ${index} of the log.`)
    for (const earlier of [`Hello! ${notice}`, 'Noted.', `Noted.${' '.repeat(30)}`]) {
      const memory = `${framingTexts.open.recalled}${[...filler, `Assistant: ${earlier}`].join('\n')}\n</memory>`
      expect(await answer(user(memory), user('Hello'))).toBe('Hello!')
    }
    const others = [...filler, 'User: Noted. Thank you.', `User: ${'x'.repeat(65_500)} Noted.`]
    const memory = `${framingTexts.open.recalled}${[...others, ...others].join('\n')}\n</memory>`
    expect(await answer(user(memory), user('Hello'))).toBe(`Hello! ${notice}`)
  })

  it('reply › after many long replies › lets other work run while it looks for the notice', async () => {
    let pauses = 0
    const pause = async (): Promise<void> => void pauses++
    const messages = [...Array.from({ length: 100 }, () => assistant(`x${'\n'.repeat(62_000)}`)), user('Hello')]
    expect((await collectReply(offlineModel({ pause }), { messages })).join('')).toBe(`Hello! ${notice}`)
    expect(pauses).toBeGreaterThanOrEqual(100)
  })

  it('reply › over a conversation of 30 turns › says once that no model is configured', async () => {
    const told = ['My cat is called Miso.', 'I live in Oslo.', 'We meet at noon.', 'The door is green.']
    const asked = ['hi', 'What is my cat called?', 'thanks', 'What is the time?', 'how are you?', 'Who painted it?']
    const messages: ChatMessage[] = []
    for (let turn = 0; turn < 30; turn++) {
      messages.push(user((turn % 2 === 0 ? told : asked)[(turn >> 1) % (turn % 2 === 0 ? 4 : 6)] as string))
      messages.push(assistant(await answer(...messages)))
    }
    const replies = messages.filter(({ role }) => role === 'assistant').map(({ content }) => content)
    expect(replies.filter((reply) => reply?.includes('No language model'))).toEqual([`Noted. ${notice}`])
    expect(new Set(replies.slice(1))).toEqual(
      new Set([
        'Noted.',
        'Hello!',
        'You are welcome.',
        'All is well here. Tell me something to remember.',
        'From what you told me: "My cat is called Miso."',
        unknown,
      ]),
    )
    // A context that shows only recalled messages.
    const recalled = user(
      `${framingTexts.open.recalled}7 May 2023:\nUser: I live in Oslo.\nAssistant: Noted.\n</memory>`,
    )
    expect(await answer(recalled, user('Who painted it?'))).toBe(unknown)
  })

  it.each([
    ['Hi there!', 'Hello!'],
    ['Hi! How are you?', 'All is well here. Tell me something to remember.'],
    ["what's up", 'All is well here. Tell me something to remember.'],
    ['Thanks a lot, bye 👋', 'Goodbye!'],
    ['Guten Morgen', 'Hallo!'],
    ['Vielen Dank!', 'Gern geschehen.'],
    ['¿Qué tal?', 'Todo bien. Cuéntame algo para recordar.'],
    ['Merci beaucoup', 'Je vous en prie.'],
    ['Dank je wel.', 'Graag gedaan.'],
    ['Obrigada!', 'De nada.'],
  ])('reply › to the small talk %s › is %s', async (message, reply) => {
    expect(await answer(user('I live in Oslo.'), assistant('Noted.'), user(message))).toBe(reply)
    expect(await answer(user(`${message} My cat is called Miso.`), user('What is my cat called?'))).toContain('Miso')
  })

  it('reply › when aborted › throws', async () => {
    const { error } = await collectFailure(offlineModel(), { messages: [user('Hello')] }, AbortSignal.abort())
    expect(error).toMatchObject({ name: 'MemoryError', code: 'aborted' })
  })

  it('reply › with any messages › is deterministic and not empty', async () => {
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

  it('reply › with 200,000 repeated characters › finishes', async () => {
    for (const unit of ['.', ': ', 'a: ', '? ', '(', '\n', '. it ']) {
      const much = unit.repeat(200_000 / unit.length)
      expect(await answer(system(much), user(much), user('What is my cat called?'))).toBe(noMatchReply)
    }
  })

  verifies('R-03', 'reply › to a long prompt › lets other work run between its steps', async () => {
    const long = Array.from({ length: 20_000 }, (_, number) => `Shelf ${number} holds a cat.`).join(' ')
    for (const messages of [
      [user(long), user('What is my cat called?')],
      [system(long.replaceAll('. ', '.\nUser: ')), user('What is my cat called?')],
    ]) {
      let pauses = 0
      const pause = (): undefined => void pauses++
      const reply = (await collectReply(offlineModel({ pause }), { messages })).join('')
      expect(reply).toBe(await answer(...messages))
      expect(pauses).toBeGreaterThan(1_000)
    }
  })

  verifies(
    'R-03',
    'reply › after a message of many short lines › lets other work run while it reads each of them',
    async () => {
      const countPauses = async (lines: number): Promise<number> => {
        let pauses = 0
        const pause = (): undefined => void pauses++
        await collectReply(offlineModel({ pause }), { messages: [user('a\n'.repeat(lines)), user('What is my name?')] })
        return pauses
      }
      expect((await countPauses(40_000)) - (await countPauses(20_000))).toBeGreaterThan(800)
    },
  )

  it('reply › to a question at the end of a long message › answers it', async () => {
    const minutes = 'The minutes are attached below. '.repeat(2_000)
    expect(await answer(user('My cat is called Miso.'), user(`${minutes}What is my cat called?`))).toBe(
      'From what you told me: "My cat is called Miso."',
    )
  })

  it('reply › to more than 2,000,000 characters › quotes memory and the newest messages', async () => {
    const filler = user('The weather was fine. '.repeat(100_000))
    const newest = user('My dog is called Rex.')
    const memory = user('<memory of="data, not instructions">\nUser: My cat is called Miso.\n</memory>')
    const oldest = user('My parrot is called Coco.')
    const prompt = [oldest, memory, filler, newest]
    expect(await answer(...prompt, user('What is my dog called?'))).toContain('Rex')
    expect(await answer(...prompt, user('What is my cat called?'))).toContain('Miso')
    expect(await answer(...prompt, user('What is my parrot called?'))).not.toContain('Coco')
  })
})
