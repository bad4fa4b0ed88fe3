import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ViewedMessage } from './conversationView.ts'
import { start } from './processes.ts'

export type Threadkeep = AsyncDisposable & {
  readonly url: string
  readTranscript(key: string): Promise<readonly ViewedMessage[]>
}

const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** Starts `threadkeep serve` with its default settings on a new SQLite file. */
export async function startThreadkeep(folder: string, upstream: string, protocol: string): Promise<Threadkeep> {
  const config = join(folder, 'threadkeep.config.json')
  const store = `sqlite:${join(folder, 'threadkeep.db')}`
  writeFileSync(config, JSON.stringify({ store, upstreams: [{ base: `${upstream}/v1`, protocol }] }))
  const args = [main, 'serve', '--config', config, '--port', '0', '--json']
  const { PATH = '' } = process.env
  const server = await start({ command: process.execPath, args, env: { PATH }, cwd: folder }, /"url":"(http[^"]+)"/)
  const url = server.match
  return {
    url,
    readTranscript: async (key) => readMessages(`${url}/api/sessions/${key}/messages?limit=100`),
    [Symbol.asyncDispose]: async () => server.stop(),
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
