import { writeFileSync } from 'node:fs'
import { ConfigWatcher } from '../../../src/server/config/configWatcher.ts'
import { resolveServerConfig } from '../../../src/server/config/serverConfig.ts'
import { type ConfigInput, type LoadedSettings, loadSettings } from '../../../src/server/config/settings.ts'
import type { Log } from '../../../src/server/observability/log.ts'
import { type OpenedServer, type OpenServerOptions, openServer } from '../../../src/server/openServer.ts'

export type ConfiguredServer = AsyncDisposable & {
  readonly server: OpenedServer
  /** Logged faults. */
  readonly faults: readonly string[]
  /** Writes the configuration file and reloads it. */
  reconfigure(text: string): ReturnType<ConfigWatcher['reload']>
  /** Requests a chat completion. */
  ask(key: string, content: string, headers?: Readonly<Record<string, string>>): Promise<ChatResult>
}
export type ChatResult = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly error: unknown
}

/** Opens a server with a configuration file, on a free port, as `threadkeep serve` does. */
export async function openConfiguredServer(
  file: string,
  config: object,
  options: OpenServerOptions & { readonly environment?: Readonly<Record<string, string>> } = {},
): Promise<ConfiguredServer> {
  writeFileSync(file, JSON.stringify({ listen: { port: 0 }, ...config }))
  const input: ConfigInput = { file, sources: [] }
  const loaded: LoadedSettings = await loadSettings(input)
  const faults: string[] = []
  const log: Log = {
    request: () => undefined,
    event: () => undefined,
    fault: (id, trace) => faults.push(`${id} ${trace}`),
  }
  const server = await openServer(resolveServerConfig(loaded.settings, options.environment ?? {}), { ...options, log })
  const watcher = new ConfigWatcher({
    input,
    loaded,
    log,
    applyProfiles: (profiles) => server.memories.replace(profiles),
  })
  return {
    server,
    faults,
    reconfigure: (text) => {
      writeFileSync(file, text)
      return watcher.reload()
    },
    ask: (key, content, headers = {}) => ask(`${server.url}/v1/${key}/chat/completions`, content, headers),
    [Symbol.asyncDispose]: () => server.close(0),
  }
}

async function ask(url: string, content: string, headers: Readonly<Record<string, string>>): Promise<ChatResult> {
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
