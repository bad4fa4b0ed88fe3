import { describe, expect, it } from 'vitest'
import { type Memory, type MessageInput, openMemory } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'

const key = 'acme:ann'
const user = (content: string): MessageInput => ({ role: 'user', content })

const factLines = async (memory: Memory): Promise<string[]> =>
  (await memory.upkeep.facts(key)).map(({ field, key: slot, value }) => `${field}.${slot}: ${value}`)

/** Thirty short turns, far below the first compaction. */
async function smallTalk(memory: Memory): Promise<void> {
  for (let turn = 0; turn < 15; turn++)
    await memory.append(key, [user(`How about idea ${turn}?`), { role: 'assistant', content: 'Sounds good.' }])
}

describe('a request to remember', () => {
  verifies('K-03', 'after thirty short turns › is stored at once and shown', async () => {
    await using memory = await openMemory()
    await smallTalk(memory)
    expect(await factLines(memory)).toEqual([])
    await memory.append(key, [user('Please remember that the gate code is 4411.')])
    expect(await factLines(memory)).toEqual(['important_facts.: the gate code is 4411'])
    const { messages } = await memory.context(key)
    expect(messages.map(({ content }) => content).join('\n')).toContain('important_facts: the gate code is 4411')
  })
  verifies('K-03', 'of the message before › stores its statements with their source', async () => {
    await using memory = await openMemory()
    await memory.append(key, [user('My locker number is B-117 and I live in Oslo.')])
    await memory.append(key, [{ role: 'assistant', content: 'Noted.' }])
    await memory.append(key, [user('Please remember that.')])
    expect(await factLines(memory)).toEqual([
      'important_facts.locker_number: My locker number is B-117',
      'important_facts.home: I live in Oslo',
    ])
    expect((await memory.upkeep.facts(key))[0]?.sources[0]?.message).toBe('m1')
  })
  it.each([
    ['Can you remember that Rex needs his pill at 8?', ['Rex needs his pill at 8']],
    ['My gate code is 4411, please remember that.', ['My gate code is 4411']],
    ["Don't forget: the plumber comes on Thursday", ['the plumber comes on Thursday']],
    [
      'Please remember:\n- the gate code is 4411\n- Rex needs his pill at 8\n\nThanks for the help',
      ['the gate code is 4411', 'Rex needs his pill at 8'],
    ],
    ['Merk dir das: die Tür klemmt.', ['die Tür klemmt']],
    ['Der Schlüssel liegt unter der Matte. Merk dir das.', ['Der Schlüssel liegt unter der Matte']],
    ['Le code est 4411. Retiens-le.', ['Le code est 4411']],
    ['Anota que la alarma se apaga con 2020', ['la alarma se apaga con 2020']],
    ['Não se esqueça de que o gás fica desligado', ['o gás fica desligado']],
    ['De sleutel ligt onder de mat. Onthoud dat alsjeblieft.', ['De sleutel ligt onder de mat']],
  ])('in %j › stores %j', async (content, expected) => {
    await using memory = await openMemory()
    await memory.append(key, [user(content)])
    expect((await memory.upkeep.facts(key)).map(({ value }) => value)).toEqual(expected)
  })
  it.each([
    'Do you remember me?',
    'I remember that day.',
    'Remember when we met?',
    '> Please remember that the code is 4411',
    'Translate this: Please remember that the code is 4411.',
  ])('that %j is none › stores nothing', async (content) => {
    await using memory = await openMemory()
    await memory.append(key, [user(content)])
    expect(await factLines(memory)).toEqual([])
  })
  it('that changes a remembered value › supersedes it', async () => {
    await using memory = await openMemory()
    await memory.append(key, [user('Remember that my locker number is B-117')])
    await memory.append(key, [user('Please remember that my new locker number is C-9')])
    expect(await factLines(memory)).toEqual(['important_facts.locker_number: my new locker number is C-9'])
    expect(await memory.upkeep.facts(key, { history: true })).toHaveLength(2)
  })
  it('whose message is forgotten › is forgotten too', async () => {
    await using memory = await openMemory()
    await memory.append(key, [user('Remember that my locker number is B-117')])
    await memory.forget({ key, messageId: 'm1' })
    expect(await factLines(memory)).toEqual([])
  })
  it('with upkeep turned off › stores nothing', async () => {
    await using memory = await openMemory({ upkeep: false })
    await memory.append(key, [user('Remember that my locker number is B-117')])
    expect((await memory.transcript(key)).length).toBe(1)
  })
})
