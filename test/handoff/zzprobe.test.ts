import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'vitest'
import { coding, noon, stage } from './stage.ts'
import { newFolder } from '../fault/folder.ts'
import { sessionTools } from '../../src/mcp/tools/sessions.ts'

const ws = 'billing'
const log = (...x: unknown[]) => console.log(...x.map((one) => typeof one === 'string' ? one : JSON.stringify(one)))
const probe = (name: string, fn: () => Promise<unknown>) => it(name, async () => {
  try { log(`[${name}]`, await Promise.race([fn(), new Promise((r) => setTimeout(() => r('TIMEOUT'), 6000))]) ?? 'undefined') } catch (e) { log(`[${name}] THREW`, (e as Error).name, (e as {code?:string}).code ?? '', (e as Error).message.slice(0, 300)) }
}, 20_000)

probe('title lost by concurrent save', async () => {
  let first = true
  const providers = { gather: async () => { if (first === false) { first = true; await other!() } return { provided: [], degraded: [] } } }
  let other: (() => Promise<unknown>) | undefined
  await using at = await stage({ providers })
  const { sessionId } = await at.handoff.save(ws, { messages: coding })
  other = () => at.handoff.save(ws, { sessionId, title: 'Mine', workspaceState: { activeProject: 'x' }, contextItems: [{ category: 'task', content: 'given item' }] })
  first = false
  await at.handoff.save(ws, { sessionId, messages: [...coding, { role: 'user', content: 'more' }] })
  const got = await at.handoff.get(ws, sessionId)
  return [got.title, got.workspaceState, got.items]
})
probe('mark lost by concurrent save', async () => {
  let first = true
  let other: (() => Promise<unknown>) | undefined
  const providers = { gather: async () => { if (first === false) { first = true; await other!() } return { provided: [], degraded: [] } } }
  await using at = await stage({ providers })
  const { sessionId } = await at.handoff.save(ws, { messages: coding })
  other = () => at.handoff.mark(ws, sessionId, { messageIds: ['m1'] })
  first = false
  await at.handoff.save(ws, { sessionId, messages: [...coding, { role: 'user', content: 'more' }] })
  return (await at.handoff.restore(ws, { sessionId })).contextItems.map(({ marked, importance }) => [marked, importance])
})
probe('tokenCount huge', async () => {
  await using at = await stage()
  await at.handoff.save(ws, { messages: coding, tokenCount: 1e300 })
  const out = sessionTools.find((t) => t.name === 'list_sessions')!.output
  return out.safeParse(await at.handoff.list(ws)).success
})
probe('continues self', async () => {
  await using at = await stage()
  const { sessionId } = await at.handoff.save(ws, { messages: coding })
  const s = await at.handoff.save(ws, { sessionId, continues: sessionId })
  return [s.continues, (await at.handoff.chain(ws, sessionId)).length]
})
probe('continues appended-only', async () => {
  await using at = await stage()
  await at.handoff.append(ws, { sessionId: 'talk', messages: coding })
  return (await at.handoff.save(ws, { messages: coding, continues: 'talk' })).continues
})
probe('continues changed leaves relationship', async () => {
  await using at = await stage()
  const a = (await at.handoff.save(ws, { messages: coding })).sessionId
  const b = (await at.handoff.save(ws, { messages: coding })).sessionId
  const c = (await at.handoff.save(ws, { messages: coding, continues: a })).sessionId
  await at.handoff.save(ws, { sessionId: c, continues: b })
  return (await at.graph.relationships(ws, { from: c, types: ['SESSION_CONTINUES'] })).relationships.map((r) => r.to)
})
probe('newest part starting like the first', async () => {
  await using at = await stage()
  const m = (...t: string[]) => t.map((content, i) => ({ role: i % 2 ? 'assistant' as const : 'user' as const, content }))
  const { sessionId } = await at.handoff.save(ws, { messages: m('continue', 'done 1', 'continue', 'done 2') })
  await at.handoff.save(ws, { sessionId, messages: m('continue', 'done 3') })
  return (await at.memory.transcript(`${ws}:${sessionId}`)).map((x) => x.content)
})
probe('restore without id after append only', async () => {
  await using at = await stage()
  await at.handoff.append(ws, { sessionId: 'talk', messages: coding })
  return (await at.handoff.restore(ws)).continues
})
probe('forgot then saved again', async () => {
  await using at = await stage()
  const a = { role: 'user' as const, content: 'alpha' }, b = { role: 'assistant' as const, content: 'beta' }
  const { sessionId } = await at.handoff.save(ws, { messages: [a] })
  await at.handoff.save(ws, { sessionId, messages: [a, b] })
  await at.memory.forget({ key: `${ws}:${sessionId}`, entries: ['m2'] } as never)
  const again = await at.handoff.save(ws, { sessionId, messages: [a, b] })
  return [again.added, again.messages, (await at.memory.transcript(`${ws}:${sessionId}`)).map((x) => x.content)]
})
probe('fifo import', async () => {
  using folder = newFolder()
  const dir = join(folder.path, 'sessions', ws, 'session_1')
  mkdirSync(dir, { recursive: true })
  execFileSync('mkfifo', [join(dir, 'metadata.json')])
  await using at = await stage()
  const r = await Promise.race([at.handoff.import({ directory: folder.path }), new Promise((r) => setTimeout(() => r('HANG'), 2000))])
  if (r === 'HANG') writeFileSync(join(dir, 'metadata.json'), '{}')
  return r
})
probe('secrets', async () => {
  await using at = await stage()
  const key = 'sk-proj-' + 'aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD'
  const { sessionId } = await at.handoff.save(ws, { conversationContext: `User: use ${key} please`, title: `t ${key}`, contextItems: [{ category: 'data', content: `k ${key}` }], fileReferences: [{ path: `/a/${key}` }], workspaceState: { activeProject: key, enabledMcps: [key], settings: { [key]: 1, a: { b: key } } } })
  await at.handoff.mark(ws, sessionId, { text: 'please' })
  const r = await at.handoff.restore(ws, { query: key })
  const inFile = readdirSync(at.folder).filter((f) => readFileSync(join(at.folder, f)).includes(key))
  return [inFile, r.context.includes(key), JSON.stringify(await at.handoff.get(ws, sessionId)).includes(key), JSON.stringify(await at.handoff.list(ws)).includes(key)]
})
probe('append whose save fails', async () => {
  let fail = true
  const providers = { gather: async () => { if (fail) throw new Error('boom'); return { provided: [], degraded: [] } } }
  await using at = await stage({ providers })
  const big = [{ role: 'user' as const, content: 'word '.repeat(700) }]
  const first = await at.handoff.append(ws, { sessionId: 'talk', messages: big, limit: 1000 }).catch((e) => e.message)
  fail = false
  const second = await at.handoff.append(ws, { sessionId: 'talk', messages: [{ role: 'user', content: 'x' }], limit: 1000 })
  return [first, second.saved?.messages, (await at.handoff.list(ws)).total]
})
