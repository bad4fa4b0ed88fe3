import { describe, expect } from 'vitest'
import { type ProfileName, profiles } from '../../../src/profiles/index.ts'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, user } from '../start.ts'
import { textOf } from './heldModel.ts'
import { ann, openTestSession, type TestSession } from './testSession.ts'

const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
const chatTurns: Readonly<Record<string, readonly object[]>> = {
  'white space': [user(' \n\t')],
  'no text': [user('')],
  'no content': [{ role: 'user', content: null }],
  'an empty list of parts': [{ role: 'user', content: [] }],
  'an empty part': [{ role: 'user', content: [{ type: 'text', text: '' }] }],
  'a character of no width': [user('\u200b')],
  'a byte order mark': [user('\ufeff')],
  'a control character': [user('\u0000')],
  'half a character': [user('\ud83d')],
  'only an image': [{ role: 'user', content: [image] }],
  'a blank reply': [user('Go on.'), assistant(' ')],
  'a blank question and reply': [user(' '), assistant(' ')],
  'several blank questions': [user(' '), user(''), user('\n')],
  'a reply and no question': [],
}
const toResponsesItem = (message: object): object => {
  const { role, content } = message as { role: string; content: unknown }
  const parts = Array.isArray(content) ? content : [{ text: content ?? '' }]
  const type = role === 'user' ? 'input_text' : 'output_text'
  return {
    type: 'message',
    role,
    content: parts.map((part) =>
      part.type === 'image_url'
        ? { type: 'input_image', image_url: part.image_url.url }
        : { type, text: part.text ?? '' },
    ),
  }
}
const toAnthropicMessage = (message: object): object => {
  const { role, content } = message as { role: string; content: unknown }
  if (!Array.isArray(content)) return { role, content: content ?? '' }
  const toBlock = (part: { type: string; text?: string }) =>
    part.type === 'text' ? part : { type: 'image', source: { type: 'url', url: image.image_url.url } }
  return { role, content: content.map(toBlock) }
}
const protocols = {
  'chat/completions': (messages: readonly object[]) => ({ messages }),
  responses: (messages: readonly object[]) => ({ input: messages.map(toResponsesItem) }),
  messages: (messages: readonly object[]) => ({ max_tokens: 10, messages: messages.map(toAnthropicMessage) }),
}
type Path = keyof typeof protocols

const story = (turn: number): string => `Turn ${turn}: ${'a long story about the harbour '.repeat(20)}`
const budget = 200
const pastTurns = Array.from({ length: 6 }, (_, turn) => [user(story(turn)), assistant('Well.')]).flat()

/** Tokens of the texts in the newest prompt. */
const promptTokens = ({ model, server: { memory } }: TestSession): number => {
  const { messages, input, system } = model.requests.at(-1)?.body ?? {}
  const texts: readonly string[] = (messages ?? input).map(({ content }: { content: unknown }) => textOf(content))
  return [...texts, textOf(system)].reduce((sum, text) => sum + memory.tokenizer.count(text), 0)
}

describe.each(Object.keys(profiles) as ProfileName[])('a newest turn with nothing to show, profile %s', (name) => {
  for (const path of Object.keys(protocols) as Path[])
    for (const history of ['full', 'thin'] as const)
      verifies('X-01', `from a ${history} client, by ${path} › keeps the prompt within the budget`, async () => {
        const faults: string[] = []
        const memory = { profile: { ...profiles[name], budget } }
        await using session = await openTestSession({ reply: () => ({ text: 'Well.' }), memory })
        for (const [index, [what, turn]] of Object.entries(chatTurns).entries()) {
          const key = `${ann}${index}`
          const requestsBefore = session.model.requests.length
          await session.server.memory.append(key, pastTurns)
          const messages = history === 'full' || turn.length === 0 ? [...pastTurns, ...turn] : turn
          const body = { model: 'test-model', ...protocols[path](messages) }
          await session.send(`POST /v1/${key}/${path}`, body, { 'x-threadkeep-history': history })
          if (session.model.requests.length === requestsBefore) continue
          const tokens = promptTokens(session)
          if (tokens > budget) faults.push(`${what}: ${tokens} tokens`)
        }
        expect(faults).toEqual([])
      })
})

verifies('X-01', 'a blank newest turn › of a conversation over the budget › is sent with memory', async () => {
  const memory = { profile: { ...profiles.thread, budget } }
  await using session = await openTestSession({ reply: () => ({ text: 'Well.' }), memory })
  await session.server.memory.append(ann, pastTurns)
  const body = { model: 'test-model', messages: [...pastTurns, user(' \n\t')] }
  const { headers } = await session.send(`POST /v1/${ann}/chat/completions`, body, { 'x-threadkeep-history': 'full' })
  expect(headers.get('x-threadkeep-degraded')).toBe('conversation-shortened')
})
