import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMemory } from '../../../src/index.ts'
import type { Memory } from '../../../src/memory.ts'
import { type Serving, serve } from '../../../src/server/serve.ts'
import { SessionModels } from '../../../src/server/sessionModels.ts'
import type { UpstreamOptions } from '../../../src/server/upstreams/upstream.ts'
import { type ModelServer, type Script, startModel } from './model.ts'

export type Stage = AsyncDisposable & {
  readonly model: ModelServer
  /** Where the server listens; another address after a restart. */
  readonly url: string
  /** What the operator was told. */
  readonly faults: readonly string[]
  /** What is stored of a session, a line for each message. */
  said(key: string): Promise<string[]>
  /** Ends the server and its memory, and opens both again on the same file. */
  restart(): Promise<void>
}

type Running = { readonly memory: Memory; readonly serving: Serving }

/** The server as `threadkeep serve --store sqlite:FILE --upstream URL` starts it, and a model server behind it. */
export async function openStage(script?: Script, protocol: UpstreamOptions['protocol'] = 'openai'): Promise<Stage> {
  const model = await startModel(script)
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-clients-'))
  const faults: string[] = []
  const open = async (): Promise<Running> => {
    const models = new SessionModels({ upstream: model.url })
    const memory = await openMemory({ store: `sqlite:${join(folder, 'threadkeep.db')}`, model: (key) => models.for(key) })
    const upstream = [{ name: 'model', base: model.url, protocol }]
    // The only thing that is not as usual: nobody waits before the model server is asked again.
    const persistence = { wait: 1 }
    return { memory, serving: await serve({ memory, models, port: 0, upstream, persistence, onFault: (_, trace) => faults.push(trace) }) }
  }
  const close = async ({ memory, serving }: Running): Promise<void> => {
    await serving.close(0)
    await memory.close()
  }
  let running = await open()
  return {
    model,
    faults,
    get url() {
      return running.serving.url
    },
    said: async (key) => (await running.memory.transcript(key)).map(lineOf),
    restart: async () => {
      await close(running)
      running = await open()
    },
    [Symbol.asyncDispose]: async () => {
      await close(running)
      await model.close()
      rmSync(folder, { recursive: true })
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
