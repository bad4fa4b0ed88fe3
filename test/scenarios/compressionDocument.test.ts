import { DatabaseSync } from 'node:sqlite'
import { encode, encodeChat } from 'gpt-tokenizer/model/gpt-4o-mini'
import { describe, expect } from 'vitest'
import { type Memory, type MessageInput, openMemory, tokenizerFor } from '../../src/index.ts'
import { respondWithStatus } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, startServer, type TestServer, user } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { countWords, sampleTurn } from './sampleTurns.ts'
import { startUpkeepModel, type UpkeepModel } from './upkeepHarness.ts'

// The testing instructions of the compression document, phase by phase, through the server that a chat uses.

const fresh = createTempPaths()
const key = 'acme:ann'
/** Tokens that the provider adds before a reply. */
const replyTokens = 3

/** A chat server, the model behind it, and what the chat has sent. */
type Chat = AsyncDisposable & {
  readonly model: UpkeepModel
  readonly server: TestServer
  readonly memory: Memory
  readonly file: string
  /** Sends a message and returns the prompt that the model got. */
  send(content: string, session?: string): Promise<string>
  /** Sends messages until the summary has this version; returns their number. */
  sendUntil(version: number, session?: string): Promise<number>
}

async function openChat(file = fresh()): Promise<Chat> {
  const model = await startUpkeepModel()
  const server = await startServer({
    upstream: model.url,
    memory: { profile: 'summary', store: `sqlite:${file}`, model: model.model },
  })
  let turn = 0
  const send = async (content: string, session = key): Promise<string> => {
    const { choices } = await server
      .client(session)
      .chat.completions.create({ model: 'gpt-4o-mini', messages: [user(content)] })
    expect(choices[0]?.message.content).toBe('Noted.')
    await server.memory.upkeep.whenIdle()
    const prompt = model.requestsFor('chat').at(-1)?.body.messages as { content: string }[]
    return prompt.map((message) => message.content).join('\n')
  }
  const sendUntil = async (version: number, session = key): Promise<number> => {
    let sent = 0
    while ((await server.memory.upkeep.record(session)).summary_version < version) {
      const texts = [sampleTurn(turn), sampleTurn(turn + 500)].flat().map(({ content }) => String(content))
      await send(texts.join(' '), session)
      turn++
      sent++
    }
    return sent
  }
  const close = async (): Promise<void> => {
    await server.close()
    await model.close()
  }
  return { model, server, memory: server.memory, file, send, sendUntil, [Symbol.asyncDispose]: close }
}

/** Tokens of the next prompt without the message that is asked. */
const promptTokens = async ({ memory }: Chat): Promise<number> => (await memory.context(key)).ledger.spent

describe('Phase 1: Token Counting Infrastructure', () => {
  verifies(['C-13', 'C-01'], 'the counts of a text and of messages › equal those of OpenAI', async () => {
    const tokenizer = await tokenizerFor('gpt-4o-mini')
    const text = 'This is a test message with some content.'
    expect(tokenizer.count(text)).toBe(encode(text).length)
    const messages = [user('Hello'), assistant('Hi there! How can I help?')]
    await using memory = await openMemory({ profile: 'summary' })
    await memory.append(key, messages)
    expect((await memory.context(key)).ledger.history).toBe(encodeChat(messages).length - replyTokens)
  })
})

describe('Phase 2: Database Schema and Memory Compression Model', () => {
  verifies(['C-13', 'C-04'], 'the record › is initialised, read, updated, persisted and cleared', async () => {
    const file = fresh()
    {
      await using chat = await openChat(file)
      const path = `/api/sessions/${key}/record`
      expect((await chat.server.requestJson('POST /api/sessions', { key })).status).toBe(201)
      const { body } = await chat.server.requestJson(`GET ${path}`)
      expect(body).toMatchObject({ important_data: { user_preferences: {} }, conversation_summary: '' })
      const update = {
        important_data: { user_preferences: { theme: 'dark' } },
        conversation_summary: 'Test summary',
        summary_version: 1,
      }
      expect(await chat.server.requestJson(`POST ${path}`, update)).toMatchObject({ status: 200, body: update })
    }
    await using chat = await openChat(file)
    expect(await chat.memory.upkeep.record(key)).toMatchObject({
      important_data: { user_preferences: { theme: 'dark' } },
      conversation_summary: 'Test summary',
      summary_version: 1,
    })
    expect((await chat.server.requestJson(`DELETE /api/sessions/${key}/record`)).status).toBe(204)
    expect((await chat.memory.upkeep.record(key)).summary_version).toBe(0)
  })
})

describe('Phase 3: Token Threshold Detection and Message Window Logic', () => {
  verifies(['C-13', 'C-02', 'C-03'], 'fifteen long pairs › are summarised except for a window', async () => {
    await using memory = await openMemory({ profile: 'summary' })
    for (let pair = 0; pair < 15; pair++)
      await memory.append(key, [
        user(`Message ${pair}: ${'word '.repeat(200)}`),
        assistant(`Response ${pair}: ${'word '.repeat(200)}`),
      ])
    await memory.upkeep.whenIdle()
    const { last_keep_window_index: last, messages_summarized_count: count } = await memory.upkeep.record(key)
    expect([count, last]).toEqual([last, last])
    const kept = (await memory.transcript(key)).slice(last)
    const tokens = kept.reduce((sum, message) => sum + message.tokens, 0)
    expect([kept.length >= 2, tokens <= 2_500]).toEqual([true, true])
  })

  verifies(['C-13', 'C-02'], 'a small conversation › is not summarised', async () => {
    await using memory = await openMemory({ profile: 'summary' })
    await memory.append(key, [user('Hello'), assistant('Hi!')])
    await memory.upkeep.whenIdle()
    expect((await memory.upkeep.record(key)).summary_version).toBe(0)
  })
})

describe('Phase 4: Important Data Extraction Service', () => {
  verifies(['C-13', 'C-05', 'C-06'], "the document's messages › give its data, merged with what is known", async () => {
    await using chat = await openChat()
    await chat.send('I prefer dark mode. Document structure: Introduction, Methods, Results.')
    await chat.send('Important sources: https://example.com/paper1, https://example.com/paper2')
    await chat.send('The key finding is that X causes Y. This is critical for the paper.')
    await chat.memory.upkeep.update(key, {
      important_data: { user_preferences: { font: 'arial' }, source_urls: ['https://example.com/paper1'] },
    })
    await chat.sendUntil(1)
    const { important_data: data } = await chat.memory.upkeep.record(key)
    expect(data.user_preferences).toMatchObject({ theme: 'dark', font: 'arial' })
    expect(data.document_structure).toEqual({ sections: ['Introduction', 'Methods', 'Results'] })
    expect([...data.source_urls].sort()).toEqual(['https://example.com/paper1', 'https://example.com/paper2'])
    expect(JSON.stringify(data.important_facts)).toContain('X causes Y')
  })
})

describe('Phase 5: Conversation Summary Generation Service', () => {
  verifies(['C-13', 'C-07', 'C-08'], 'each version › is longer and keeps the context of the one before', async () => {
    await using chat = await openChat()
    await chat.send('The ticket is OPS-4711.')
    for (const [place, [least, most]] of (
      [
        [100, 150],
        [200, 250],
        [300, 350],
      ] as const
    ).entries()) {
      await chat.sendUntil(place + 1)
      const { conversation_summary: text } = await chat.memory.upkeep.record(key)
      expect([countWords(text) >= least, countWords(text) <= most, text.includes('OPS-4711')]).toEqual([
        true,
        true,
        true,
      ])
      await chat.send(`Now let us discuss ticket NEW-${place}.`)
    }
    await chat.sendUntil(4)
    const { conversation_summary: text } = await chat.memory.upkeep.record(key)
    expect(['OPS-4711', 'NEW-0', 'NEW-1'].filter((ticket) => !text.includes(ticket))).toEqual([])
  })
})

describe('Phase 6: Summarization Orchestration', () => {
  verifies(
    ['C-13', 'C-02', 'K-04'],
    'a summary › is made past 3,000 tokens, and the next one many messages later',
    async () => {
      await using chat = await openChat()
      await chat.sendUntil(1)
      expect(chat.model.requestsFor('summary')).toHaveLength(1)
      expect(await promptTokens(chat)).toBeLessThan(1_000)
      for (let message = 0; message < 4; message++) await chat.send(`And what about room ${message}?`)
      expect((await chat.memory.upkeep.record(key)).summary_version).toBe(1)
      expect(await chat.sendUntil(2)).toBeGreaterThan(3)
      expect(chat.model.requestsFor('summary')).toHaveLength(2)
      expect(await promptTokens(chat)).toBeLessThan(3_000)
    },
  )
})

