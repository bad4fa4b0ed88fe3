import type { ChatMessage } from '../domain/ledger.ts'
import type { Model } from '../domain/ports.ts'
import type { ModelCall } from './modelCall.ts'

/** Model calls of one compaction: the reply to the summary call also has the important data. */
export type CombinedCall = {
  readonly summary: ModelCall
  /** Call for the important data; answered from the reply to the summary call if that has them. */
  readonly facts: () => ModelCall
}

/** More than both parts together may have. */
const maxReplyChars = 128_000
const separator = 'IMPORTANT DATA'

/**
 * Combines the two model calls of a compaction: the messages are sent once, and the important data are requested after
 * the summary. A model that leaves them out is asked for them separately.
 */
export function combineCalls(call: ModelCall, extractionInstructions: string): CombinedCall {
  let data: string | undefined
  const model: Model = {
    ...call.model,
    async *reply(request, signal) {
      if (data !== undefined) return yield* call.model.reply(request, signal)
      let text = ''
      const messages = addInstructions(request.messages, extractionInstructions)
      for await (const chunk of call.model.reply({ ...request, messages }, signal)) {
        text += chunk
        if (text.length > maxReplyChars) break
      }
      const parts = splitReply(text)
      data = parts.data
      yield parts.summary
    },
  }
  const facts = (): ModelCall =>
    data === undefined ? call : { ...call, model: { ...call.model, reply: () => replyOnce(data ?? '') } }
  return { summary: { ...call, model }, facts }
}

async function* replyOnce(text: string): AsyncGenerator<string> {
  yield text
}

function addInstructions([system, ...rest]: readonly ChatMessage[], instructions: string): readonly ChatMessage[] {
  const content = `${system?.content ?? ''}

After the summary write a line with the words ${separator} alone, and after that line the important data of the new messages:
${instructions}`
  return [{ role: 'system', content }, ...rest]
}

/** Splits a reply at the line of the separator, or before a JSON block at its end. */
function splitReply(text: string): { readonly summary: string; readonly data: string | undefined } {
  const lines = text.trimEnd().split('\n')
  const line = lines.findIndex((content) => /^\W{0,8}important data\W{0,8}$/i.test(content))
  const block = lines.at(-1) === '```' ? lines.findLastIndex((content) => content.startsWith('```json')) : -1
  if (line < 0 && block < 0) return { summary: text, data: undefined }
  const data = lines.slice(line < 0 ? block : line + 1).join('\n')
  return { summary: lines.slice(0, line < 0 ? block : line).join('\n'), data: data === '' ? '{}' : data }
}
