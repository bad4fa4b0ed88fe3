import { it } from 'vitest'
import { assistant, user } from '../start.ts'
import { openScene, ann } from './scene.ts'
import { profiles } from '../../../src/profiles/index.ts'
import { messageCost } from '../../../src/text/cost.ts'
it('x', async () => {
  const file = (n: string, t: string, b: Buffer) => ({ type: 'file', file: { filename: n, file_data: `data:${t};base64,` + b.toString('base64') } })
  { await using scene = await openScene()
    for (const [n, t, b] of [['x.xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', Buffer.from('PKxx')], ['x.bin', 'application/octet-stream', Buffer.from([0, 1, 2, 255])], ['e.txt', 'text/plain', Buffer.alloc(0)]] as const) {
      const r = await scene.chat([user([file(n, t, b), { type: 'text', text: 'hi ' + n }] as never)], {}, 'demo'); console.log(n, r.status, r.headers.get('x-threadkeep-degraded'), JSON.stringify(scene.model.requests.at(-1)?.body)) }
    console.log(await scene.said('demo'), JSON.stringify((await scene.server.ask('GET /api/scopes/demo/files')).body))
  }
  { await using scene = await openScene({ memory: { profile: { ...profiles.thread, sees: ['session', 'scope', 'person'] } } })
    const r = await scene.chat([user('one')], { 'x-threadkeep-person': 'Ann Smith' }); console.log(r.status, JSON.stringify(r.body), await scene.said(), scene.model.requests.length) }
  for (const words of [20, 100, 150, 5000]) { await using scene = await openScene({ memory: { profile: { ...profiles.thread, budget: 800 } }, reply: (a) => a.startsWith('What is X') ? { calls: [{ id: 'c1', name: 'f', input: {} }] } : { text: 'Re: ' + a.slice(0, 20) } })
    for (let i = 0; i < 6; i++) await scene.chat([user(`Turn ${i} `.repeat(30))])
    await scene.chat([user('What is X?')])
    const call = { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }] }
    const r = await scene.chat([user(`What is X?\n<context>${'lorem ipsum dolor '.repeat(words)}</context>`), call, { role: 'tool', tool_call_id: 'c1', content: '42' }])
    const ms = scene.model.requests.at(-1)?.body.messages
    const t = scene.server.memory.tokenizer
    const real = ms.reduce((n: number, m: any) => n + messageCost(t, { ...m, content: m.content ?? '', ...(m.tool_calls ? { calls: m.tool_calls.map((c: any) => ({ id: c.id, ...c.function })) } : {}) }), t.overhead.reply)
    console.log('dressed', words, r.status, r.headers.get('x-threadkeep-tokens'), r.headers.get('x-threadkeep-degraded'), 'really', real, ms.length, (await scene.said()).slice(-4).map((x) => x.slice(0, 50)))
  }
})