describe('Phase 7: Prompt Construction with Summaries', () => {
  verifies(['C-13', 'C-09'], 'a prompt › has important data, summary and recent messages in this order', async () => {
    await using chat = await openChat()
    expect(await chat.send('I prefer dark mode. My code word is Rosebud.')).not.toContain('[CONVERSATION SUMMARY]')
    await chat.sendUntil(1)
    const prompt = await chat.send('New message after summarization')
    const parts = ['[IMPORTANT DATA', 'dark', '[CONVERSATION SUMMARY]', '[RECENT MESSAGES]', 'New message after']
    const places = parts.map((part) => prompt.indexOf(part))
    expect([places.includes(-1), places]).toEqual([false, places.toSorted((one, other) => one - other)])
    expect(prompt).not.toContain('I prefer dark mode. My code word is Rosebud.')
    expect((await chat.memory.context(key)).ledger.spent).toBeLessThan(3_000)
  })
})

describe('Phase 8: Error Handling and Edge Cases', () => {
  verifies(['C-13', 'C-11'], 'a model that refuses the key › leaves the chat working, degraded', async () => {
    await using chat = await openChat()
    chat.model.setOverride((purpose) => (purpose === 'chat' ? undefined : respondWithStatus(401)))
    await chat.sendUntil(1)
    const [summary] = await chat.memory.upkeep.summaries(key)
    expect([summary?.by, chat.memory.health().degraded.length > 0]).toEqual(['builtin', true])
  })

  verifies(['C-13', 'C-12'], 'a single very long message, and an empty history › are handled', async () => {
    await using chat = await openChat()
    expect((await chat.memory.context('acme:nobody')).messages).toEqual([])
    await chat.send('word '.repeat(4_000))
    expect(await promptTokens(chat)).toBeLessThanOrEqual(3_000)
    expect(await chat.send('Was that too long?')).toContain('Was that too long?')
  })

  verifies(['C-13', 'C-12'], 'a corrupted record › is set aside and made again', async () => {
    const file = fresh()
    {
      await using chat = await openChat(file)
      await chat.sendUntil(1)
    }
    const database = new DatabaseSync(file)
    database.exec("UPDATE derived SET body = '{' WHERE kind = 'summary'")
    database.close()
    await using chat = await openChat(file)
    await chat.sendUntil(1)
    expect((await chat.memory.upkeep.record(key)).conversation_summary).not.toBe('')
  })

  verifies(['C-13', 'C-12'], 'concurrent messages › are all stored and summarised once', async () => {
    await using chat = await openChat()
    const texts = Array.from(
      { length: 12 },
      (_, turn) => `${turn}: ${sampleTurn(turn)[0].content} ${'And so on. '.repeat(60)}`,
    )
    await Promise.all(texts.map((text) => chat.send(text)))
    const stored = (await chat.server.transcriptLines(key)).filter((line) => line.startsWith('user: '))
    expect(stored.toSorted()).toEqual(texts.map((text) => `user: ${text}`).toSorted())
    const versions = (await chat.memory.upkeep.record(key)).summary_version
    expect([versions > 0, chat.model.requestsFor('summary').length]).toEqual([true, versions])
  })
})

