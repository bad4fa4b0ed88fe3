import { measureMessage } from '../context/measureMessage.ts'
import type { MessageInput, ParsedMessage } from '../domain/chat.ts'
import type { OptionChecks } from '../domain/checkOptions.ts'
import { type Message, type NewMessage, parseMessageId } from '../domain/entry.ts'
import { integerAtLeast, MemoryError } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { SessionChange, SessionHead } from '../domain/session.ts'
import { type AppendDeps, commitMessages, parseMessages, prepareHead } from './append.ts'
import { type ForgetOperation, readAll } from './forget.ts'

/** Options of `replace` and `replaceFrom`. */
export type ReplaceOptions = {
  /** Revision of the session that the caller has read; refused with `conflict` if it has changed since. */
  readonly revision?: number
}

export const replaceOptionChecks: OptionChecks<ReplaceOptions> = { revision: integerAtLeast(0) }

/**
 * Replaces a message, which keeps its id, place, conversation and, unless it is given, its time and external id.
 * Entries derived from it are derived again.
 */
export async function replaceMessage(
  deps: AppendDeps,
  forgetting: ForgetOperation,
  key: Key,
  id: string,
  input: MessageInput,
  options: ReplaceOptions,
): Promise<Message> {
  const { head, stored } = await findTarget(deps, key, id, options)
  const [parsed, ...others] = parseMessages([input], stored.at)
  if (parsed === undefined || others.length > 0)
    throw new MemoryError('bad-message', 'message holds several tool results. Replace one message at a time.', {
      param: 'message',
    })
  const [measured] = (await prepareMessages(deps, key, [parsed])) as [NewMessage]
  const { externalId, branch } = stored
  const message = {
    ...(externalId !== undefined && { externalId }),
    ...measured,
    ...(branch !== undefined && { branch }),
  }
  await forgetting.replaceSources(deps.sessions, head, [stored.id], (drop) =>
    commitOn(deps, head, { replace: [{ id: stored.id, message }], append: [], drop }),
  )
  const [replaced] = await deps.sessions.readMessages(key, {
    after: stored.sequence - 1,
    before: stored.sequence + 1,
    limit: 1,
  })
  if (replaced === undefined) throw missingMessage(key, id)
  return replaced
}

/** Drops a message and all after it, and appends others in their place, under new sequence numbers. */
export async function replaceSuffix(
  deps: AppendDeps,
  forgetting: ForgetOperation,
  key: Key,
  id: string,
  inputs: readonly MessageInput[],
  options: ReplaceOptions,
): Promise<readonly Message[]> {
  const { head, stored } = await findTarget(deps, key, id, options)
  const { branch } = stored
  const prepared = await prepareMessages(deps, key, parseMessages(inputs, deps.clock()))
  const append = branch === undefined ? prepared : prepared.map((message) => ({ ...message, branch }))
  const dropped: string[] = []
  for await (const message of readAll(deps.sessions, key, stored.sequence - 1)) dropped.push(message.id)
  return forgetting.replaceSources(deps.sessions, head, dropped, (drop) =>
    commitOn(deps, head, { append, drop: [...dropped, ...drop] }, dropped.length),
  )
}

/** Finds the message with this id or external id in a session, which must be at the expected revision. */
async function findTarget(
  deps: AppendDeps,
  key: Key,
  id: string,
  { revision }: ReplaceOptions,
): Promise<{ readonly head: SessionHead; readonly stored: Message }> {
  const head = await prepareHead(deps, await deps.sessions.readHead(key, 0), deps.clock())
  if (revision !== undefined && revision !== head.revision)
    throw new MemoryError(
      'conflict',
      `Session ${formatKey(key)} is at revision ${head.revision}, not ${revision}. Read the session again and retry.`,
    )
  const stored = (await findById(deps.sessions, key, id)) ?? (await deps.sessions.findMessages(key, [id]))[0]
  if (stored === undefined) throw missingMessage(key, id)
  return { head, stored }
}

async function findById(store: Store, key: Key, id: string): Promise<Message | undefined> {
  const sequence = parseMessageId(id)
  if (sequence === undefined) return undefined
  return (await store.readMessages(key, { after: sequence - 1, before: sequence + 1, limit: 1 }))[0]
}

const missingMessage = (key: Key, id: string): MemoryError =>
  new MemoryError('bad-option', `${formatKey(key)} has no message ${JSON.stringify(id)}. Read its transcript.`, {
    param: 'id',
  })

async function prepareMessages(
  { masker, tokenizer, profile }: AppendDeps,
  key: Key,
  parsed: readonly ParsedMessage[],
): Promise<readonly NewMessage[]> {
  masker?.checkExternalIds(parsed)
  const masked = (await masker?.maskMessages(key, parsed)) ?? parsed
  return masked.map((message) => measureMessage(tokenizer, message, profile.maxMessageTokens))
}

/** Commits a change to the session as it was read. `freed` messages make room for those that are appended. */
async function commitOn(
  deps: AppendDeps,
  head: SessionHead,
  change: Pick<SessionChange, 'append' | 'drop'> & Partial<Pick<SessionChange, 'replace'>>,
  freed = 0,
): Promise<readonly Message[]> {
  const { append, ...place } = change
  const { epoch, revision, messages } = head
  const operation = { id: undefined, at: deps.clock(), epoch, append }
  const stored = await commitMessages(deps, { ...head, messages: messages - freed }, operation, {
    ...place,
    base: revision,
  })
  deps.embedding?.enqueue(head.key, epoch, stored)
  return stored
}
