import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Payload } from '../../src/domain/chat.ts'
import { packPayload, payloadStrings, payloadText, unpackPayload } from '../../src/domain/payload.ts'

const long = 'The walrus sleeps on the ice all day long.'
/** Names and texts that resemble the references of a packed payload. */
const confusing = fc.constantFrom('$content', '$$content', '$$$content', 'content', '__proto__', '0', '')

/** Random JSON whose strings include parts of the content, lone surrogates and imitations of references. */
const payloadWith = (content: string): fc.Arbitrary<Payload> => {
  const part = fc
    .tuple(fc.nat(content.length), fc.nat(content.length))
    .map(([from, to]) => content.slice(Math.min(from, to), Math.max(from, to)))
  const text = fc.oneof(part, confusing, fc.string({ unit: 'binary' }), fc.constantFrom('\ud800', `\udc00${long}`))
  const { item } = fc.letrec<{ item: unknown }>((tie) => ({
    item: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.oneof(
        text,
        fc.integer(),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.constant(null),
        fc.boolean(),
      ),
      fc.array(tie('item'), { maxLength: 4 }),
      fc.dictionary(fc.oneof(confusing, fc.string()), tie('item'), { maxKeys: 4 }),
      fc.constantFrom({ $content: [0, 40] }, { $$content: { $content: 'x' } }),
    ),
  }))
  return fc
    .record({ protocol: fc.constantFrom('chat', 'messages'), items: fc.array(item), count: fc.integer({ min: 1 }) })
    .map((payload) => JSON.parse(JSON.stringify(payload)) as Payload)
}

describe('packPayload', () => {
  it('with any JSON and any content › is restored exactly', () => {
    const contentAndPayload = fc
      .oneof(
        fc.constant(''),
        fc.constant(`${long}\n${long.toUpperCase()} 🦭`),
        fc.string({ minLength: 30, unit: 'binary' }),
      )
      .chain((content) => fc.tuple(fc.constant(content), payloadWith(content)))
    fc.assert(
      fc.property(contentAndPayload, ([content, payload]) => {
        expect(unpackPayload(packPayload(payload, content), content)).toEqual(payload)
      }),
      { numRuns: 2_000 },
    )
  })

  it('with a long text of the content › stores a reference instead of the text', () => {
    const payload = { protocol: 'messages', items: [{ role: 'user', content: [{ type: 'text', text: long }] }] }
    const packed = packPayload(payload, `Hello\n${long}`)
    expect(packed).toBe(
      '{"protocol":"messages","items":[{"role":"user","content":[{"type":"text","text":{"$content":[6,42]}}]}]}',
    )
    expect(unpackPayload(packed, `Hello\n${long}`)).toEqual(payload)
  })

  it('with a field named like a reference › is not taken for one', () => {
    const payload = { protocol: 'chat', items: [{ $content: [0, 5] }, { $$content: 1, $content: 2 }] }
    expect(unpackPayload(packPayload(payload, long), long)).toEqual(payload)
  })
})

describe('unpackPayload', () => {
  it('with damaged text › returns undefined', () => {
    const items = '"items":[{"$content":[0,42]}]'
    for (const packed of [
      '',
      'null',
      '[]',
      '{"protocol":"chat","items":[',
      '{"protocol":"chat"}',
      '{"protocol":"","items":[]}',
      '{"items":[]}',
      '{"protocol":"chat","items":{}}',
      '{"protocol":"chat","count":0,"items":[]}',
      '{"protocol":"chat","count":1.5,"items":[]}',
      '{"protocol":"chat","items":[{"$content":[1,42]}]}',
      '{"protocol":"chat","items":[{"$content":[-1,1]}]}',
      '{"protocol":"chat","items":[{"$content":["0","1"]}]}',
      '{"protocol":"chat","items":[{"$content":null}]}',
      `{"protocol":"chat","items":${'['.repeat(5_000)}${']'.repeat(5_000)}}`,
    ])
      expect([packed.slice(0, 60), unpackPayload(packed, long)]).toEqual([packed.slice(0, 60), undefined])
    expect(unpackPayload(`{"protocol":"chat",${items}}`, long)).toEqual({ protocol: 'chat', items: [long] })
    expect(unpackPayload(`{"protocol":"chat",${items}}`, long.slice(1))).toBeUndefined()
  })
})

const thinking: Payload = {
  protocol: 'messages',
  items: [
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Seals and walruses differ.', signature: 'EqQBCkgIARABGAIiQ' },
        { type: 'redacted_thinking', data: 'AAAA' },
        { type: 'text', text: long, citations: [{ url: 'https://example.com/seal' }] },
        { type: 'tool_use', id: 'toolu_1', name: 'look', input: { place: 'ice\nfloe' } },
        { type: 'reasoning', encrypted_content: 'BBBB', summary: [{ type: 'summary_text', text: 'Look first.' }] },
      ],
    },
  ],
}

describe('payloadText', () => {
  it('of thinking, calls and signatures › has only what a model reads beyond the content', () => {
    expect(payloadText(thinking, `${long}\nlook\n{"place":"ice\\nfloe"}`)).toBe(
      'Seals and walruses differ.\nLook first.',
    )
    expect(
      payloadText({ protocol: 'chat', items: [{ role: 'user', content: `${long}\nYes.` }] }, `${long}\nYes.`),
    ).toBe('')
  })
})

describe('payloadStrings', () => {
  it('has identifiers and links but no words of the protocol', () => {
    const strings = [...payloadStrings(thinking)]
    expect(strings).toContain('https://example.com/seal')
    expect(strings).toContain('toolu_1')
    for (const word of ['assistant', 'tool_use', 'thinking', 'role']) expect(strings).not.toContain(word)
  })

  it('of 100,000 parts in any order › is packed in time linear in the content', () => {
    const parts = Array.from({ length: 100_000 }, (_, index) => `${'a'.repeat(34)}${String(index).padStart(6, '0')}`)
    const content = parts.join('\n')
    for (const list of [parts, parts.toReversed()]) {
      const payload = { protocol: 'chat', items: [{ role: 'user', content: list }] }
      expect(unpackPayload(packPayload(payload, content), content)).toEqual(payload)
      expect(payloadText(payload, content).length).toBeLessThanOrEqual(content.length)
    }
  })
})
