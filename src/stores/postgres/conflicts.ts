import { MemoryError } from '../../domain/error.ts'
import { formatKey } from '../../domain/key.ts'
import { checkMessageIds, findFilledSequence, type SessionChange } from '../../domain/session.ts'
import type { CommitConflict } from './rows.ts'
import { escapeText } from './text.ts'

/** Throws the error for a change that the database has not applied, with the same words as the other stores. */
export function throwConflict(change: SessionChange, conflict: CommitConflict): never {
  const name = formatKey(change.key)
  switch (conflict.conflict) {
    case 'epoch':
      throw new MemoryError(
        'erased',
        `Session ${name} was erased while this change was in progress; nothing was stored. Read the session again and retry if the change is still needed.`,
      )
    case 'position':
      findFilledSequence(change, conflict)
      break
    case 'ids':
      checkMessageIds(change, {
        hasMessage: (id) => conflict.existing.includes(id),
        findExternalId: (externalId) => conflict.owners[escapeText(externalId)],
      })
  }
  const revision = conflict.conflict === 'revision' ? conflict.revision : change.base
  throw new MemoryError(
    'conflict',
    `Session ${name} is at revision ${revision}, not ${change.base}. Read the session again and retry.`,
  )
}
