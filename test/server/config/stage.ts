import { writeFileSync } from 'node:fs'
import { Following } from '../../../src/server/config/follow.ts'
import { type Loaded, loadSettings, type Said } from '../../../src/server/config/load.ts'
import { planOf } from '../../../src/server/config/plan.ts'
import type { Log } from '../../../src/server/observability/log.ts'
import { type Opened, type OpenOptions, openServer } from '../../../src/server/openServer.ts'

export type Staged = AsyncDisposable & {
  readonly server: Opened
  /** What the operator was told. */
  readonly faults: readonly string[]
  /** Changes the configuration and has the server look at it. */
  reconfigure(text: string): ReturnType<Following['look']>
  /** A chat completion: its status, its headers and what it says. */
  ask(key: string, content: string, headers?: Readonly<Record<string, string>>): Promise<Asked>
}
export type Asked = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly error: unknown
}

/** Opens a server by its configuration file, on a free port, as the command does. */
export async function stage(
  file: string,
  config: object,
  options: OpenOptions & { readonly environment?: Readonly<Record<string, string>> } = {},
): Promise<Staged> {
  writeFileSync(file, JSON.stringify({ listen: { port: 0 }, ...config }))
  const said: Said = { file, sources: [] }
  const loaded: Loaded = await loadSettings(said)
  const faults: string[] = []
  const log: Log = {
    request: () => undefined,
    note: () => undefined,
    fault: (id, trace) => faults.push(`${id} ${trace}`),
  }
  const server = await openServer(planOf(loaded.settings, options.environment ?? {}), { ...options, log })
  const following = new Following({ said, loaded, log, replace: (ways) => server.memories.replace(ways) })
  return {
    server,
    faults,
    reconfigure: (text) => {
      writeFileSync(file, text)
      return following.look()
    },
    ask: (key, content, headers = {}) => ask(`${server.url}/v1/${key}/chat/completions`, content, headers),
    [Symbol.asyncDispose]: () => server.close(0),
  }
}

async function ask(url: string, content: string, headers: Readonly<Record<string, string>>): Promise<Asked> {
  const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content }] })
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  })
  const { choices, error } = (await response.json()) as {
    choices?: { message: { content: string } }[]
    error?: unknown
  }
  return { status: response.status, headers: response.headers, text: choices?.[0]?.message.content ?? '', error }
}
