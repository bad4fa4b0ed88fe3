import type { DerivedEntry } from '../domain/entry.ts'
import { isObject } from '../domain/error.ts'
import { formatKey, outboxKey, parseStoredKey } from '../domain/key.ts'
import type { AuxiliaryRecord } from '../domain/ports.ts'
import { ownerOf } from '../lifecycle/auxiliaryKeys.ts'
import { parseJson } from '../text/json.ts'
import { endsSession } from './compare.ts'
import type { VerifiedRecord } from './read.ts'
import type { BundleRecord, SessionRecord } from './records.ts'

/**
 * Removes what would act beyond the sessions of a bundle, because anyone can write one: pending end events, which the
 * server signs and sends; branches of sessions that are not in the bundle; transfers in progress, which move messages
 * from and to other sessions; and the permission to read responses that an upstream stores.
 */
export async function* confineRecords(records: AsyncIterable<VerifiedRecord>): AsyncGenerator<VerifiedRecord> {
  const keys = new Set<string>()
  let session: SessionRecord | undefined
  let isConfined = true
  for await (const verified of records) {
    const { record } = verified
    if (endsSession(record)) isConfined = true
    if ('session' in record) {
      session = record.session
      isConfined = belongsToBundle(session, keys)
      keys.add(session.key)
    }
    if (isConfined) yield { ...verified, record: confineRecord(record, session) }
  }
}

function belongsToBundle(session: SessionRecord, keys: ReadonlySet<string>): boolean {
  const key = parseStoredKey(session.key)
  const owner = ownerOf(key)
  return key.id !== outboxKey(key.scope).id && (owner === undefined || keys.has(formatKey(owner)))
}

function confineRecord(record: BundleRecord, session: SessionRecord | undefined): BundleRecord {
  if ('record' in record) return { record: confineReceipt(record.record) }
  if ('entry' in record && record.entry.kind === 'about') return { entry: removeTransfer(record.entry, session) }
  return record
}

/** Keeps the redirect of a session that was moved completely: nothing is left to move. */
function removeTransfer(
  { movedFrom: _, movedTo, ...about }: Extract<DerivedEntry, { kind: 'about' }>,
  session: SessionRecord | undefined,
): DerivedEntry {
  const isEmpty = session?.messages === 0 && session.entries === 1
  return { ...about, ...(movedTo !== undefined && isEmpty && { movedTo }) }
}

/** Marks a receipt as imported, so that the ids in it count only in the session itself. */
function confineReceipt(record: AuxiliaryRecord): AuxiliaryRecord {
  const receipt = parseJson(record.body)
  if (!isObject(receipt) || !receiptFields.some((name) => Object.hasOwn(receipt, name))) return record
  // Of a field that an object has twice, the last one counts.
  return { ...record, body: record.body.replace(/\}\s*$/, importMark) }
}

/** Fields by which a receipt refers to what an upstream stores. */
const receiptFields = ['response', 'sequence', 'question', 'isStoredUpstream']
const importMark = ',"isImported":true}'

/** Removes the mark of an imported receipt, so that the next export has the bytes of the first one. */
export const removeImportMark = (body: string): string =>
  body.endsWith(importMark) ? `${body.slice(0, -importMark.length)}}` : body
