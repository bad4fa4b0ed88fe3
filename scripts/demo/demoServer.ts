import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateConversation } from '../../src/evaluation/generate/generate.ts'
import { openGraph } from '../../src/graph/graph.ts'
import { resolveServerConfig } from '../../src/server/config/serverConfig.ts'
import { loadSettings } from '../../src/server/config/settings.ts'
import { type OpenedServer, openServer } from '../../src/server/openServer.ts'
import {
  changingStatements,
  type DemoSession,
  earlierSessions,
  files,
  graph,
  hourMs,
  operatorKnowledge,
  pendingKnowledge,
  questions,
  recentSessions,
  templates,
} from './demoData.ts'
import { type DemoModel, startDemoModel } from './demoModel.ts'

/** A server with generated conversations in a store of its own, which is deleted when it is closed. */
export type DemoServer = AsyncDisposable & { readonly url: string; readonly folder: string }

/** A request of the past: the question of a user at a time. */
type PastTurn = { readonly at: number; readonly key: string; readonly model: string; readonly content: string }

/** Time of the demo: moves through the past while turns are generated, then follows the real time. */
class DemoClock {
  private offsetMs = 0
  readonly now = (): number => Date.now() + this.offsetMs
  moveTo(at: number): void {
    this.offsetMs = Math.min(0, Math.round(at) - Date.now())
  }
}

/** Visitors with one question each, so that the list of sessions has a second page and the charts have hours. */
const visitorCount = 48
const visitorHours = 5.5

