import { describe, expect, it } from 'vitest'
import { measureMessage } from '../../src/context/measureMessage.ts'
import { parseKey } from '../../src/domain/key.ts'
import { packPayload, unpackPayload } from '../../src/domain/payload.ts'
import { createSecretMasker } from '../../src/memory/secretMasker.ts'
import { type ImportDeps, maskRecords } from '../../src/portable/maskRecords.ts'
import type { BundleRecord, MessageRecord } from '../../src/portable/records.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { normalizeSecrets } from '../../src/text/secrets.ts'
import { verifies } from '../requirements/verifies.ts'

const secret = 'ghp_Ab3dE7fGh1jKlMn0pQrStUvWx2Yz34567890'
const mask = '⟨secret:0⟩'
const session = (key: string): BundleRecord => ({
  session: { key, startedAt: 1, touchedAt: 1, expiresAt: 9, last: 1, messages: 1, entries: 0 },
})
const message = (fields: Partial<MessageRecord>): MessageRecord => ({
  at: 1,
  role: 'user',
  content: 'Hello.',
  tokens: 99,
  lineTokens: 98,
  tokenizer: 'other',
  weight: 97,
  sequence: 1,
  offset: 5,
  ...fields,
})
const newDeps = (): ImportDeps => ({ masker: createSecretMasker('hide', chars4), tokenizer: chars4 })

/** Masks records that follow the line of a session. */
async function maskAll(
  records: readonly BundleRecord[],
  deps: ImportDeps = newDeps(),
  scope?: string,
): Promise<readonly BundleRecord[]> {
  const source = async function* () {
    for (const record of records) yield { record, hash: 'h' }
  }
  const masked: BundleRecord[] = []
  for await (const { record, hash } of maskRecords(source(), deps, scope as never)) {
    expect(hash).toBe('h')
    masked.push(record)
  }
  return masked
}
const maskOne = async (record: BundleRecord): Promise<unknown> => {
  const [, masked] = await maskAll([session('acme:ann'), record])
  // Equal masks, once it is certain that they are masks.
  expect(JSON.stringify(masked)).not.toMatch(/ghp_Ab3|wm7Fq2|"4829"/)
  return JSON.parse(normalizeSecrets(JSON.stringify(masked)))
}
const base = { id: 'e', at: 1, sources: [] }

