import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Memory } from '../../../src/memory.ts'
import type { UpstreamOptions } from '../../../src/server/upstreams/upstream.ts'
import { openConfiguredServer } from '../config/harness.ts'
import { type ModelServer, type Script, startModelServer } from './modelServer.ts'

export type Harness = AsyncDisposable & {
  readonly model: ModelServer
  /** URL of the server; it changes with a restart. */
  readonly url: string
  readonly memory: Memory
  /** Reads the stored messages of a session, one line each. */
  readTranscript(key: string): Promise<string[]>
  /** Closes the server and its memory and opens both again on the same file. */
  restart(): Promise<void>
}

type UpstreamProtocol = UpstreamOptions['protocol']

/**
 * Starts a scripted model server and the server as the command starts it, with a SQLite store and a retry delay of 1 ms.
 * `others` are further upstreams, `settings` further fields of the configuration. On disposal it fails the test if the
 * server logged an internal error.
 *
 * @example
 * await using harness = await createHarness(replyWith('Hello.'))
 * const client = new OpenAI({ baseURL: `${harness.url}/v1/demo:ann`, apiKey: 'sk-client' })
 */
export async function createHarness(
  script?: Script,
  protocol: UpstreamProtocol = 'openai',
  others: readonly { base: string; protocol: UpstreamProtocol }[] = [],
  settings: object = {},
): Promise<Harness> {
  const model = await startModelServer(script)
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-clients-'))
  const config = {
    store: `sqlite:${join(folder, 'threadkeep.db')}`,
    upstreams: [{ base: model.url, protocol }, ...others],
    retries: { baseDelay: 1 },
    ...settings,
  }
  const open = () => openConfiguredServer(join(folder, 'threadkeep.config.json'), config)
  const faults: string[] = []
  let running = await open()
  const close = async (): Promise<void> => {
    await running.server.close(0)
    faults.push(...running.faults)
  }
  return {
    model,
    get url() {
      return running.server.url
    },
    get memory() {
      return running.server.memories.sessions
    },
    readTranscript: async (key) => (await running.server.memories.sessions.transcript(key)).map(formatMessage),
    restart: async () => {
      await close()
      running = await open()
    },
    [Symbol.asyncDispose]: async () => {
      await close()
      await model.close()
      rmSync(folder, { recursive: true })
      expect(faults).toEqual([])
    },
  }
}

type StoredMessage = Awaited<ReturnType<Memory['transcript']>>[number]

/** Formats a message as `user: Hello`, `assistant: weather({"city":"Rome"})` or `tool: 21 °C`. */
function formatMessage({ role, content, toolCalls = [] }: StoredMessage): string {
  return `${role}: ${[...(content === '' ? [] : [content]), ...toolCalls.map((call) => `${call.name}(${call.arguments})`)].join(' ')}`
}

/**
 * Says what becomes of a turn that the upstream answers with an error: a refused turn is taken back, and after any other
 * failure its question stays for a retry.
 */
export const describeFailedTurn = (status: number): string =>
  status < 500 ? 'nothing of the turn is stored' : 'the question is stored'
export const failedTurn = (status: number, question: string): string[] => (status < 500 ? [] : [`user: ${question}`])

/** Returns the error of a rejected promise; undefined if it resolves. */
export const catchError = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )
