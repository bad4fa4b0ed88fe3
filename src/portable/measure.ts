import { measureInSteps } from '../context/measureMessage.ts'
import type { Payload } from '../domain/chat.ts'
import { unpackPayload } from '../domain/payload.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { tokenizerNames } from '../domain/profile.ts'
import { runInSlices, type Work } from '../domain/work.ts'
import { yieldWhenLong } from '../stores/yieldToEventLoop.ts'
import { splitPatterns } from '../tokenizers/splitPatterns.ts'
import { exactTokenizer, tokenizerNamed } from '../tokenizers/tokenizers.ts'
import type { VerifiedRecord } from './read.ts'
import type { MessageRecord } from './records.ts'

/**
 * Counts the tokens of imported messages again, because a forged count would let a context exceed its budget. Counts of
 * a tokenizer that is not known here are kept: a memory uses only counts of its own tokenizer.
 */
export async function* measureRecords(
  records: AsyncGenerator<VerifiedRecord>,
  own: Tokenizer | undefined,
): AsyncGenerator<VerifiedRecord> {
  for await (const verified of records) {
    const { record } = verified
    // The records of a bundle that is in memory arrive in one turn of the event loop.
    await yieldWhenLong()
    if (!('message' in record)) yield verified
    else {
      const tokenizer = await findTokenizer(record.message.tokenizer, own)
      yield tokenizer === undefined
        ? verified
        : {
            ...verified,
            record: { message: await runInSlices(recountInSteps(tokenizer, record.message), yieldWhenLong) },
          }
    }
  }
}

async function findTokenizer(name: string, own: Tokenizer | undefined): Promise<Tokenizer | undefined> {
  if (name === own?.name) return own
  if (Object.hasOwn(splitPatterns, name)) return exactTokenizer(name as keyof typeof splitPatterns)
  const estimator = tokenizerNames.find((known) => known === name && known !== 'exact')
  return estimator === undefined ? undefined : tokenizerNamed(estimator)
}

/** The weight of a message is its tokens up to a limit of the profile it was stored with. */
function* recountInSteps(tokenizer: Tokenizer, message: MessageRecord): Work<MessageRecord> {
  const { at, role, content, name, toolCalls, toolCallId, packedPayload } = message
  const payload: Payload | undefined = packedPayload === undefined ? undefined : unpackPayload(packedPayload, content)
  const { tokens, lineTokens } = yield* measureInSteps(tokenizer, {
    at,
    role,
    content,
    ...(name !== undefined && { name }),
    ...(toolCalls !== undefined && { toolCalls }),
    ...(toolCallId !== undefined && { toolCallId }),
    ...(payload !== undefined && { payload }),
  })
  const weight = Math.min(tokens, Math.max(message.weight, Math.min(tokens, 1)))
  return { ...message, tokens, lineTokens, weight }
}
