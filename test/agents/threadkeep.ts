import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ViewedMessage } from './conversationView.ts'
import { killGroup } from './processes.ts'

export type Threadkeep = AsyncDisposable & {
  readonly url: string
  readTranscript(key: string): Promise<readonly ViewedMessage[]>
  /** Messages of all branches of a session. */
  readBranches(key: string): Promise<readonly ViewedMessage[]>
}

const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** Starts `threadkeep serve` with its default settings on a new SQLite file. */
export async function startThreadkeep(folder: string, upstream: string, protocol: string): Promise<Threadkeep> {
  const config = join(folder, 'threadkeep.config.json')
  const store = `sqlite:${join(folder, 'threadkeep.db')}`
  writeFileSync(config, JSON.stringify({ store, upstreams: [{ base: `${upstream}/v1`, protocol }] }))
  const child = spawn(process.execPath, [main, 'serve', '--config', config, '--port', '0', '--json'], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [line] = (await once(createInterface(child.stdout), 'line', { signal: AbortSignal.timeout(30_000) })) as [
    string,
  ]
  const { url } = JSON.parse(line) as { readonly url: string }
  return {
    url,
    readTranscript: async (key) => readMessages(`${url}/api/sessions/${key}/messages?limit=100`),
    readBranches: async (key) => {
      const items = await readItems<{ branch: number }>(`${url}/api/sessions/${key}/branches?limit=100`)
      const branches = items.map(({ branch }) =>
        readMessages(`${url}/api/sessions/${key}/branches/${branch}?limit=100`),
      )
      return (await Promise.all(branches)).flat()
    },
    [Symbol.asyncDispose]: async () => killGroup(child),
  }
}

async function readItems<T>(url: string): Promise<readonly T[]> {
  const response = await fetch(url)
  const { items = [] } = (await response.json()) as { readonly items?: readonly T[] }
  return items
}

async function readMessages(url: string): Promise<readonly ViewedMessage[]> {
  const items = await readItems<{ role: string; content?: string }>(url)
  return items.map(({ role, content }) => ({ role, text: content ?? '' }))
}
