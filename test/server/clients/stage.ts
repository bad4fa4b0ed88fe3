import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Memory } from '../../../src/memory.ts'
import type { UpstreamOptions } from '../../../src/server/upstreams/upstream.ts'
import { stage } from '../config/stage.ts'
import { type ModelServer, type Script, startModel } from './model.ts'

export type Stage = AsyncDisposable & {
  readonly model: ModelServer
  /** Where the server listens; another address after a restart. */
  readonly url: string
  readonly memory: Memory
  /** What is stored of a session, a line for each message. */
  said(key: string): Promise<string[]>
  /** Ends the server and its memory, and opens both again on the same file. */
  restart(): Promise<void>
}

type Protocol = UpstreamOptions['protocol']

/**
 * A model server, and before it the server as the command starts it: memory in a file, and everything else as usual but that
 * nobody waits before the model server is asked again. It may have others behind it. In the end nothing may have gone wrong that no client was told of.
 *
 * @example
 * await using stage = await openStage(says('Hello.'))
 * const client = new OpenAI({ baseURL: `${stage.url}/v1/demo:ann`, apiKey: 'sk-client' })
 */
export async function openStage(
  script?: Script,
  protocol: Protocol = 'openai',
  others: readonly { base: string; protocol: Protocol }[] = [],
): Promise<Stage> {
  const model = await startModel(script)
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-clients-'))
  const config = {
    store: `sqlite:${join(folder, 'threadkeep.db')}`,
    upstreams: [{ base: model.url, protocol }, ...others],
    retries: { wait: 1 },
  }
  const open = () => stage(join(folder, 'threadkeep.config.json'), config)
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
    said: async (key) => (await running.server.memories.sessions.transcript(key)).map(lineOf),
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

type Stored = Awaited<ReturnType<Memory['transcript']>>[number]

/** Such as `user: Hello`, `assistant: weather({"city":"Rome"})` or `tool: 21 °C`. */
function lineOf({ role, content, calls = [] }: Stored): string {
  return `${role}: ${[...(content === '' ? [] : [content]), ...calls.map((call) => `${call.name}(${call.arguments})`)].join(' ')}`
}

/** What somebody is told who waits for something in vain. */
export const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )
