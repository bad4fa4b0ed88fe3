import { describe, expect, it } from 'vitest'
import type { Entry } from '../../src/domain/entry.ts'
import { openMemory } from '../../src/index.ts'
import { refineResults } from '../../src/memory/searchResults.ts'

const user = (content: string) => ({ role: 'user' as const, content })
const assistant = (content: string) => ({ role: 'assistant' as const, content })
const question = 'What is my cat called?'

describe('search', () => {
  it('a question that was asked before › comes after the statement that answers it', async () => {
    await using memory = await openMemory({ store: 'ram:' })
    for (let turn = 0; turn < 3; turn++) await memory.append('acme:ann', [user(question)])
    await memory.append('acme:ann', [user('My cat is called Miso.')])
    await memory.append('acme:ben', [user(question)])
    for (const query of [question, 'what is the name my cat is called by?', 'cat called']) {
      const results = await memory.search('acme', query)
      expect([query, results.map(({ entry }) => entry.kind === 'message' && entry.content)]).toEqual([
        query,
        ['My cat is called Miso.', question],
      ])
    }
  })

  it('the same text in several messages, and replies that quote it › are one result', async () => {
    await using memory = await openMemory({ store: 'ram:' })
    for (const id of ['ann', 'ben', 'cleo']) await memory.append(`acme:${id}`, [user('The gate code is 4711.')])
    await memory.append('acme:ann', [assistant('From what you told me: "The gate code is 4711."')])
    await memory.append('acme:ann', [user('the  gate code is 4711'), user('The gate is green.')])
    const results = await memory.search('acme', 'gate code', { limit: 2 })
    expect(results.map(({ entry }) => entry.kind === 'message' && [entry.role, entry.content.length])).toEqual([
      ['user', 22],
      ['user', 18],
    ])
    // Equal texts are one hit of the index; the quotation is merged into it.
    expect(results[0]?.repeats).toEqual([{ key: 'acme:ann', id: 'm2' }])
  })

  it('questions about something else, and statements with a tag question › keep their rank', async () => {
    await using memory = await openMemory({ store: 'ram:' })
    await memory.append('acme:ann', [user('Do I need a visa for a stay of three months in Japan with my family?')])
    await memory.append('acme:ann', [user("My passport is Norwegian, isn't it?")])
    const [visa] = await memory.search('acme', 'Which visa did I ask about?')
    expect([visa?.entry.id, 'repeatedQuestion' in (visa?.why ?? {})]).toEqual(['m1', false])
    const [passport] = await memory.search('acme', 'Which passport is Norwegian?')
    expect([passport?.entry.id, 'repeatedQuestion' in (passport?.why ?? {})]).toEqual(['m2', false])
  })

  it('a query that is too long for a question › is not compared with earlier ones', async () => {
    await using memory = await openMemory({ store: 'ram:' })
    await memory.append('acme:ann', [user(question)])
    const isDemoted = async (query: string): Promise<boolean> =>
      'repeatedQuestion' in ((await memory.search('acme', query))[0]?.why ?? {})
    expect([await isDemoted(question), await isDemoted(`${question} `.repeat(400))]).toEqual([true, false])
  })

  it('long texts › are one result if they are equal, and are not compared otherwise', () => {
    const long = 'The gate code is 4711, as everybody knows by now. '.repeat(200)
    const texts = [long, long, long.toUpperCase(), `${long}?`]
    const results = texts.map((content, at) => ({
      key: `acme:${at}`,
      entry: { kind: 'message', id: 'm1', role: 'user', content } as unknown as Entry,
      score: 1,
      why: {},
    }))
    expect(refineResults(results, long, 9).map(({ key, repeats }) => [key, repeats?.length])).toEqual([
      ['acme:0', 1],
      ['acme:2', undefined],
      ['acme:3', undefined],
    ])
  })

  it('results that are refined again › stay as they are', async () => {
    await using memory = await openMemory({ store: 'ram:' })
    await memory.append('acme:ann', [user(question), user('My cat is called Miso.'), user(question)])
    const results = await memory.search('acme', question)
    expect(refineResults(results, question, 10)).toEqual(results)
  })
})
