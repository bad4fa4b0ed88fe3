import { createParser } from 'eventsource-parser'
import { ApiError, apiPath, send } from '../../api/client.ts'

type ChatRequest = {
  readonly key: string
  readonly model: string
  readonly question: string
  readonly signal: AbortSignal
}

/**
 * Sends a message through the proxy, as any client does, and reports the reply as it arrives.
 *
 * @returns the id of the receipt
 */
export async function streamChat(
  { key, model, question, signal }: ChatRequest,
  onText: (text: string) => void,
): Promise<string | undefined> {
  const body = { model, stream: true, messages: [{ role: 'user', content: question }] }
  const response = await send(apiPath(['v1', key, 'chat', 'completions']), { method: 'POST', body, signal })
  const parser = createParser({
    onEvent: ({ data }) => {
      if (data === '[DONE]') return
      const { choices, error } = JSON.parse(data) as {
        readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[]
        readonly error?: { readonly message: string }
      }
      if (error !== undefined) throw new ApiError(502, error.message)
      const text = choices?.[0]?.delta?.content
      if (text) onText(text)
    },
  })
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) parser.feed(decoder.decode(chunk, { stream: true }))
  return response.headers.get('x-threadkeep-receipt') ?? undefined
}
