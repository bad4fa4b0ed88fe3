import { describe, expect, it } from 'vitest'
import { packPayload } from '../../src/domain/payload.ts'
import type { Tokenizer } from '../../src/domain/ports.ts'
import { measureRecords } from '../../src/portable/measure.ts'
import type { VerifiedRecord } from '../../src/portable/read.ts'
import type { MessageRecord } from '../../src/portable/records.ts'
import { tokenizerNamed } from '../../src/tokenizers/tokenizers.ts'
import { countTurns, useSlowClock } from '../support/slowClock.ts'

const forged: MessageRecord = {
  at: 1,
  role: 'user',
  content: 'My walrus is called Miso.',
  tokens: 0,
  lineTokens: 0,
  tokenizer: 'chars-4',
  weight: 0,
  sequence: 1,
  offset: 0,
}

/** Counts characters; its name is not one of the built-in tokenizers. */
const own: Tokenizer = { ...(await tokenizerNamed('chars-4')), name: 'own', count: (text) => text.length }

async function measure(record: VerifiedRecord['record'], tokenizer?: Tokenizer): Promise<VerifiedRecord['record']> {
  const verified = { record, hash: 'h' }
  const records = async function* (): AsyncGenerator<VerifiedRecord> {
    yield verified
  }
  const { value } = await measureRecords(records(), tokenizer).next()
  expect(value?.hash).toBe('h')
  return (value as VerifiedRecord).record
}

async function measureMessage(overrides: Partial<MessageRecord>, tokenizer?: Tokenizer): Promise<MessageRecord> {
  const measured = await measure({ message: { ...forged, ...overrides } }, tokenizer)
  return (measured as { message: MessageRecord }).message
}

describe('measureRecords', () => {
  it.each(['chars-4', 'ascii-3.5', 'upper-bound', 'o200k_base', 'cl100k_base'])(
    'with forged counts of %s › counts again and changes nothing else',
    async (tokenizer) => {
      const { tokens, lineTokens, weight, ...others } = await measureMessage({ tokenizer })
      expect([tokens > 5, lineTokens > 5, lineTokens <= tokens, weight]).toEqual([true, true, true, 1])
      expect(others).toEqual({
        at: 1,
        role: 'user',
        content: forged.content,
        tokenizer,
        sequence: 1,
        offset: 0,
      })
    },
  )

  it('with many long messages › lets other work run between them', async () => {
    // All words differ, so that no count of a word can be reused.
    const content = Array.from({ length: 10_000 }, (_, index) => ((index * 7919) % 1_000_003).toString(36)).join(' ')
    const records = async function* (): AsyncGenerator<VerifiedRecord> {
      for (let sequence = 1; sequence <= 10; sequence++)
        yield {
          record: {
            message: { ...forged, content: content.replaceAll(' ', ` ${sequence}`), tokenizer: 'o200k_base', sequence },
          },
          hash: 'h',
        }
    }
    using _ = useSlowClock()
    const countMeasured = async (): Promise<number> => {
      let count = 0
      for await (const _ of measureRecords(records(), undefined)) count++
      return count
    }
    const { value: measured, turns } = await countTurns(countMeasured())
    expect(measured).toBe(10)
    expect(turns).toBeGreaterThan(10)
  })

  it('with counts of a tokenizer that is not known › keeps them', async () => {
    for (const tokenizer of ['exact', 'own', 'toString', ''])
      expect(await measureMessage({ tokenizer, tokens: 3 })).toEqual({ ...forged, tokenizer, tokens: 3 })
  })

  it('with counts of the own tokenizer › counts with it', async () => {
    const { tokens } = await measureMessage({ tokenizer: 'own' }, own)
    expect(tokens).toBeGreaterThanOrEqual(forged.content.length)
    expect((await measureMessage({ tokenizer: 'chars-4' }, own)).tokens).toBeLessThan(forged.content.length)
  })

  it('with a weight below the tokens › keeps it; above › limits it; of 0 › raises it to 1', async () => {
    const { tokens } = await measureMessage({})
    const weights = [0, 1, 2, tokens - 1, tokens, tokens + 1, 2 ** 40]
    const measured = await Promise.all(weights.map((weight) => measureMessage({ weight })))
    expect(measured.map(({ weight }) => weight)).toEqual([1, 1, 2, tokens - 1, tokens, tokens, tokens])
  })

  it('with a name, tool calls, an answer or a payload › counts them', async () => {
    const { tokens } = await measureMessage({})
    const items = [{ role: 'user', content: [{ type: 'text', text: 'It swims far out every day.' }] }]
    const variants: readonly Partial<MessageRecord>[] = [
      { name: 'Annabelle Walrusfriend' },
      { packedPayload: packPayload({ protocol: 'chat', items }, forged.content) },
    ]
    for (const variant of variants) expect((await measureMessage(variant)).tokens).toBeGreaterThan(tokens)
    const assistant = await measureMessage({ role: 'assistant' })
    const calls = [{ id: 'c1', name: 'look_up_the_walrus', arguments: '{"deep":true}' }]
    expect((await measureMessage({ role: 'assistant', toolCalls: calls })).tokens).toBeGreaterThan(assistant.tokens)
    const short = await measureMessage({ role: 'tool', toolCallId: 'c' })
    const long = await measureMessage({ role: 'tool', toolCallId: 'c'.repeat(400) })
    expect(long.tokens).toBeGreaterThan(short.tokens)
  })

  it('with other records › passes them on', async () => {
    const record = { end: { sessions: 0, messages: 0, entries: 0 } }
    expect(await measure(record)).toBe(record)
  })
})
