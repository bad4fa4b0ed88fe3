import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { AIMessage, type BaseMessage, HumanMessage, SystemMessage, type ToolMessage } from '@langchain/core/messages'
import { tool as langchainTool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { Agent, type AgentInputItem, tool as agentTool, OpenAIProvider, Runner } from '@openai/agents'
import { tool as aiTool, generateText, isStepCount, type ModelMessage } from 'ai'
import OpenAI from 'openai'
import { z } from 'zod'
import { type ClientAdapter, defineStack } from './scenario.ts'
import { cacheMarker, pdf, pdfUrl, readWeather, systemText } from './sdkStacks.ts'

const citySchema = z.object({ city: z.string() })

const aiSdk = defineStack<ModelMessage>('ai with @ai-sdk/openai-compatible', 'openai', ({ url }) => {
  const provider = createOpenAICompatible({ name: 'threadkeep', baseURL: url, apiKey: 'sk-client', includeUsage: true })
  const weather = aiTool({
    description: 'The weather',
    inputSchema: citySchema,
    execute: async ({ city }) => readWeather(city),
  })
  return {
    createQuestion: (text) => [
      { role: 'user', content: [{ type: 'text', text, providerOptions: { openaiCompatible: { ...cacheMarker } } }] },
    ],
    createDocumentQuestion: (text) => [
      {
        role: 'user',
        content: [
          { type: 'text', text },
          { type: 'file', mediaType: 'application/pdf', filename: 'report.pdf', data: pdf },
        ],
      },
    ],
    send: async (conversation) => {
      const { responseMessages } = await generateText({
        model: provider('test-model'),
        instructions: systemText,
        messages: [...conversation],
        tools: { weather },
        stopWhen: isStepCount(5),
        maxRetries: 0,
        temperature: 0.5,
      })
      return responseMessages
    },
  }
})

const defineLangchain = (useResponsesApi: boolean) =>
  defineStack<BaseMessage>(
    `@langchain/openai, ${useResponsesApi ? 'Responses' : 'chat completions'}`,
    'openai',
    ({ url }) => {
      const weather = langchainTool(async ({ city }: { city: string }) => readWeather(city), {
        name: 'weather',
        description: 'The weather',
        schema: citySchema,
      })
      const model = new ChatOpenAI({
        model: 'test-model',
        apiKey: 'sk-client',
        maxRetries: 0,
        useResponsesApi,
        configuration: { baseURL: url },
      }).bindTools([weather])
      const adapter: ClientAdapter<BaseMessage> = {
        createQuestion: (text) => [
          new HumanMessage({ content: [{ type: 'text', text, ...(useResponsesApi ? {} : cacheMarker) }] }),
        ],
        createDocumentQuestion: (text) => [
          new HumanMessage({
            content: [
              { type: 'text', text },
              useResponsesApi
                ? { type: 'input_file', filename: 'report.pdf', file_data: pdfUrl }
                : { type: 'file', file: { filename: 'report.pdf', file_data: pdfUrl } },
            ],
          }),
        ],
        send: async (conversation) => {
          const reply = await model.invoke([new SystemMessage(systemText), ...conversation])
          const added: BaseMessage[] = [reply]
          for (const call of reply.tool_calls ?? []) added.push((await weather.invoke(call as never)) as ToolMessage)
          return added.length === 1 ? added : [...added, ...(await adapter.send([...conversation, ...added]))]
        },
      }
      return adapter
    },
  )

/** Memory of LangChain's classic chains: old messages are replaced by a running summary in the system message. */
const langchainSummary = defineStack<BaseMessage>('@langchain/openai with a running summary', 'openai', ({ url }) => {
  const model = new ChatOpenAI({
    model: 'test-model',
    apiKey: 'sk-client',
    maxRetries: 0,
    configuration: { baseURL: url },
  })
  const maxRecentMessages = 3
  const summarise = (messages: readonly BaseMessage[]): string =>
    messages.map(({ text }) => text.slice(0, 20)).join(' | ')
  return {
    createQuestion: (text) => [new HumanMessage(text)],
    createDocumentQuestion: (text) => [new HumanMessage(`${text} (The report says hello.)`)],
    send: async (conversation) => {
      const reply = await model.invoke([
        new SystemMessage(`${systemText}\nSummary so far: ${summarise(conversation.slice(0, -maxRecentMessages))}`),
        ...conversation.slice(-maxRecentMessages),
      ])
      return [new AIMessage(reply.text)]
    },
  }
})

const defineAgents = (useResponses: boolean) =>
  defineStack<AgentInputItem>(
    `@openai/agents, ${useResponses ? 'Responses' : 'chat completions'}`,
    'openai',
    ({ url }) => {
      const openAIClient = new OpenAI({ baseURL: url, apiKey: 'sk-client', maxRetries: 0 })
      // Tracing would send spans to OpenAI.
      const runner = new Runner({
        tracingDisabled: true,
        modelProvider: new OpenAIProvider({ useResponses, openAIClient }),
      })
      const weather = agentTool({
        name: 'weather',
        description: 'The weather',
        parameters: citySchema,
        execute: async ({ city }) => readWeather(city),
      })
      const guide = new Agent({ name: 'Guide', instructions: systemText, model: 'test-model', tools: [weather] })
      return {
        createQuestion: (text) => [{ type: 'message', role: 'user', content: text }],
        createDocumentQuestion: (text) => [
          {
            type: 'message',
            role: 'user',
            content: [
              { type: 'input_text', text },
              { type: 'input_file', file: pdfUrl, filename: 'report.pdf' },
            ],
          },
        ],
        send: async (conversation) => {
          const { history } = await runner.run(guide, [...conversation])
          return history.slice(conversation.length)
        },
      }
    },
  )

export const frameworkStacks = [
  aiSdk,
  defineLangchain(false),
  defineLangchain(true),
  langchainSummary,
  defineAgents(false),
  defineAgents(true),
]
