// Assignments between the public types and those of the SDKs, in both directions. Compiled, never run.
import type Anthropic from '@anthropic-ai/sdk'
import type { generateText, ModelMessage, ToolSet } from 'ai'
import type OpenAI from 'openai'
import type { Memory, MessageInput } from 'threadkeep'

type ChatParam = OpenAI.Chat.ChatCompletionMessageParam
type GeneratedText = Awaited<ReturnType<typeof generateText<ToolSet>>>

export async function contextsFitTheSdks(memory: Memory): Promise<readonly unknown[]> {
  const chat: ChatParam[] = (await memory.context('acme:ann')).messages
  const openai: ChatParam[] = (await memory.context('acme:ann', { provider: 'openai' })).messages
  const anthropic = await memory.context('acme:ann', { provider: 'anthropic' })
  const system: string = anthropic.system
  const turns: Anthropic.MessageParam[] = anthropic.messages
  const aiSdk = await memory.context('acme:ann', { provider: 'ai-sdk' })
  const instructions: Parameters<typeof generateText>[0]['instructions'] = aiSdk.instructions
  const modelMessages: ModelMessage[] = aiSdk.messages
  return [chat, openai, system, turns, instructions, modelMessages]
}

export async function answersFitAppend(
  memory: Memory,
  completion: OpenAI.Chat.ChatCompletion,
  params: readonly ChatParam[],
  reply: Anthropic.Message,
  betaReply: Anthropic.Beta.BetaMessage,
  betaTurns: readonly Anthropic.Beta.BetaMessageParam[],
  turns: readonly Anthropic.MessageParam[],
  result: GeneratedText,
  modelMessages: readonly ModelMessage[],
): Promise<void> {
  for (const { message } of completion.choices) await memory.append('acme:ann', [message])
  await memory.append('acme:ann', params)
  await memory.append('acme:ann', [reply])
  await memory.append('acme:ann', [betaReply, ...betaTurns])
  await memory.append('acme:ann', [{ role: 'assistant', content: reply.content }])
  await memory.append('acme:ann', turns)
  await memory.append('acme:ann', result.response.messages)
  await memory.append('acme:ann', result.responseMessages)
  await memory.append('acme:ann', modelMessages)
  await memory.append('acme:ann', (await memory.context('acme:bob')).messages)
  await memory.append('acme:ann', (await memory.context('acme:bob', { provider: 'anthropic' })).messages)
  await memory.append('acme:ann', (await memory.context('acme:bob', { provider: 'ai-sdk' })).messages)
}

export const literals: readonly MessageInput[] = [
  { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/cat.png' } }] },
  { role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://example.com/cat.png' } }] },
  { role: 'user', content: [{ type: 'image', image: new URL('https://example.com/cat.png') }] },
  { role: 'assistant', content: null, refusal: 'I cannot help with that.' },
  { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'custom', custom: { name: 'sql', input: '' } }] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'sunny', is_error: false }] },
  { role: 'function', name: 'weather', content: 'sunny' },
]
