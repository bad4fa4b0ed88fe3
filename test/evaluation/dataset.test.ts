import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { parseDataset, readDataset, toMessageInput } from '../../src/evaluation/dataset.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-dataset-'))
afterAll(() => rmSync(folder, { recursive: true }))

const message = { id: 'm1', at: 1_700_000_000_000, speaker: 'Mara', role: 'user', text: 'Hello.', group: 's1' }
const question = { id: 'q1', category: 'fact', query: 'Who?', answer: 'Mara', evidence: ['m1'] }
const conversation = { id: 'c1', messages: [message], questions: [question] }

describe('readDataset', () => {
  it('with .json and .json.gz › reads the same conversations', async () => {
    writeFileSync(join(folder, 'chats.json'), JSON.stringify([conversation]))
    writeFileSync(join(folder, 'zipped.json.gz'), gzipSync(JSON.stringify([conversation])))
    expect(await readDataset(join(folder, 'chats.json'))).toEqual({ name: 'chats', conversations: [conversation] })
    expect(await readDataset(join(folder, 'zipped.json.gz'))).toEqual({ name: 'zipped', conversations: [conversation] })
  })
  const files: readonly (readonly [name: string, content: string | Buffer | undefined, message: string])[] = [
    ['missing.json', undefined, 'cannot be read (ENOENT). Name a .json or .json.gz file.'],
    ['text.json', 'hello', 'is not valid JSON. Write an array of conversations.'],
    ['damaged.json.gz', gzipSync('[]').subarray(0, 12), 'is a damaged gzip file. Compress the JSON file again.'],
  ]
  for (const [name, content, problem] of files)
    it(`with ${name} › names the file and the problem`, async () => {
      const file = join(folder, name)
      if (content !== undefined) writeFileSync(file, content)
      await expect(readDataset(file)).rejects.toMatchObject({ code: 'bad-option', message: `${file} ${problem}` })
    })
})

describe('parseDataset', () => {
  it('without optional fields › fills them in', () => {
    const minimal = [
      { id: 'c1', messages: [{ id: 1, role: 'user', text: '' }], questions: [{ id: 2, query: 'Why?', evidence: [1] }] },
    ]
    expect(parseDataset(minimal, 'f')).toEqual([
      {
        id: 'c1',
        messages: [{ id: '1', at: null, speaker: 'user', role: 'user', text: '', group: null }],
        questions: [{ id: '2', category: 'uncategorised', query: 'Why?', answer: null, evidence: ['1'] }],
      },
    ])
    expect(parseDataset([{ id: 'c1', messages: [message] }], 'f')[0]?.questions).toEqual([])
  })
  it('with some unknown evidence › keeps the known messages', () =>
    expect(
      parseDataset([{ ...conversation, questions: [{ ...question, evidence: ['m1', 'm9', 'm1'] }] }], 'f')[0]
        ?.questions[0]?.evidence,
    ).toEqual(['m1']))

  const place = 'f, conversation 1 (c1)'
  const invalid: readonly (readonly [value: unknown, message: string])[] = [
    [{}, 'f is not an array with at least one conversation. See docs/evaluation.md for the format.'],
    [[], 'f is not an array with at least one conversation. See docs/evaluation.md for the format.'],
    [[7], 'f, conversation 1 is not an object. See docs/evaluation.md for the format.'],
    [[{ messages: [message] }], 'f, conversation 1 has no id. Use a string that is not empty.'],
    [[{ id: 'c1' }], `${place} has no messages. Add an array.`],
    [[{ id: 'c1', messages: [] }], `${place} has no messages. Add at least one, or remove the conversation.`],
    [[{ id: 'c1', messages: 'x' }], `${place} has messages that is no array. Add an array.`],
    [
      [{ id: 'c1', messages: [{ ...message, role: 'tool' }] }],
      `${place}, messages[0] has role "tool". Use "user" or "assistant".`,
    ],
    [
      [{ id: 'c1', messages: [{ ...message, at: '2024' }] }],
      `${place}, messages[0] has at "2024". Use milliseconds since 1970, or null if the time is unknown.`,
    ],
    [[{ id: 'c1', messages: [{ ...message, text: 5 }] }], `${place}, messages[0] has text 5. Use a string.`],
    [[{ id: 'c1', messages: [message, message] }], `${place} has the message id "m1" twice. Make ids unique.`],
    [[conversation, conversation], 'f has the conversation id "c1" twice. Make ids unique.'],
    [
      [{ ...conversation, questions: [{ ...question, evidence: ['m9'] }] }],
      `${place}, questions[0] has evidence ["m9"]. Use ids of messages of the conversation.`,
    ],
    [
      [{ ...conversation, questions: [{ ...question, query: '' }] }],
      `${place}, questions[0] has query "". Use a string that is not empty.`,
    ],
  ]
  for (const [value, problem] of invalid)
    it(`with ${JSON.stringify(value).slice(0, 60)} › says: ${problem}`, () =>
      expect(() => parseDataset(value, 'f')).toThrow(problem))
})

describe('toMessageInput', () => {
  it('passes the name of a speaker and a known time', () => {
    const known = { ...message, role: 'user' as const }
    expect(toMessageInput(known)).toEqual({ role: 'user', content: 'Hello.', name: 'Mara', at: message.at })
    expect(toMessageInput({ ...known, speaker: 'user', at: null })).toEqual({ role: 'user', content: 'Hello.' })
  })
})
