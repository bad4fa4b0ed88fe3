import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { type ClientAdapter, defineStack } from './scenario.ts'

/** A document with a few words, as PDF in base64. */
export const pdf = Buffer.from(
  '%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n',
).toString('base64')
export const pdfUrl = `data:application/pdf;base64,${pdf}`

const degrees: Readonly<Record<string, string>> = { Rome: '21 °C', Oslo: '4 °C' }
export const readWeather = (city: string): string => degrees[city] ?? 'unknown'
export const citySchema = {
  type: 'object' as const,
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
export const cacheMarker = { cache_control: { type: 'ephemeral' as const } }
export const systemText = 'You are a guide. Be brief, and use the tools for the weather.'

type ChatMessage = OpenAI.ChatCompletionMessageParam

/** Sends the reply of the service back as it is, with all fields that the SDK types do not know. */
const openaiChat = defineStack<ChatMessage>('openai, chat completions', 'openai', ({ url }) => {
  const { chat } = new OpenAI({ baseURL: url, apiKey: 'sk-client', maxRetries: 0 })
  const tools: OpenAI.ChatCompletionFunctionTool[] = [
    {
      type: 'function',
      function: { name: 'weather', description: 'The weather', strict: true, parameters: citySchema },
    },
  ]
  const system = { role: 'developer' as const, content: [{ type: 'text' as const, text: systemText, ...cacheMarker }] }
  const adapter: ClientAdapter<ChatMessage> = {
    createQuestion: (text) => [{ role: 'user', name: 'ann', content: [{ type: 'text', text }] }],
    createDocumentQuestion: (text) => [
      {
        role: 'user',
        content: [
          { type: 'file', file: { filename: 'report.pdf', file_data: pdfUrl } },
          { type: 'text', text, ...cacheMarker } as OpenAI.ChatCompletionContentPartText,
        ],
      },
    ],
    send: async (conversation) => {
      const { choices } = await chat.completions.create({
        model: 'test-model',
        messages: [system, ...conversation],
        tools,
        reasoning_effort: 'low',
        prompt_cache_key: 'guide',
        metadata: { '10': 'ten', '9': 'nine' },
      })
      const message = choices[0]?.message as OpenAI.ChatCompletionMessage
      const results = (message.tool_calls ?? []).map((call): ChatMessage => {
        const { city } = JSON.parse(call.type === 'function' ? call.function.arguments : '{}')
        return { role: 'tool', tool_call_id: call.id, content: [{ type: 'text', text: readWeather(city) }] }
      })
      if (results.length === 0) return [message]
      return [message, ...results, ...(await adapter.send([...conversation, message, ...results]))]
    },
  }
  return adapter
})

/** A client that writes messages by hand: plain strings, streamed, and instructions in the middle of the conversation. */
const openaiChatStream = defineStack<ChatMessage>('openai, chat completions, streamed', 'openai', ({ url }) => {
  const { chat } = new OpenAI({ baseURL: url, apiKey: 'sk-client', maxRetries: 0 })
  const adapter: ClientAdapter<ChatMessage> = {
    createQuestion: (text) => [
      { role: 'system', content: 'The next question comes from Ann.' },
      { role: 'user', content: text },
    ],
    createDocumentQuestion: (text) => [
      {
        role: 'user',
        content: [
          { type: 'text', text },
          { type: 'file', file: { file_id: 'file-abc123' } },
          { type: 'image_url', image_url: { url: 'https://example.com/cat.png', detail: 'low' } },
        ],
      },
    ],
    send: async (conversation) => {
      const stream = chat.completions.stream({
        model: 'test-model',
        messages: [{ role: 'system', content: systemText }, ...conversation],
        tools: [{ type: 'function', function: { name: 'weather', parameters: citySchema } }],
        stream_options: { include_usage: true },
      })
      const { choices } = await stream.finalChatCompletion()
      const { content, tool_calls: calls } = (choices[0] as OpenAI.ChatCompletion.Choice).message
      if (calls === undefined || calls.length === 0) return [{ role: 'assistant', content }]
      const added: ChatMessage[] = [
        { role: 'assistant', content: null, tool_calls: calls },
        ...calls.map((call): ChatMessage => ({ role: 'tool', tool_call_id: call.id, content: readWeather('Rome') })),
      ]
      return [...added, ...(await adapter.send([...conversation, ...added]))]
    },
  }
  return adapter
})

type Item = OpenAI.Responses.ResponseInputItem

/** Sends all output items back, with ids, status and reasoning. */
const openaiResponses = defineStack<Item>('openai, Responses', 'openai', ({ url }) => {
  const { responses } = new OpenAI({ baseURL: url, apiKey: 'sk-client', maxRetries: 0 })
  const tools: OpenAI.Responses.Tool[] = [{ type: 'function', name: 'weather', strict: true, parameters: citySchema }]
  const adapter: ClientAdapter<Item> = {
    createQuestion: (text) => [{ role: 'user', content: text }],
    createDocumentQuestion: (text) => [
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_file', filename: 'report.pdf', file_data: pdfUrl },
          { type: 'input_text', text },
        ],
      },
    ],
    send: async (input) => {
      const { output } = await responses.create({
        model: 'test-model',
        instructions: systemText,
        input: [...input],
        tools,
        reasoning: { effort: 'low', summary: 'auto' },
        include: ['reasoning.encrypted_content'],
        prompt_cache_key: 'guide',
      })
      const results = output.flatMap((item): Item[] =>
        item.type === 'function_call'
          ? [
              {
                type: 'function_call_output',
                call_id: item.call_id,
                output: readWeather(JSON.parse(item.arguments).city),
              },
            ]
          : [],
      )
      const added = [...(output as Item[]), ...results]
      return results.length === 0 ? added : [...added, ...(await adapter.send([...input, ...added]))]
    },
  }
  return adapter
})