describe('maskRecords', () => {
  it('with metadata that is too large with its masks › throws', async () => {
    const withPasswords = (count: number): BundleRecord => ({
      entry: {
        ...{ kind: 'about', id: 'about', at: 1, sources: [] },
        metadata: { password: Array.from({ length: count }, (_, index) => `xq${index}Z`) },
      },
    })
    expect(await maskAll([session('acme:ann'), withPasswords(1_000)])).toHaveLength(2)
    await expect(maskAll([session('acme:ann'), withPasswords(5_000)])).rejects.toMatchObject({
      code: 'bad-option',
      param: 'metadata',
    })
  })

  it('with a message › masks all its texts, counts again and keeps its weight and place', async () => {
    const masker = createSecretMasker('hide', chars4)
    for (const fields of [
      { content: `Use ${secret}.`, name: `Ann ${secret}` },
      {
        role: 'assistant' as const,
        content: '',
        toolCalls: [{ id: 'c', name: 'n', arguments: `{"a":"${secret}"}` }],
      },
      { role: 'tool' as const, toolCallId: `c ${secret}` },
    ]) {
      const record = message(fields)
      const [, masked] = await maskAll([session('acme:ann'), { message: record }], { masker, tokenizer: chars4 })
      const { tokens: _, lineTokens: __, tokenizer: ___, weight: ____, sequence, offset, ...texts } = record
      const expected = measureMessage(chars4, await masker.maskMessage(parseKey('acme:ann'), texts))
      expect(masked).toStrictEqual({ message: { ...expected, weight: 97, sequence, offset } })
      expect(JSON.stringify(masked)).not.toContain(secret)
    }
  })

  it('with a payload › masks it, which refers to the unmasked content', async () => {
    const content = `Please use the key ${secret} for the deployment.`
    const packedPayload = packPayload({ protocol: 'chat', items: [{ role: 'user', content, extra: secret }] }, content)
    const [, masked] = await maskAll([session('acme:ann'), { message: message({ content, packedPayload }) }])
    const { message: found } = masked as { message: MessageRecord }
    expect(JSON.stringify(found)).not.toContain(secret)
    const payload = unpackPayload(found.packedPayload ?? '', found.content)
    const [item] = (payload?.items ?? []) as readonly { content: string; extra: string }[]
    expect([item?.content, item?.extra && found.content.includes(item.extra)]).toEqual([found.content, true])
  })

  it('without secrets › keeps a message with its counts', async () => {
    const record = { message: message({ name: 'Ann' }) }
    const [, masked] = await maskAll([session('acme:ann'), record])
    expect(masked).toEqual(record)
  })

  it('with entries › masks their texts, and values by their keys', async () => {
    const fact = { ...base, kind: 'fact' as const, field: 'f', key: 'wifi password', value: 'wm7Fq2!', importance: 1 }
    expect(await maskOne({ entry: fact })).toEqual({ entry: { ...fact, value: mask } })
    const knowledge = {
      ...base,
      kind: 'knowledge' as const,
      category: 'c',
      key: 'pin',
      value: '4829',
      confidence: 1,
      usedAt: 1,
    }
    expect(await maskOne({ entry: knowledge })).toEqual({ entry: { ...knowledge, value: mask } })
    const item = {
      ...base,
      kind: 'item' as const,
      category: 'task' as const,
      content: secret,
      importance: 1,
      marked: false,
    }
    expect(await maskOne({ entry: item })).toEqual({ entry: { ...item, content: mask } })
  })

  verifies(
    ['R-02', 'X-08'],
    'with values before their keys › masks the values of facts and knowledge only',
    async () => {
      const fact = { ...base, kind: 'fact' as const, value: 'wm7Fq2!', key: 'wifi password', field: 'f', importance: 1 }
      expect(await maskOne({ entry: fact })).toEqual({ entry: { ...fact, value: mask } })
      const item = { ...base, kind: 'item' as const, category: 'task' as const, importance: 1, marked: false }
      const records = [session('acme:ann'), { entry: { ...item, content: 'plain' } }]
      expect(await maskAll(records)).toStrictEqual(records)
    },
  )

  it('with auxiliary records and graph rows › masks them; other records stay', async () => {
    expect(await maskOne({ record: { id: 'r', at: 1, body: `{"a":"${secret}"}` } })).toEqual({
      record: { id: 'r', at: 1, body: `{"a":"${mask}"}` },
    })
    const node = { name: 'Ann', entityType: 'person', observations: [secret] }
    expect(await maskOne({ graph: { node } })).toEqual({ graph: { node: { ...node, observations: [mask] } } })
    const end = { end: { sessions: 1, messages: 0, entries: 0 } }
    expect((await maskAll([session('acme:ann'), end]))[1]).toBe(end)
  })

  it('with a graph row › uses the mask of its scope, in the scope of the import', async () => {
    const deps = newDeps()
    const node = { name: secret, entityType: 'x', observations: [] }
    const [, inAcme] = await maskAll([session('acme::graph'), { graph: { node } }], deps)
    const [, inZeta] = await maskAll([session('acme::graph'), { graph: { node } }], deps, 'zeta')
    expect(inAcme).toEqual({ graph: await deps.masker?.maskJson(parseKey('acme'), { node }) })
    expect(inZeta).toEqual({ graph: await deps.masker?.maskJson(parseKey('zeta'), { node }) })
    expect(inZeta).not.toEqual(inAcme)
  })

  it('with a session named after a secret › throws', async () => {
    await expect(maskAll([session(`acme:${secret}`)])).rejects.toMatchObject({ code: 'bad-key' })
    await expect(maskAll([session('acme:ann')], newDeps(), secret)).rejects.toMatchObject({ code: 'bad-key' })
  })

  it('without a masker or a tokenizer › passes records on', async () => {
    const records = [session('acme:ann'), { message: message({ content: secret }) }]
    expect(await maskAll(records, {})).toEqual(records)
    expect(await maskAll(records, { tokenizer: chars4 })).toEqual(records)
    expect(await maskAll(records, { masker: createSecretMasker('hide', chars4) })).toEqual(records)
  })
})
