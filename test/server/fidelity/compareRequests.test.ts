import { describe, expect, it } from 'vitest'
import { findDifferences, findPrefixChanges } from './compareRequests.ts'

type Body = Readonly<Record<string, unknown>>
const record = (path: string, body: Body) => ({ path, text: JSON.stringify(body) })
/** Compares a request to a session with the request at the upstream. */
const compare = (endpoint: string, sent: Body, forwarded: Body) =>
  findDifferences({
    sent: record(`/v1/demo:ann/${endpoint}`, sent),
    forwarded: [record(`/v1/${endpoint.split('?')[0]}`, forwarded)],
  })
const text = '<memory>\nAnn lives in Rome.\n</memory>'
const [one, two] = [
  { role: 'user', content: 'One' },
  { role: 'assistant', content: 'Two' },
]

describe('findDifferences', () => {
  it('of equal requests › finds none, whatever the order of fields', () =>
    expect(compare('messages', { model: 'm', messages: [one] }, { messages: [one], model: 'm' })).toEqual([]))

  const memoryMessages = [
    ['chat/completions', 'messages', { role: 'system', content: text }],
    ['messages', 'messages', { role: 'user', content: [{ type: 'text', text }] }],
    ['responses', 'input', { type: 'message', role: 'developer', content: [{ type: 'input_text', text }] }],
  ] as const
  for (const [endpoint, field, memory] of memoryMessages) {
    it(`of ${endpoint} with one memory message at the end › finds none`, () =>
      expect(compare(endpoint, { [field]: [one] }, { [field]: [one, memory] })).toEqual([]))
    it(`of ${endpoint} with a memory message elsewhere, twice or with other fields › finds it`, () => {
      expect(compare(endpoint, { [field]: [one] }, { [field]: [memory, one] })).toHaveLength(2)
      expect(compare(endpoint, { [field]: [one] }, { [field]: [one, memory, memory] })).toHaveLength(1)
      expect(compare(endpoint, { [field]: [one] }, { [field]: [one, { ...memory, id: 1 }] })).toHaveLength(1)
    })
  }

  it('of a lost, changed, moved or added message › names its position', () => {
    const differ = (...forwarded: unknown[]) =>
      compare('messages', { messages: [one, two, one] }, { messages: forwarded })
    expect(differ(one, two)).toEqual(['messages[2]: sent {"role":"user","content":"One"}, forwarded nothing'])
    expect(differ(one, { ...two, content: [{ type: 'text', text: 'Two' }] }, one)[0]).toMatch(/^messages\[1\]: /)
    expect(differ(two, one, one)).toHaveLength(2)
    expect(differ(one, two, one, two)).toEqual([expect.stringMatching(/^messages\[3\]: sent nothing/)])
  })

  it('of other fields and the query › names them', () =>
    expect(compare('responses?beta=true', { input: [], store: true }, { input: [], store: false, tools: [] })).toEqual([
      'query: sent "beta=true", forwarded ""',
      'store: sent true, forwarded false',
      'tools: sent nothing, forwarded []',
    ]))

  it('of a string input › finds none if it became a message because of memory', () => {
    const memory = { type: 'message', role: 'developer', content: [{ type: 'input_text', text }] }
    expect(compare('responses', { input: 'One' }, { input: [one, memory] })).toEqual([])
    expect(compare('responses', { input: 'One' }, { input: [one] })).toHaveLength(1)
    expect(compare('responses', { input: 'One' }, { input: [two, memory] })).toHaveLength(1)
  })

  it('after an assistant prefill › finds none if memory is at the end of the system prompt', () => {
    const messages = [one, two]
    const differ = (sent: unknown, forwarded: unknown) =>
      compare('messages', { system: sent, messages }, { system: forwarded, messages })
    const block = { type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }
    expect(differ('Be brief.', `Be brief.\n\n${text}`)).toEqual([])
    expect(differ([block], [block, { type: 'text', text }])).toEqual([])
    expect(differ(undefined, text)).toEqual([])
    expect(differ('Be brief.', text)).toHaveLength(1)
    expect(differ([block], [{ type: 'text', text }, block])).toHaveLength(1)
    expect(compare('messages', { messages: [one] }, { system: text, messages: [one] })).toHaveLength(1)
  })

  it('of a request that did not arrive › says so', () =>
    expect(findDifferences({ sent: record('/v1/messages', {}), forwarded: [] })).toEqual([
      'the request did not reach the upstream',
    ]))
})

describe('findPrefixChanges', () => {
  const exchange = (sent: Body, forwarded: Body) => ({
    ...{ step: 'a', response: { kind: 'silence' as const } },
    sent: record('/v1/demo:ann/messages', sent),
    forwarded: [record('/v1/messages', forwarded)],
  })
  const first = exchange({ messages: [one] }, { messages: [one, { role: 'user', content: text }] })

  it('with the same prefix › finds none', () =>
    expect(findPrefixChanges([first, exchange({ messages: [one, two] }, { messages: [one, two, one] })])).toEqual([]))
  it('with another order of fields › finds the change', () => {
    const reordered = { content: 'One', role: 'user' }
    expect(findPrefixChanges([first, exchange({ messages: [one, two] }, { messages: [reordered, two] })])).toHaveLength(
      1,
    )
  })
  it('with another system prompt › finds the change', () =>
    expect(
      findPrefixChanges([first, exchange({ messages: [one, two] }, { system: text, messages: [one, two] })]),
    ).toHaveLength(1))
})