describe('Phase 9: Testing and Validation', () => {
  verifies(['C-13', 'C-02'], 'Test Scenario 1: Short Conversation (No Summarization)', async () => {
    await using chat = await openChat()
    const sent = ['Hello.', 'How are you?', 'What is the plan?']
    let prompt = ''
    for (const content of sent) prompt = await chat.send(content)
    expect(sent.filter((content) => !prompt.includes(content))).toEqual([])
    expect(chat.model.requests.length).toBe(chat.model.requestsFor('chat').length)
    expect((await chat.memory.upkeep.record(key)).last_summarized_at).toBeNull()
  })

  verifies(['C-13', 'C-02', 'C-03', 'C-04'], 'Test Scenario 2: First Summarization', async () => {
    await using chat = await openChat()
    await chat.send('I prefer dark mode.')
    await chat.sendUntil(1)
    const record = await chat.memory.upkeep.record(key)
    expect(record).toMatchObject({
      summary_version: 1,
      important_data: { user_preferences: { theme: 'dark' } },
      last_summarized_at: expect.stringMatching(/^\d{4}-/),
    })
    const words = countWords(record.conversation_summary)
    expect([words >= 100, words <= 150]).toEqual([true, true])
    const prompt = await chat.send('Which theme do I prefer?')
    expect([prompt.includes(record.conversation_summary), prompt.includes('dark')]).toEqual([true, true])
  })

  verifies(['C-13', 'C-06', 'C-07'], 'Test Scenario 3: Incremental Summarization', async () => {
    await using chat = await openChat()
    await chat.send('I prefer dark mode.')
    await chat.sendUntil(1)
    await chat.send('I prefer answers in French.')
    await chat.sendUntil(2)
    const { important_data: data, conversation_summary: text } = await chat.memory.upkeep.record(key)
    expect(data.user_preferences).toMatchObject({ theme: 'dark', language: expect.stringContaining('French') })
    expect([countWords(text) >= 200, countWords(text) <= 250]).toEqual([true, true])
    expect(await promptTokens(chat)).toBeLessThan(3_000)
  })

  verifies(['C-13', 'C-06'], 'Test Scenario 4: Important Data Preservation', async () => {
    await using chat = await openChat()
    await chat.send('I prefer dark mode.')
    await chat.send('Document structure: Intro, Methods, Results, Conclusion.')
    await chat.send('Key sources: https://example.org/url1, https://example.org/url2')
    await chat.sendUntil(1)
    await chat.send('See https://example.org/url3 too.')
    await chat.sendUntil(2)
    const { important_data: data } = await chat.memory.upkeep.record(key)
    expect(data).toMatchObject({
      user_preferences: { theme: 'dark' },
      document_structure: { sections: ['Intro', 'Methods', 'Results', 'Conclusion'] },
      source_urls: ['url1', 'url2', 'url3'].map((name) => `https://example.org/${name}`),
    })
  })

  verifies(['C-13', 'C-01'], 'Test Scenario 5: Token Accuracy', async () => {
    await using memory = await openMemory({ profile: 'summary' })
    const messages: MessageInput[] = [
      user('Grüße aus Köln! 你好 🚀'),
      assistant('if (a !== b) return a'),
      user('Next?'),
    ]
    await memory.append(key, messages)
    const { history } = (await memory.context(key)).ledger
    const expected = encodeChat(
      messages.map(({ role, content }) => ({ role: role as 'user', content: String(content) })),
    )
    expect(history).toBe(expected.length - replyTokens)
  })

  verifies(['C-13', 'K-04'], 'Test Scenario 6: Performance', async () => {
    await using chat = await openChat()
    await chat.sendUntil(1)
    const before = chat.model.requests.length
    for (let message = 0; message < 3; message++) await chat.send('And then?')
    // A turn without a summary costs one request, its own.
    expect(chat.model.requests.length - before).toBe(3)
  })

  verifies(['C-13', 'C-10'], 'Test Scenario 7: UI Display', async () => {
    await using chat = await openChat()
    const count = 1 + (await chat.send('Hello.').then(() => chat.sendUntil(2)))
    const { body } = await chat.server.requestJson(`GET /api/sessions/${key}/messages?limit=500`)
    const items = (body as { items: { role: string; content: string }[] }).items
    expect(items).toHaveLength(2 * count)
    expect([items[0]?.content, items[1]?.content]).toEqual(['Hello.', 'Noted.'])
  })

  verifies(['C-13', 'C-04'], 'Test Scenario 8: Multiple Sessions', async () => {
    await using chat = await openChat()
    const sessions = ['acme:ann', 'acme:bob']
    for (const session of sessions) {
      await chat.send(`My notes are on https://example.org/${session.slice(5)}.`, session)
      await chat.sendUntil(1, session)
    }
    for (const session of sessions) {
      const record = await chat.memory.upkeep.record(session)
      expect(record.important_data.source_urls).toEqual([`https://example.org/${session.slice(5)}`])
      const other = sessions.find((name) => name !== session)?.slice(5) ?? ''
      expect(JSON.stringify(record)).not.toContain(`example.org/${other}`)
    }
  })
})
