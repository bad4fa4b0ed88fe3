import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createEmbedder, type MemoryOptions, openaiEmbedder, openMemory, profiles } from '../../src/index.ts'
import { createEmbeddingQueue } from '../../src/memory/embedding.ts'
import { createCliHarness } from '../cli/cliHarness.ts'
import { startProgram } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { openConfiguredServer } from '../server/config/harness.ts'
import { user } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { type EmbeddingServer, type Fault, startEmbeddingServer } from './embeddingServer.ts'
import { findSecrets, secretBatches, secretSamples } from './plantedSecrets.ts'

const fresh = createTempPaths()
const key = 'acme:ann'
const profile = { ...profiles.thread, budget: 700 }

/** A conversation of which little fits the budget; one message is about an animal. */
const conversation = Array.from({ length: 100 }, (_, place) =>
  user(place === 30 ? 'Our grimalkin Miso sleeps upstairs.' : `Invoice ${place} was paid on time and filed.`),
)
/** Shares no word with the message it is about. */
const question = 'Which zorble?'

const openFilled = async (options: MemoryOptions) => {
  const memory = await openMemory({ profile, upkeep: false, ...options })
  await memory.append(key, conversation)
  await memory.embeddingProgress({ settled: true })
  return memory
}

describe('a question without a common word', () => {
  it('without an embedder › does not find the message', async () => {
    await using memory = await openFilled({})
    expect((await memory.context(key, { query: question })).text).not.toContain('Miso')
  })

  it.each(['openai', 'ollama'])('by a server with the protocol of %s › finds the message', async (provider) => {
    await using server = await startEmbeddingServer()
    const embedder = createEmbedder(`${provider}:toy@${server.url}`, {})
    await using memory = await openFilled({ embedder })
    const { text, ledger } = await memory.context(key, { query: question })
    expect([text.includes('Miso'), ledger.degraded]).toEqual([true, []])
    await memory.append(key, [user(question)])
    expect((await memory.context(key)).text).toContain('Miso')
    expect(server.texts().filter((sent) => sent === question)).toHaveLength(1)
  })

  it.each<[Fault, string]>([
    ['hangs', 'the embedder toy did not answer a question within 100 ms; older'],
    ['fails', 'the embedder toy failed: its server failed (HTTP 500); older messages'],
    [
      'other dimensions',
      'the embedder toy failed: Embedder toy returned a vector of 2 numbers after vectors of 4; older',
    ],
  ])('by a server that %s › is answered by words, with the reason in the ledger', async (fault, why) => {
    await using server = await startEmbeddingServer()
    await using memory = await openFilled({
      embedder: openaiEmbedder({ baseUrl: server.url, model: 'toy', maxAttempts: 1 }),
      embedding: (store, embedder, options) =>
        createEmbeddingQueue(store, embedder, { ...options, queryTimeoutMs: 100 }),
    })
    server.fault = fault
    const { text, ledger } = await memory.context(key, { query: 'Was invoice 12 filed? And which zorble?' })
    expect([text.includes('Invoice 12 '), text.includes('Miso')]).toEqual([true, false])
    expect(ledger.degraded.map(({ step }) => step)).toEqual(['recall'])
    expect(ledger.degraded[0]?.why).toContain(why)
    expect(ledger.degraded[0]?.why).toContain('older messages were found by their words only')
    expect((await memory.embeddingProgress())?.fault).toBeDefined()
  })

  it('by a server that fails while messages are stored › finds them once it works again', async () => {
    await using server = await startEmbeddingServer()
    server.fault = 'fails'
    const file = fresh()
    const embedder = openaiEmbedder({ baseUrl: server.url, model: 'toy', maxAttempts: 1 })
    await using memory = await openFilled({ embedder, store: `sqlite:${file}` })
    expect(await memory.embeddingProgress()).toMatchObject({ done: 0, total: 100 })
    server.fault = undefined
    await expect.poll(async () => (await memory.embeddingProgress())?.done, { timeout: 10_000, interval: 50 }).toBe(100)
    expect((await memory.context(key, { query: question })).text).toContain('Miso')
  })
})

describe('a secret', () => {
  verifies('X-08', 'in a message or a question › never reaches the embedding server', async () => {
    await using server = await startEmbeddingServer()
    await using memory = await openFilled({ embedder: createEmbedder(`ollama:toy@${server.url}`, {}) })
    const before = server.texts().length
    for (const texts of secretBatches) {
      await memory.context(key, { query: `Which zorble? ${texts.join(' ')}` })
      await memory.append(key, texts.map(user))
      await memory.context(key)
      await memory.search('acme', texts.join(' '))
    }
    await memory.embeddingProgress({ settled: true })
    const sent = server.texts().slice(before)
    expect(sent.length).toBeGreaterThan(secretSamples.length)
    expect(sent.filter((text) => text.includes('⟨secret:')).length).toBeGreaterThan(0)
    expect(findSecrets(sent.join('\n'))).toEqual([])
  })
})