/** Starts a server in a temporary folder and fills it. */
export async function startDemo(options: { readonly port?: number } = {}): Promise<DemoServer> {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-demo-'))
  const startedAt = Date.now()
  const [earlier, recent] = [earlierSessions.map(generateSession), recentSessions.map(generateSession)]
  const model = await startDemoModel(collectReplies([...earlier, ...recent]))
  const clock = new DemoClock()
  {
    await using server = await openConfigured(folder, clock, model, { upkeep: 'builtin' })
    await leadTurns(server.url, clock, earlier, [...toTurns(earlier, startedAt), ...toStatements(startedAt)])
    await editHistory(server.url)
  }
  await fillGraph(folder)
  const server = await openConfigured(folder, clock, model, {
    listen: { port: options.port ?? 0 },
    upkeep: 'gpt-5.4-mini',
  })
  clock.moveTo(startedAt - 35 * hourMs)
  await addKnowledge(server)
  await leadTurns(server.url, clock, recent, [
    ...toTurns(recent, startedAt),
    ...visitorTurns(startedAt),
    ...askAgain(startedAt),
  ])
  clock.moveTo(Number.POSITIVE_INFINITY)
  const close = async (): Promise<void> => {
    await server.close(0)
    await model[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  }
  return { url: server.url, folder, [Symbol.asyncDispose]: close }
}

async function openConfigured(
  folder: string,
  clock: DemoClock,
  model: DemoModel,
  config: object,
): Promise<OpenedServer> {
  const file = join(folder, 'threadkeep.config.json')
  const keys = { file: 'keys.json', required: false }
  const upstreams = [{ name: 'demo', base: model.url }]
  const common = { listen: { port: 0 }, store: 'sqlite:memory.db', templates, keys, upstreams }
  writeFileSync(file, JSON.stringify({ ...common, ...config }))
  const { settings } = await loadSettings({ file, sources: [] })
  return openServer(resolveServerConfig(settings, {}), { clock: clock.now })
}

type GeneratedSession = DemoSession & {
  readonly messages: readonly { readonly role: string; readonly text: string }[]
}

const generateSession = (session: DemoSession, index: number): GeneratedSession => ({
  ...session,
  messages: generateConversation({ kind: session.kind, tokens: session.tokens, seed: index + 1 }).messages,
})

/** The generated reply to each generated question. */
function collectReplies(sessions: readonly GeneratedSession[]): ReadonlyMap<string, string> {
  const all = sessions.flatMap(({ messages }) => messages)
  const pairs = all.flatMap(({ role, text }, index): readonly (readonly [string, string])[] =>
    role === 'user' ? [[text, all[index + 1]?.text ?? 'Noted.']] : [],
  )
  return new Map(pairs)
}

/** The questions of generated conversations, spread over the hours of their session. */
function toTurns(sessions: readonly GeneratedSession[], startedAt: number): readonly PastTurn[] {
  return sessions.flatMap(({ key, model, hours: [from, to], messages }) => {
    const asked = messages.filter(({ role }) => role === 'user')
    return asked.map(({ text: content }, index) => ({
      at: startedAt - (from - ((from - to) * index) / asked.length) * hourMs,
      key,
      model,
      content,
    }))
  })
}

const toStatements = (startedAt: number): readonly PastTurn[] =>
  changingStatements.map(([hours, content]) => ({
    at: startedAt - hours * hourMs,
    key: 'acme:mara',
    model: 'gpt-5.4-mini',
    content,
  }))

const visitorTurns = (startedAt: number): readonly PastTurn[] =>
  Array.from({ length: visitorCount }, (_, index) => ({
    // More visitors around the middle of the period.
    at: startedAt - (visitorHours / 2) * hourMs * (1 + Math.cos((Math.PI * (index + 0.5)) / visitorCount)),
    key: `shop:visitor-${String(index + 1).padStart(3, '0')}`,
    model: 'gpt-5.4-mini',
    content: `Hello, my order is number ${70_000 + 37 * index}.`,
  }))

/** Questions to older sessions during the last hours, so that the server has figures of them to show. */
const askAgain = (startedAt: number): readonly PastTurn[] =>
  ['acme:mara', 'globex:repo-billing', 'acme:mara', 'acme:research'].map((key, index) => ({
    at: startedAt - (4.5 - 1.4 * index) * hourMs,
    key,
    model: 'gpt-5.4-mini',
    content: questions[index] as string,
  }))

/** Performs the turns at their times. A session begins with its first turn. */
async function leadTurns(
  url: string,
  clock: DemoClock,
  sessions: readonly DemoSession[],
  turns: readonly PastTurn[],
): Promise<void> {
  const waiting = new Map(sessions.map((session) => [session.key, session]))
  for (const { at, key, model, content } of turns.toSorted((a, b) => a.at - b.at)) {
    clock.moveTo(at)
    const session = waiting.get(key)
    if (session !== undefined) await beginSession(url, session)
    waiting.delete(key)
    const template = key.startsWith('shop:') ? { 'x-threadkeep-template': 'kiosk' } : {}
    await postChat(url, key, { model, messages: [{ role: 'user', content }] }, template)
  }
}

const beginSession = (url: string, { key, template, person, metadata }: DemoSession): Promise<void> =>
  postJson(`${url}/api/sessions`, { key, template, metadata, ...(person !== undefined && { person }) })

/** Sends an edited history, which cuts off a branch. */
async function editHistory(url: string): Promise<void> {
  const first = { role: 'user', content: 'Plan a weekend in Porto.' }
  const reply = { role: 'assistant', content: 'Noted.' }
  for (const messages of [
    [first],
    [first, reply, { role: 'user', content: 'We arrive on Friday evening.' }],
    [first, reply, { role: 'user', content: 'We arrive on Saturday morning instead.' }],
  ])
    await postChat(url, 'acme:edited', { model: 'gpt-5.4-mini', messages }, { 'x-threadkeep-history': 'full' })
}

async function fillGraph(folder: string): Promise<void> {
  const opened = await openGraph(`sqlite:${join(folder, 'memory.db')}`)
  await opened.write('acme', graph)
  await opened.close()
}

async function addKnowledge({ url, memories }: OpenedServer): Promise<void> {
  for (const known of operatorKnowledge) await postJson(`${url}/api/scopes/acme/knowledge`, known)
  for (const claim of pendingKnowledge) await memories.scopes.remember('acme', claim)
  for (const { name, type, text } of files)
    await fetch(`${url}/api/scopes/acme/files`, {
      method: 'POST',
      headers: { 'x-filename': name, 'content-type': type },
      body: text,
    })
}

const postChat = (url: string, key: string, body: object, headers: Readonly<Record<string, string>> = {}) =>
  postJson(`${url}/v1/${key}/chat/completions`, body, headers)

async function postJson(url: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  await response.arrayBuffer()
}