type AnthropicMessage = Anthropic.MessageParam

const anthropicSdk = defineStack<AnthropicMessage>('@anthropic-ai/sdk', 'anthropic', ({ url }) => {
  const { messages } = new Anthropic({ baseURL: url, apiKey: 'sk-ant-client', maxRetries: 0 })
  const tools: Anthropic.Tool[] = [{ name: 'weather', input_schema: citySchema, ...cacheMarker }]
  const adapter: ClientAdapter<AnthropicMessage> = {
    createQuestion: (text) => [{ role: 'user', content: text }],
    createDocumentQuestion: (text) => [
      {
        role: 'user',
        content: [
          {
            type: 'document',
            source: { type: 'base64', media_type: 'application/pdf', data: pdf },
            title: 'Report',
            citations: { enabled: true },
            ...cacheMarker,
          },
          { type: 'text', text },
        ],
      },
    ],
    send: async (conversation) => {
      const { content } = await messages.create({
        model: 'test-model',
        max_tokens: 4_000,
        system: [{ type: 'text', text: systemText, ...cacheMarker }],
        messages: [...conversation],
        tools,
        thinking: { type: 'enabled', budget_tokens: 1_024 },
      })
      const results = content.flatMap((block): Anthropic.ToolResultBlockParam[] =>
        block.type === 'tool_use'
          ? [
              {
                type: 'tool_result',
                tool_use_id: block.id,
                content: [{ type: 'text', text: readWeather((block.input as { city: string }).city) }],
              },
            ]
          : [],
      )
      const reply: AnthropicMessage = { role: 'assistant', content: content as Anthropic.ContentBlockParam[] }
      if (results.length === 0) return [reply]
      const added: AnthropicMessage[] = [reply, { role: 'user', content: results }]
      return [...added, ...(await adapter.send([...conversation, ...added]))]
    },
  }
  return adapter
})

export const sdkStacks = [openaiChat, openaiChatStream, openaiResponses, anthropicSdk]
