import { measureInSteps } from '../context/measureMessage.ts'
import type { DerivedEntry, Json } from '../domain/entry.ts'
import { type Key, type Scope, scopeKey } from '../domain/key.ts'
import { unpackPayload } from '../domain/payload.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { runInSlices } from '../domain/work.ts'
import { checkMetadataSize } from '../lifecycle/metadata.ts'
import type { SecretMasker } from '../memory/secretMasker.ts'
import { yieldWhenLong } from '../stores/yieldToEventLoop.ts'
import { targetKey } from './compare.ts'
import type { VerifiedRecord } from './read.ts'
import type { BundleRecord, MessageRecord } from './records.ts'

/** Parts of a memory that an import uses: without a masker nothing is masked. */
export type ImportDeps = { readonly masker?: SecretMasker | undefined; readonly tokenizer?: Tokenizer }

type Masking = { readonly masker: SecretMasker; readonly tokenizer: Tokenizer }

/**
 * Masks the secrets of records: a bundle may come from a memory with `secrets: 'keep'`, or from anyone.
 *
 * @throws MemoryError `bad-key` for a session whose key contains a secret, `bad-message` for a message whose id does,
 * `bad-option` for metadata that is too large with its masks.
 */
export async function* maskRecords(
  records: AsyncIterable<VerifiedRecord>,
  { masker, tokenizer }: ImportDeps,
  scope: Scope | undefined,
): AsyncGenerator<VerifiedRecord> {
  if (masker === undefined || tokenizer === undefined) return yield* records
  let key: Key | undefined
  for await (const verified of records) {
    const { record } = verified
    if ('session' in record) {
      key = targetKey(scope, record.session)
      masker.checkKey(key)
    }
    if (key === undefined) yield verified
    else yield { ...verified, record: await maskRecord({ masker, tokenizer }, key, record) }
  }
}

async function maskRecord(masking: Masking, key: Key, record: BundleRecord): Promise<BundleRecord> {
  const { masker } = masking
  if ('message' in record) return { message: await maskMessageRecord(masking, key, record.message) }
  if ('entry' in record) return { entry: await maskEntry(masker, key, record.entry) }
  if ('record' in record) return { record: { ...record.record, body: await masker.maskText(key, record.record.body) } }
  if ('graph' in record)
    return { graph: (await masker.maskJson(scopeKey(key), record.graph as unknown as Json)) as typeof record.graph }
  return record
}

async function maskMessageRecord(
  { masker, tokenizer }: Masking,
  key: Key,
  record: MessageRecord,
): Promise<MessageRecord> {
  masker.checkExternalIds([record])
  const { at, role, content, name, toolCalls, toolCallId, packedPayload } = record
  // A packed payload refers to the unmasked content.
  const payload = packedPayload === undefined ? undefined : unpackPayload(packedPayload, content)
  const message = {
    at,
    role,
    content,
    ...(name !== undefined && { name }),
    ...(toolCalls !== undefined && { toolCalls }),
    ...(toolCallId !== undefined && { toolCallId }),
    ...(payload !== undefined && { payload }),
  }
  const masked = await masker.maskMessage(key, message)
  // The weight stays, because the offsets of later messages are sums of weights.
  if (masked === message) return record
  const measured = await runInSlices(measureInSteps(tokenizer, masked), yieldWhenLong)
  return { ...record, ...measured, weight: record.weight }
}

async function maskEntry(masker: SecretMasker, key: Key, entry: DerivedEntry): Promise<DerivedEntry> {
  const masked = (await masker.maskJson(key, entry as unknown as Json)) as unknown as DerivedEntry
  // Masks may be longer than what they mask, and a bundle with larger metadata could not be imported.
  if (masked.kind === 'about') checkMetadataSize(masked.metadata, 'metadata')
  if (entry.kind !== 'knowledge' && entry.kind !== 'fact') return masked
  const [value] = Object.values((await masker.maskJson(key, { [entry.key]: entry.value })) as Record<string, Json>)
  return { ...masked, value } as DerivedEntry
}