describe('a server with an embedder in its configuration', () => {
  it('recalls by meaning and reports its progress and faults at /healthz', async () => {
    await using embeddings = await startEmbeddingServer()
    const config = { store: 'ram:', embedder: `ollama:toy@${embeddings.origin}`, budget: 700, upkeep: 'off' }
    await using configured = await openConfiguredServer(fresh('.json'), config)
    const { memories, url } = configured.server
    await memories.sessions.append(key, conversation)
    await memories.sessions.embeddingProgress({ settled: true })
    expect((await memories.sessions.context(key, { query: question })).text).toContain('Miso')
    const readHealth = async () => (await fetch(`${url}/healthz`)).json()
    expect(await readHealth()).toMatchObject({
      status: 'ok',
      embedding: { model: 'ollama:toy', done: 100, total: 100 },
    })
    await embeddings.close()
    await memories.sessions.search('acme', 'vehicle')
    const health = JSON.stringify(await readHealth())
    expect(JSON.parse(health)).toMatchObject({
      status: 'degraded',
      degraded: [{ part: 'embedder', why: 'ollama:toy fails; search and recall use words only' }],
      embedding: { fault: expect.stringContaining('No answer from the embedder (ECONNREFUSED)') },
    })
    expect(health).not.toContain('127.0.0.1')
  })
})

describe('the command', () => {
  const { folder, run, json } = createCliHarness('embedder')
  const withServer = async (work: (server: EmbeddingServer, name: string) => Promise<void>): Promise<void> => {
    await using server = await startEmbeddingServer()
    await work(server, `openai:toy@${server.url}`)
  }

  it('search --embedder › embeds the store first, then finds by meaning; doctor reports it', () =>
    withServer(async (server, name) => {
      const chat = await run(['chat', key, '--store', 'sqlite:'], 'Our grimalkin is called Miso.\nIt rains.\n')
      expect(chat.code).toBe(0)
      const args = ['search', 'acme', 'zorble', '--limit', '1']
      expect((await run(args)).stdout).toBe('No results.\n')
      expect((await run(args, '', { THREADKEEP_EMBEDDER: name })).stdout).toContain('Our grimalkin is called Miso.')
      const sent = server.texts().length
      expect((await run([...args, '--embedder', name])).stdout).toContain('Our grimalkin is called Miso.')
      expect(server.texts().slice(sent)).toEqual(['zorble'])
      expect(await json('doctor', '--embedder', name)).toMatchObject({
        faults: [],
        embedder: { name: 'toy', done: 4, total: 4, dimensions: 4 },
      })
      server.fault = 'other dimensions'
      expect((await run(['doctor', '--embedder', name])).stdout).toContain(
        'Embedder toy: 4 of 4 entries embedded. It answers with vectors of 2 numbers',
      )
    }))

  it('mcp and save › with an embedder › use it', () =>
    withServer(async (server, name) => {
      expect((await run(['chat', key, '--store', 'sqlite:'], 'The garage is full.\n')).code).toBe(0)
      const config = join(folder, 'mcp.json')
      writeFileSync(config, JSON.stringify({ embedder: name, store: 'sqlite:threadkeep.db' }))
      const mcp = startProgram(
        'src/cli/main.ts',
        ['mcp', '--config', config],
        { THREADKEEP_STORE: '' },
        undefined,
        folder,
      )
      await expect.poll(() => server.texts(), { timeout: 15_000 }).toContain('The garage is full.')
      mcp.process.stdin?.end()
      expect((await mcp.result).code).toBe(0)
      const before = server.texts().length
      const text = 'user: We decided to sell the car.\nassistant: Agreed, TODO: call the dealer.\n'
      expect((await run(['save', '--embedder', name], text)).code).toBe(0)
      expect(server.texts().slice(before).join()).toContain('sell the car')
    }))

  it('with an embedder that does not work › says so and searches by words', () =>
    withServer(async (server, name) => {
      expect((await run(['chat', key, '--store', 'sqlite:broken.db'], 'Miso is a grimalkin.\n')).code).toBe(0)
      await server.close()
      const store = ['--store', 'sqlite:broken.db', '--embedder', name]
      const found = await run(['search', 'acme', 'grimalkin', '--limit', '1', ...store])
      expect([found.code, found.stdout.includes('Miso is a grimalkin.')]).toEqual([0, true])
      expect(found.stderr).toMatch(/^threadkeep: search by meaning is incomplete \(0 of 2 embedded\): No answer from /)
      const checked = await run(['doctor', ...store])
      expect([checked.code, checked.stdout.includes('It does not work: No answer from ')]).toEqual([1, true])
    }))

  it.each([['search', 'acme', 'x'], ['chat'], ['doctor'], ['config', 'check'], ['mcp'], ['restore']])(
    '%s --embedder › with an invalid name › lists the forms',
    async (...args) => {
      const { code, stderr } = await run([...args, '--embedder', 'openai'], '')
      expect(code).toBe(2)
      expect(stderr).toContain('embedder is "openai"; it must be ollama:MODEL, ollama:MODEL@URL, openai:MODEL')
    },
  )

  it('config check › names the embedder; without a key it says which variable to set', async () => {
    expect((await run(['config', 'check'], '', { THREADKEEP_EMBEDDER: 'ollama:nomic-embed-text' })).stdout).toBe(
      'The configuration is valid: profile thread, templates none, embedder ollama:nomic-embed-text.\n',
    )
    const { code, stderr } = await run(['config', 'check', '--embedder', 'openai:text-embedding-3-small'])
    expect([code, stderr.includes('Set OPENAI_API_KEY')]).toEqual([2, true])
  })
})
