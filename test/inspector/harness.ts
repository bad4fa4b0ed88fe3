import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { launchBrowser } from '../../scripts/demo/browser.ts'
import { buildInspector } from '../../scripts/inspector.ts'
import { Credentials } from '../../src/server/auth/credentials.ts'
import { resolveServerConfig } from '../../src/server/config/serverConfig.ts'
import { loadSettings } from '../../src/server/config/settings.ts'
import type { MemoryRegistry } from '../../src/server/memoryRegistry.ts'
import { type OpenedServer, openServer } from '../../src/server/openServer.ts'

/** A server with a SQLite file, as `threadkeep serve` starts it, that can be stopped and started again. */
export type InspectedServer = AsyncDisposable & {
  readonly url: string
  readonly folder: string
  readonly memories: MemoryRegistry
  stop(): Promise<void>
  start(): Promise<void>
  /** Creates an API key; from then on, the server requires one. */
  createKey(scopes: readonly string[], rights?: 'use' | 'admin'): Promise<string>
  post(path: string, body: unknown, key?: string): Promise<Response>
  ask(key: string, content: string): Promise<Response>
}

/**
 * Starts the real server in a temporary folder.
 *
 * @param overrides settings of the configuration that differ
 */
export async function startInspected(overrides: object = {}): Promise<InspectedServer> {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-inspector-'))
  const keyFile = join(folder, 'keys.json')
  let port = 0
  let server: OpenedServer | undefined
  const start = async (): Promise<void> => {
    const file = join(folder, 'threadkeep.config.json')
    const config = {
      listen: { port },
      store: 'sqlite:memory.db',
      keys: { file: keyFile, required: false },
      budget: 400,
      ...overrides,
    }
    writeFileSync(file, JSON.stringify(config))
    const { settings } = await loadSettings({ file, sources: [] })
    server = await openServer(resolveServerConfig(settings, {}))
    port = Number(new URL(server.url).port)
  }
  await start()
  const url = `http://127.0.0.1:${port}`
  const post = (path: string, body: unknown, key?: string): Promise<Response> =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(key !== undefined && { 'x-threadkeep-api-key': key }) },
      body: JSON.stringify(body),
    })
  return {
    url,
    folder,
    get memories() {
      if (server === undefined) throw new Error('The server is stopped.')
      return server.memories
    },
    start,
    stop: async () => server?.close(0),
    createKey: async (scopes, rights = 'use') => {
      const { key } = await new Credentials(keyFile).create({ scopes, rights }, Date.now())
      // The server notices the new file between two requests.
      while ((await fetch(`${url}/api/sessions`)).status !== 401);
      return key
    },
    post,
    ask: (key, content) => post(`/v1/${key}/chat/completions`, { model: 'any', messages: [{ role: 'user', content }] }),
    [Symbol.asyncDispose]: async () => {
      await server?.close(0)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

let browser: Promise<Browser> | undefined

/** The browser of this file; builds the page first. */
async function openBrowser(): Promise<Browser> {
  await buildInspector()
  browser ??= launchBrowser()
  return browser
}

export async function closeBrowser(): Promise<void> {
  await (await browser)?.close()
  browser = undefined
}

/** A tab, and everything that went wrong in it: errors of scripts, and violations of the content policy. */
export type Tab = AsyncDisposable & {
  readonly page: Page
  readonly context: BrowserContext
  readonly problems: string[]
}

/** Opens a view by its address and waits until its data is there. A page of the same server is not loaded again. */
export async function openView(page: Page, address: string, heading: string): Promise<void> {
  await page.goto(address)
  await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor()
  await page.waitForFunction(() => document.querySelector('.loading') === null)
}

type TabOptions = { readonly scheme?: 'light' | 'dark'; readonly width?: number; readonly bypassesPolicy?: boolean }

export async function openTab({
  scheme = 'light',
  width = 1280,
  bypassesPolicy = false,
}: TabOptions = {}): Promise<Tab> {
  const context = await (await openBrowser()).newContext({
    viewport: { width, height: 800 },
    colorScheme: scheme,
    bypassCSP: bypassesPolicy,
  })
  const page = await context.newPage()
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('console', (message) => {
    if (/Content Security Policy|TrustedHTML/.test(message.text())) problems.push(message.text())
  })
  return { page, context, problems, [Symbol.asyncDispose]: () => context.close() }
}
